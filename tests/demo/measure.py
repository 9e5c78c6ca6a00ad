"""What the run came to: who owned what when, moves, gaps. Pure functions over recorded facts.

A partition is worked on from the claim of a grant until its worker lets go of it, is frozen, or
somebody else claims. Times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from demo.diary import End
from demo.store import Claim


class Freeze(NamedTuple):
    """A worker stood still from a moment on, until it was thawed."""

    at: float
    worker: str
    until: float = inf


class Interval(NamedTuple):
    """One worker's time with one partition under one claim."""

    partition: int
    worker: str
    begin: float
    end: float


class Window(NamedTuple):
    """The time of one phase."""

    begin: float
    end: float


def intervals(
    claims: Iterable[Claim], ends: Iterable[End], freezes: Iterable[Freeze], until: float
) -> list[Interval]:
    """The time from each claim to what ended it first; those that nothing ended last `until`."""
    ends, freezes = list(ends), list(freezes)
    found = []
    for history in _by_partition(claims).values():
        following = [claim.at for claim in history[1:]]
        for claim, next_at in zip(history, [*following, until], strict=True):
            stops = [freeze.at for freeze in freezes if freeze.worker == claim.worker]
            stops += [end.at for end in ends if _is_of(end, claim)]
            end = min([next_at, *(at for at in stops if at >= claim.at)])
            found.append(Interval(claim.partition, claim.worker, claim.at, end))
    return found


def moves(claims: Iterable[Claim], window: Window) -> int:
    """How often a partition got another worker, by instance id: a restart is no move."""
    return sum(
        one.worker != two.worker and window.begin <= two.at < window.end
        for history in _by_partition(claims).values()
        for one, two in pairwise(history)
    )


def longest_gap(owned: Iterable[Interval], window: Window) -> float:
    """The longest time in a window in which some partition had nobody, in seconds."""
    return max((end - begin for _, begin, end in gaps(owned, window)), default=0.0)


def gaps(owned: Iterable[Interval], window: Window) -> list[tuple[int, float, float]]:
    """Every (partition, begin, end) without a worker, cut to the window."""
    by_partition: dict[int, list[Interval]] = {}
    for interval in sorted(owned, key=lambda one: one.begin):
        by_partition.setdefault(interval.partition, []).append(interval)
    return [
        (partition, begin, end)
        for partition, history in by_partition.items()
        for begin, end in _between(history, window)
    ]


def _between(history: Sequence[Interval], window: Window) -> Iterable[tuple[float, float]]:
    """The parts of a window that no interval covers."""
    covered = window.begin
    for interval in history:
        if interval.begin > covered:
            yield covered, min(interval.begin, window.end)
        if interval.begin >= window.end:
            return
        covered = max(covered, interval.end)
        if covered >= window.end:
            return
    yield covered, window.end


def _by_partition(claims: Iterable[Claim]) -> dict[int, list[Claim]]:
    found: dict[int, list[Claim]] = {}
    for claim in claims:
        found.setdefault(claim.partition, []).append(claim)
    return found


def _is_of(end: End, claim: Claim) -> bool:
    """Whether an end speaks about what was claimed."""
    return (end.worker, end.partition, end.token) == (claim.worker, claim.partition, claim.token)
