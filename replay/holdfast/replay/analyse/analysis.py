"""The results of an analysis, as values: the report shows them without Spark.

Times are log time in milliseconds (S8) unless a name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.rebalances import Rebalance
from holdfast.replay.analyse.timeline import NONE, Timeline, Totals


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
    swaps: int = 0  # restarts under an instance id: without it, a member gone and a member joined


class Restless(NamedTuple):
    """An instance that was lost or swapped often, or fenced."""

    group: str
    owner: str
    turns: int  # the most within ten minutes
    kinds: str
    first_ms: int
    last_ms: int
    planned: int = 0  # swaps after a release
    fenced: int = 0  # swaps without one: a process that had not stopped, or was not known to have
    lost: int = 0  # expired or refused


class Cause(NamedTuple):
    """All rebalances that began for one reason."""

    cause: str
    rebalances: int
    never: int  # were never stable
    stable_p50_ms: int | None
    stable_max_ms: int | None


class Bar(NamedTuple):
    """The rebalances of one cause that began in one span of time."""

    at: int  # counted from the first record, in spans
    cause: str
    rebalances: int


class Commits(NamedTuple):
    """How a group committed. The log has no ends of partitions, so there is no lag in offsets."""

    group: str
    partitions: int  # that were ever committed
    commits: int  # offsets
    every_ms: int | None  # between two commits of a partition, on average
    silent: str  # the partition whose last commit is the oldest
    silent_ms: int  # from that commit to the end of the log


class Listed(NamedTuple):
    """How many there are in the whole log of what the lists have LISTED_MAX of at most."""

    groups: int = 0
    rebalances: int = 0
    steps: int = 0
    restless: int = 0
    commits: int = 0


_LISTED: Final = Listed()


@dataclass(frozen=True, slots=True)
class Analysis:
    """All results, for `tables`, `picture` and `writer`. Lists are cut at LISTED_MAX.

    `intervals` are those of the groups that a picture can show exactly, each group's whole.
    """

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
    timelines: tuple[Timeline, ...] = ()
    """Of all groups; those without one of their own are in the last, together."""
    whole: Totals = NONE
    """What there is in the whole log, counted apart from the timelines."""
    listed: Listed = _LISTED
    causes: tuple[Cause, ...] = ()
    bars: tuple[Bar, ...] = ()
    """All rebalances, by the time and the cause of their beginning; `bar_ms` is such a time."""
    bar_ms: int = 60_000
    commits: tuple[Commits, ...] = ()
