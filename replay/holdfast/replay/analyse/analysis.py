"""What an analysis says, as values: for the report, which needs no Spark to show them.

Times are log time in milliseconds (S8) unless a name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from holdfast.replay.analyse.ownership import Interval
from holdfast.replay.analyse.rebalances import Rebalance


class Mark(NamedTuple):
    """Something that happened outside the log, by the wall clock in milliseconds, and its name."""

    wall_ms: int
    label: str


class Frozen(NamedTuple):
    """An owner that did not run, as seen from outside the log, by the wall clock in milliseconds.

    The log knows nothing of it before its session ends.
    """

    owner: str
    wall_ms: int
    until_wall_ms: int


class Step(NamedTuple):
    """From one owner of a partition to the next. Negative `gap_ms`: both at once, for so long.

    `moved`: to another owner. Otherwise the partition stayed with its instance, or was granted to
    the same member again.
    """

    group: str
    topic: str
    partition: int
    before: str
    after: str
    ended: str
    at_ms: int
    gap_ms: int
    moved: bool


class GroupSummary(NamedTuple):
    """One group in numbers. `kept`: partitions that stayed with an instance through its restarts.

    Dynamic members would have moved them, twice for each restart. `ownerless_ms` is summed over
    partitions and counts only time between two owners.
    """

    group: str
    rebalances: int
    moves: int
    kept: int
    ownerless_ms: int
    ownerless_max_ms: int
    overlaps: int
    stable_p50_ms: int | None
    stable_max_ms: int | None


class Restless(NamedTuple):
    """An instance that keeps coming and going, and how it did."""

    group: str
    owner: str
    turns: int
    kinds: str
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """All of it, for `tables`, `picture` and `report`. Lists are cut at LISTED_MAX.

    `clock_offsets`: log time minus wall time in milliseconds, and from which wall time on, to place
    marks: a new leader goes on from the last log time, so log time falls behind at each failover.
    """

    node: str
    records: int
    first_ms: int
    last_ms: int
    clock_offsets: tuple[tuple[int, int], ...]
    groups: tuple[GroupSummary, ...]
    rebalances: tuple[Rebalance, ...]
    steps: tuple[Step, ...]
    restless: tuple[Restless, ...]
    intervals: tuple[Interval, ...]
    marks: tuple[Mark, ...]
    frozen: tuple[Frozen, ...] = ()
