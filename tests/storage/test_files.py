"""S20: how much room is left, and when that is too little."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.storage.disk.files import RESERVE_BYTES_MIN, below_reserve, free_bytes, reserve_bytes

MIB = 1024 * 1024


@pytest.fixture
def file_system(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A file system of any size, in MiB."""
    size = {"all": 0, "free": 0}

    def statvfs(_path: Path) -> os.statvfs_result:
        blocks = (MIB, MIB, size["all"], size["free"] + 7, size["free"], 0, 0, 0, 0, 255)
        return os.statvfs_result(blocks)

    monkeypatch.setattr(os, "statvfs", statvfs)
    return size


@pytest.mark.parametrize(
    ("all_mib", "free_mib", "reserve_mib", "below"),
    [
        pytest.param(1_000, 257, 256, False, id="small disk: 256 MiB"),
        pytest.param(1_000, 255, 256, True, id="small disk, too little left"),
        pytest.param(100_000, 5_001, 5_000, False, id="large disk: 5 %"),
        pytest.param(100_000, 4_999, 5_000, True, id="large disk, too little left"),
    ],
)
def test_the_reserve_is_the_larger_of_256_mib_and_5_percent(
    file_system: dict[str, int], all_mib: int, free_mib: int, reserve_mib: int, *, below: bool
) -> None:
    file_system.update(all=all_mib, free=free_mib)

    assert free_bytes(Path()) == free_mib * MIB
    assert reserve_bytes(Path()) == reserve_mib * MIB
    assert below_reserve(Path()) is below


def test_a_configured_reserve_takes_the_place_of_the_rule(file_system: dict[str, int]) -> None:
    file_system.update(all=1_000, free=10)

    assert not below_reserve(Path(), reserve=10 * MIB)
    assert below_reserve(Path(), reserve=10 * MIB + 1)
    assert RESERVE_BYTES_MIN == 256 * MIB
