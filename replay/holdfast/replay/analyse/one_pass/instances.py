"""Find the instances that were lost or swapped often, and those whose process was fenced.

A swap that follows a release of the same instance was planned; any other fences a process that may
still run (S12).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.replay.analyse.analysis import Restless
from holdfast.replay.analyse.rebalances import Turn

RESTLESS_TURNS: Final = 3
"""An instance that was lost or swapped this often within the window is restless."""

RESTLESS_WINDOW_MS: Final = 10 * 60 * 1000
_LOST: Final = frozenset({"expired", "refused"})
_SWAPPED: Final = "swapped"
_RELEASED: Final = "released"


class InstanceTally:
    """Follows all instances of a bucket."""

    def __init__(self) -> None:
        """None is known yet."""
        self.swaps: Counter[str] = Counter()
        """Of each group."""
        self._turns: dict[tuple[str, str], list[tuple[int, str]]] = {}

    def take(self, turn: Turn) -> None:
        """Take in how a member came or went."""
        self._turns.setdefault((turn.group, turn.owner), []).append((turn.at_ms, turn.kind))
        if turn.kind == _SWAPPED:
            self.swaps[turn.group] += 1

    def rows(self) -> list[Restless]:
        """Tell of those that were restless or fenced, the worst first."""
        return sorted(self._telling(), key=place_of_restless)

    def _telling(self) -> Iterator[Restless]:
        for (group, owner), turns in self._turns.items():
            if len(turns) >= RESTLESS_TURNS or any(kind == _SWAPPED for _, kind in turns):
                told = _judged(group, owner, sorted(turns))
                if told and (told.turns >= RESTLESS_TURNS or told.fenced):
                    yield told


def place_of_restless(row: Restless) -> tuple[int, int, str, str]:
    """Return what they are listed by."""
    return -row.turns, -row.fenced, row.group, row.owner


def _judged(group: str, owner: str, turns: Sequence[tuple[int, str]]) -> Restless | None:
    """Sum up the turns of one owner, in order; those of a millisecond are in that of their names.

    So a release comes before its swap, at the latest.
    """
    told = [(at_ms, kind) for at_ms, kind in turns if kind == _SWAPPED or kind in _LOST]
    if not told:
        return None
    before = ["", *(kind for _, kind in turns)]
    after_release = [was for was, (_, kind) in zip(before, turns, strict=False) if kind == _SWAPPED]
    planned = after_release.count(_RELEASED)
    return Restless(
        group=group,
        owner=owner,
        turns=_most_within_window([at_ms for at_ms, _ in told]),
        kinds=", ".join(sorted({kind for _, kind in told})),
        first_ms=told[0][0],
        last_ms=told[-1][0],
        planned=planned,
        fenced=len(after_release) - planned,
        lost=sum(kind in _LOST for _, kind in told),
    )


def _most_within_window(times: Sequence[int]) -> int:
    """Return how many there are at most in a window that ends at one of them."""
    return max(
        bisect_right(times, at_ms) - bisect_left(times, at_ms - RESTLESS_WINDOW_MS)
        for at_ms in times
    )
