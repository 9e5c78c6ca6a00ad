"""All that one pass over a bucket counts, and the rows that the driver gets of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from holdfast.replay.analyse.analysis import Bar, Commits, GroupSummary, Listed, Restless, Step
from holdfast.replay.analyse.one_pass.clock import Clock, Tick
from holdfast.replay.analyse.one_pass.commits import CommitTally
from holdfast.replay.analyse.one_pass.instances import InstanceTally
from holdfast.replay.analyse.one_pass.interval_table import IntervalTable, Linked
from holdfast.replay.analyse.one_pass.listed import LISTED_MAX, first_of
from holdfast.replay.analyse.one_pass.ownership_sums import GroupSteps, StepSums
from holdfast.replay.analyse.one_pass.percentiles import median
from holdfast.replay.analyse.one_pass.rebalance_tally import RebalanceTally, Taken, bar_ms
from holdfast.replay.analyse.rebalances import Rebalance
from holdfast.replay.analyse.timeline import Size, Totals


class BucketTally:
    """Counts what a bucket's records and columns tell."""

    def __init__(self, begun_ms: int, last_ms: int) -> None:
        """`begun_ms` and `last_ms`: of the whole log."""
        self._last_ms = last_ms
        self.intervals = IntervalTable()
        self.instances = InstanceTally()
        self.rebalances = RebalanceTally(begun_ms, bar_ms(last_ms - begun_ms))
        self._clock = Clock()
        self._commits = CommitTally()

    def take(self, batch: pa.RecordBatch) -> None:
        """Count a batch of rows by their columns."""
        self._clock.take(batch)
        self._commits.take(batch)

    def told(self, linked: Linked) -> Iterator[tuple[type[Any], Sequence[Any]]]:
        """Yield rows of each kind; lists are cut, and `Listed` tells how long they were."""
        sums = StepSums(linked)
        groups = self._summaries({each.group: each for each in sums.groups()})
        commits = self._commits.rows(self._last_ms)
        restless = self.instances.rows()
        slowest = self.rebalances.slowest
        yield Tick, self._clock.ticks()
        yield GroupSummary, first_of(groups, place_of_summary)
        yield Rebalance, slowest.rows()
        yield Step, sums.steps()
        yield Restless, restless[:LISTED_MAX]
        yield Commits, commits[:LISTED_MAX]
        yield Bar, self.rebalances.bars()
        yield Taken, self.rebalances.taken()
        yield Size, sums.sizes()
        yield Totals, [sums.whole()]
        yield (
            Listed,
            [Listed(len(groups), slowest.total, sums.total, len(restless), len(commits))],
        )

    def _summaries(self, stepped: dict[str, GroupSteps]) -> list[GroupSummary]:
        """Sum up each group that had a rebalance, or a partition with another owner after one."""
        balanced = self.rebalances.number
        with_steps = {name for name, told in stepped.items() if told.steps}
        return [self._summary(name, stepped.get(name)) for name in with_steps | set(balanced)]

    def _summary(self, group: str, told: GroupSteps | None) -> GroupSummary:
        steps = told or GroupSteps(group, 0, 0, 0, 0, 0, 0)
        stable_ms = self.rebalances.stable_ms.get(group, [])
        return GroupSummary(
            group=group,
            rebalances=self.rebalances.number[group],
            moves=steps.moves,
            kept=steps.kept,
            ownerless_ms=steps.ownerless_ms,
            ownerless_max_ms=steps.ownerless_max_ms,
            overlaps=steps.overlaps,
            stable_p50_ms=median(stable_ms),
            stable_max_ms=max(stable_ms, default=None),
            swaps=self.instances.swaps[group],
        )


def place_of_summary(row: GroupSummary) -> tuple[int, int, str]:
    """Return what groups are listed by: the busiest first."""
    return -row.rebalances, -row.moves, row.group
