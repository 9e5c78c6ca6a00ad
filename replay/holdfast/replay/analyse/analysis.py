"""The results of an analysis, as values: the report shows them without Spark.

Times are log time in milliseconds (S8) unless a name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.rebalances import Rebalance


class Mark(NamedTuple):
    """An event outside the log, to be drawn on the picture."""

    wall_ms: int  # by the wall clock
    label: str


class Frozen(NamedTuple):
    """A time in which an owner did not run, seen from outside: the log shows it as an owner."""

    owner: str
    wall_ms: int  # by the wall clock
    until_wall_ms: int


class Step(NamedTuple):
    """The step from one owner of a partition to the next."""

    group: str
    topic: str
    partition: int
    before: str  # the owner before
    after: str  # the owner from `at_ms` on
    ended: str  # how the interval before ended
    at_ms: int
    gap_ms: int  # time without an owner; negative: both owned it for so long
    moved: bool  # false: it stayed with its instance, or was granted to the same member again


class GroupSummary(NamedTuple):
    """One group in numbers."""

    group: str
    rebalances: int
    moves: int
    kept: int  # partitions kept over a restart of a static member; a dynamic one moves them twice
    ownerless_ms: int  # time between two owners, summed over partitions
    ownerless_max_ms: int
    overlaps: int
    stable_p50_ms: int | None
    stable_max_ms: int | None


class Restless(NamedTuple):
    """An instance that was lost or swapped often."""

    group: str
    owner: str
    turns: int
    kinds: str
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """All results, for `tables`, `picture` and `writer`. Lists are cut at LISTED_MAX."""

    node: str
    records: int
    first_ms: int
    last_ms: int
    clock_offsets: tuple[tuple[int, int], ...]
    """From which wall time on log time differs by how much, in ms, to place marks: a new leader
    continues from the last log time, so log time falls behind at each failover."""
    groups: tuple[GroupSummary, ...]
    rebalances: tuple[Rebalance, ...]
    steps: tuple[Step, ...]
    restless: tuple[Restless, ...]
    intervals: tuple[Interval, ...]
    marks: tuple[Mark, ...]
    frozen: tuple[Frozen, ...] = ()
    cut: Position | None = None
    """A checkpoint stands for the records up to here: what was owned then is drawn from there on,
    and a rebalance that was under way is not listed."""
