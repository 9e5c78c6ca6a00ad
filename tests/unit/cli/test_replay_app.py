"""What a command says if the system refuses a file: a sentence, and no number of an error."""

from __future__ import annotations

import pytest

from holdfast.cli import replay_app


def test_a_folder_that_may_not_be_written_is_named_in_a_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refused(_: object) -> None:
        raise PermissionError(13, "Permission denied", "out/report.html")

    with pytest.raises(SystemExit) as ended:
        replay_app.run(refused)

    assert ended.value.code == 1
    assert (
        capsys.readouterr().err
        == "holdfast: cannot read or write out/report.html: Permission denied\n"
    )
