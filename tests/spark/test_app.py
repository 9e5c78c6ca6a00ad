"""What an entry point gives to Spark. No session starts here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.replay import app
from spark.event_logs import busy_log, write_nodes


class Asked(Exception):
    """Says how a session was asked for."""


@pytest.mark.parametrize(("more", "quick"), [(0, True), (-1, False)])
def test_small_logs_get_a_session_that_generates_no_code(
    more: int, quick: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records of all nodes count: each is read."""
    log = busy_log()
    stored = 3 * len(log.rows)

    @contextmanager
    def opened(_options: object, **asked: object) -> Iterator[None]:
        raise Asked(asked)
        yield

    monkeypatch.setattr(app, "opened", opened)
    monkeypatch.setattr(app, "QUICK_RECORDS_MAX", stored + more)

    with pytest.raises(Asked) as caught:
        app.verify(write_nodes(tmp_path, log, nodes=3, cut_at=(9,)))

    assert caught.value.args == ({"quick": quick},)


def test_directories_without_a_segment_are_told_without_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JVM that starts to read nothing costs seconds, or is not there at all."""
    monkeypatch.setattr(app, "opened", lambda *_, **__: pytest.fail("a session was started"))
    for checkpoint in (None, tmp_path / "checkpoint"):
        (tmp_path / "n1").mkdir(exist_ok=True)

        report = app.verify([tmp_path / "n1"], checkpoint=checkpoint)

        assert not report.passed
        assert [finding.kind for finding in report.findings] == ["missing"]
        assert any("no node has anything to verify" in note for note in report.notes)
