"""Joins without a pause are found, and what is only much going on is not."""

from __future__ import annotations

import pytest

from holdfast.chaos.history import happenings as h
from simulation.hurry import JOINS_MAX, hurried
from simulation.schedule import US


def joins(count: int, every_us: int, outcome: str = "ok") -> list[h.Happening]:
    """Joins of one process, one every so often."""
    made: list[h.Happening] = []
    for call in range(count):
        at_us = call * every_us
        made.append(h.Invoked(at_us, call, "worker-1", "JoinGroup", "g", {}))
        made.append(h.Returned(at_us + 1, call, outcome, "", {}))  # type: ignore[arg-type]  # one of these
    return made


def test_joins_one_after_the_other_are_found_and_told_once() -> None:
    """K-Q9: a join that brings nothing must not be followed by the next one."""
    found = list(hurried(joins(10 * JOINS_MAX, 3_000)))

    assert [what for _, what in found] == ["worker-1 joined 'g' 16 times in a second"]
    assert found[0][0] == JOINS_MAX * 3_000 + 1


@pytest.mark.parametrize(
    ("count", "every_us", "outcome"),
    [
        (JOINS_MAX, 3_000, "ok"),
        (10 * JOINS_MAX, US // JOINS_MAX + 1, "ok"),
        (10 * JOINS_MAX, 3_000, "not-applied"),
    ],
    ids=["few", "slow", "answered by nobody who leads"],
)
def test_joins_that_come_of_changes_or_of_faults_are_let_be(
    count: int, every_us: int, outcome: str
) -> None:
    assert list(hurried(joins(count, every_us, outcome))) == []
