"""`holdfast log verify` tells where the records are if it was given the folder around them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from holdfast.cli.main import main


@pytest.mark.parametrize("kept", ["state", "segments"])
def test_the_folder_around_a_data_directory_is_told_from_one_without_records(
    tmp_path: Path, kept: str
) -> None:
    """`no records` alone would frighten an operator whose records are one folder further down."""
    around, empty = tmp_path / "n1", tmp_path / "empty"
    (around / "data" / kept).mkdir(parents=True)
    empty.mkdir()
    options = ("--node-dir", str(around), "--node-dir", str(empty))
    ended = CliRunner().invoke(main, ["log", "verify", *options])

    assert ended.exit_code == 1
    assert ended.stdout.splitlines()[:2] == [
        f"{around}: no records; did you mean --node-dir {around / 'data'}?",
        f"{empty}: no records",
    ]


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but root may look into a folder `lost+found`; tests may run as root."""
    stat = Path.stat

    def refused(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if path.parent.name == "lost+found":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", refused)


@pytest.mark.usefixtures("unreadable")
def test_a_folder_that_may_not_be_read_does_not_hide_the_data_directory_beside_it(
    tmp_path: Path,
) -> None:
    """The root of a file system has `lost+found`; a traceback would frighten even more."""
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "n1" / "state").mkdir(parents=True)
    ended = CliRunner().invoke(main, ["log", "verify", "--node-dir", str(tmp_path)])

    assert ended.exit_code == 1
    assert isinstance(ended.exception, SystemExit)
    assert f"did you mean --node-dir {tmp_path / 'n1'}?" in ended.output
