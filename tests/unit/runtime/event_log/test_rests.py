"""Long work rests in proportion to what it did, and not at all once somebody waits for it."""

from __future__ import annotations

import itertools
from threading import Event

import pytest

from holdfast.runtime.event_log.rests import SLICE_S, Rests


class Clock:
    """Each look at it takes so long."""

    def __init__(self, step: float) -> None:
        self.step, self.now = step, 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class Waits(Event):
    """Keeps how long it was waited for, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        if not self.is_set():
            self.seconds.append(timeout)
        return self.is_set()


def resting(step: float, rest: float) -> tuple[Rests, Waits]:
    rests, waits = Rests(rest, Clock(step)), Waits()
    rests._hurried = waits
    return rests, waits


def test_all_items_come_in_order() -> None:
    rests, _ = resting(step=SLICE_S, rest=3.0)
    assert list(rests.over(range(100))) == list(range(100))


def test_a_rest_is_in_proportion_to_the_slice_before_it() -> None:
    rests, waits = resting(step=2 * SLICE_S, rest=3.0)
    assert list(rests.over("ab")) == ["a", "b"]
    assert waits.seconds == [pytest.approx(6 * SLICE_S)] * 2


def test_a_slice_goes_on_until_it_is_long_enough() -> None:
    rests, waits = resting(step=SLICE_S / 4.5, rest=1.0)
    assert len(list(rests.over(range(10)))) == 10
    assert waits.seconds == [pytest.approx(SLICE_S * 5 / 4.5)] * 2


def test_who_is_in_a_hurry_does_not_rest() -> None:
    """A node that stops, or whose next snapshot is due already."""
    rests, waits = resting(step=2 * SLICE_S, rest=3.0)
    items = rests.over(itertools.count())
    assert [next(items), next(items)] == [0, 1]
    rests.hurry()
    assert [next(items), next(items)] == [2, 3]
    assert len(waits.seconds) == 1


def test_a_hurry_ends_the_rest_under_way() -> None:
    """The real event: a rest of an hour would end this test's patience."""
    rests = Rests(rest=3_600 / SLICE_S, clock=Clock(SLICE_S))
    rests.hurry()
    assert list(rests.over(range(3))) == [0, 1, 2]


def test_without_a_share_of_rest_there_is_none() -> None:
    """The simulator's clock does not move by itself."""
    rests, waits = resting(step=2 * SLICE_S, rest=0.0)
    assert list(rests.over(range(5))) == list(range(5))
    assert waits.seconds == []
