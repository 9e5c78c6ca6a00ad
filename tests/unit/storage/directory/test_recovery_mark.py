"""S13: a directory says of which restore it is; damage to that is never taken for "of none"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.storage.directory.data_directory import DataDirectory, is_empty
from holdfast.storage.directory.recovery_mark import (
    RECOVERY_NAME,
    RecoveryMark,
    read_mark,
    write_mark,
)
from holdfast.storage.errors import DirectoryRefused

if TYPE_CHECKING:
    from pathlib import Path


def test_a_directory_without_a_mark_was_never_restored(tmp_path: Path) -> None:
    assert read_mark(tmp_path) == RecoveryMark(0, 0)


def test_the_newest_mark_counts(tmp_path: Path) -> None:
    write_mark(tmp_path, RecoveryMark(1, 7))
    write_mark(tmp_path, RecoveryMark(2, 9))
    assert read_mark(tmp_path) == RecoveryMark(2, 9)
    assert [file.name for file in tmp_path.iterdir()] == [RECOVERY_NAME]


def test_any_damage_is_refused(tmp_path: Path) -> None:
    write_mark(tmp_path, RecoveryMark(1, 7))
    path = tmp_path / RECOVERY_NAME
    sound = path.read_bytes()
    for place in range(len(sound)):
        flipped = bytearray(sound)
        flipped[place] ^= 0x01
        path.write_bytes(flipped)
        with pytest.raises(DirectoryRefused, match="--rebuild"):
            read_mark(tmp_path)
    for size in range(len(sound)):
        path.write_bytes(sound[:size])
        with pytest.raises(DirectoryRefused, match="--rebuild"):
            read_mark(tmp_path)


def test_a_mark_alone_is_no_data(tmp_path: Path) -> None:
    """A blank disk that has heard of a restore and nothing more may begin again."""
    write_mark(tmp_path, RecoveryMark(1, 7))
    assert is_empty(tmp_path)
    with DataDirectory(
        tmp_path, cluster_id="c", node_id="n", rebuild=True, disk_reserve_bytes=0
    ) as directory:
        assert directory.recovery == RecoveryMark(1, 7)
        assert directory.verdict.blank
