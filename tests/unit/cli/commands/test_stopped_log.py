"""`holdfast log verify` tells where the records are if it was given the folder around them."""

from __future__ import annotations

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
