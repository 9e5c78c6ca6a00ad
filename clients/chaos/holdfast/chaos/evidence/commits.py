"""By when each index of the log was surely committed, or acted by, as answers and grants prove.

A run on real processes does not see the commit itself; an answer, a grant or a watch that shows an
entry proves that the log had it by then. Knows no group and no invariant.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable

from holdfast.chaos.evidence.calls import NEVER
from holdfast.chaos.evidence.log_view import TOKEN_SPAN
from holdfast.chaos.evidence.memo import memo
from holdfast.chaos.history.happenings import Applied, Began, Granted, Happening, Returned, Watched


class Commits:
    """The moment by which each index was surely committed: it was told, granted or shown."""

    def __init__(self, history: Iterable[Happening], shows: Callable[[Happening], int]) -> None:
        earliest: dict[int, int] = {}
        for each in history:
            index = shows(each)
            if index:
                earliest.setdefault(index, each.at_us)
        self._indexes = sorted(earliest)
        self._by_us: list[int] = []
        least = NEVER
        for index in reversed(self._indexes):
            least = min(least, earliest[index])
            self._by_us.append(least)
        self._by_us.reverse()

    def proved_by(self, index: int) -> int:
        """Return the moment, in microseconds; NEVER if nothing proves the commit."""
        at = bisect_left(self._indexes, index)
        return self._by_us[at] if at < len(self._indexes) else NEVER


@memo
def commits_of(history: Iterable[Happening]) -> Commits:
    """Collect what a history proves about commits."""
    return Commits(history, _shows)


@memo
def told_of(history: Iterable[Happening]) -> Commits:
    """Collect by when the leader itself surely acted by each index, as its answers prove.

    What a watch shows or a node has applied is committed, but a follower may be some milliseconds
    ahead of a busy leader in that, which answers by what it has applied itself (S4).
    """
    return Commits(history, _tells)


def _shows(each: Happening) -> int:
    """Return the index up to which a happening proves that the log was committed; 0: none."""
    if isinstance(each, Watched | Applied):
        return each.index
    return _tells(each)


def _tells(each: Happening) -> int:
    """Return the index that an answer of the leader proves to be applied there; 0: none."""
    if isinstance(each, Granted):
        return each.token % TOKEN_SPAN
    if isinstance(each, Returned) and each.outcome == "ok" and each.result.get("position"):
        return int(each.result["position"][0])
    return 0


def is_exact(history: Iterable[Happening]) -> bool:
    """Return whether records have the time of their apply, not the earliest that is possible."""
    return not any(isinstance(each, Began) and each.source == "cluster" for each in history)
