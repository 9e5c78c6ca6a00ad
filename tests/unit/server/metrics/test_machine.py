"""What the machine gives a node: memory, disk, open files, and how slow its disk is at worst."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.server.metrics import machine
from holdfast.storage.durations import Durations

if TYPE_CHECKING:
    from pathlib import Path


def durations(*seconds: float) -> Durations:
    made = Durations()
    for each in seconds:
        made.add(each)
    return made


def test_a_control_group_bounds_the_memory(tmp_path: Path) -> None:
    whole = machine.memory_bytes(tmp_path / "absent")
    limit = tmp_path / "memory.max"

    limit.write_text("1048576\n")
    assert machine.memory_bytes(limit) == 1 << 20
    limit.write_text("max\n")
    assert machine.memory_bytes(limit) == whole > 1 << 20


def test_a_directory_that_is_not_there_has_no_disk(tmp_path: Path) -> None:
    assert machine.disk_of(tmp_path / "absent") == (0, 0)
    assert 0 < machine.disk_of(tmp_path).free <= machine.disk_of(tmp_path).total


def test_one_in_a_hundred_is_told_by_the_bound_that_it_reached() -> None:
    assert machine.slowest_ms(durations()) == 0
    assert machine.slowest_ms(durations(*[0.001] * 99, 0.3)) == 0.5
    assert machine.slowest_ms(durations(*[0.001] * 98, 0.3, 0.3)) == 250
    assert machine.slowest_ms(durations(0.06)) == 50
    assert machine.slowest_ms(durations(100.0)) == 60_000
