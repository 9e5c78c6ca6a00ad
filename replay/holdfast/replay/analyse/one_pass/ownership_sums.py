"""Sum up what happened between neighbouring intervals: steps to other owners, gaps, overlaps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from holdfast.replay.analyse.analysis import Step
from holdfast.replay.analyse.one_pass.interval_table import Flags, Linked, Numbers
from holdfast.replay.analyse.one_pass.listed import LISTED_MAX
from holdfast.replay.analyse.timeline import GRIDS_MAX, STRIPS_MAX, Size, Totals

SIZES_MAX: Final = GRIDS_MAX + STRIPS_MAX


class GroupSteps(NamedTuple):
    """The steps of one group: see `GroupSummary`."""

    group: str
    steps: int
    moves: int
    kept: int
    ownerless_ms: int
    ownerless_max_ms: int
    overlaps: int


class StepSums:
    """What the steps of a bucket are, and how large its groups are."""

    def __init__(self, linked: Linked) -> None:
        """Look at all intervals of a bucket."""
        owner, member = linked.codes["owner"], linked.codes["member_id"]
        self._linked = linked
        after = linked.spans.after
        self._moved: Flags = after & _differs(owner)
        self._kept: Flags = after & ~self._moved & _differs(member)
        self._gap: Numbers = linked.spans.gap
        self._telling = np.flatnonzero(self._moved | (self._gap != 0))
        self.total = len(self._telling)

    def steps(self) -> list[Step]:
        """Return the steps worth a look, the longest gaps first."""
        linked, telling = self._linked, self._telling
        start = linked.spans.start
        order = np.lexsort((telling, start[telling], -self._gap[telling]))
        return [self._step(int(at)) for at in telling[order[:LISTED_MAX]]]

    def _step(self, at: int) -> Step:
        names, codes = self._linked.names, self._linked.codes
        return Step(
            group=names["group"][codes["group"][at]],
            topic=names["topic"][codes["topic"][at]],
            partition=int(self._linked.partition[at]),
            before=names["owner"][codes["owner"][at - 1]],
            after=names["owner"][codes["owner"][at]],
            ended=names["ended"][codes["ended"][at - 1]],
            at_ms=int(self._linked.spans.start[at]),
            gap_ms=int(self._gap[at]),
            moved=bool(self._moved[at]),
        )

    def groups(self) -> Iterator[GroupSteps]:
        """Sum up each group that has intervals."""
        starts = self._linked.group_starts
        if not len(starts):
            return
        ownerless = np.maximum(self._gap, 0)
        sums = [
            np.add.reduceat(column.astype(np.int64), starts).tolist()
            for column in (self._linked.spans.after, self._moved, self._kept, ownerless)
        ]
        longest = np.maximum.reduceat(ownerless, starts).tolist()
        overlaps = np.add.reduceat((self._gap < 0).astype(np.int64), starts).tolist()
        names = self._names(starts)
        yield from map(GroupSteps, names, *sums, longest, overlaps)

    def sizes(self) -> list[Size]:
        """Return how large the busiest groups are, the busiest first."""
        starts = self._linked.group_starts
        if not len(starts):
            return []
        lanes = np.add.reduceat((~self._linked.spans.after).astype(np.int64), starts).tolist()
        intervals = np.diff([*starts, len(self._linked)]).tolist()
        sizes = map(Size, self._names(starts), lanes, intervals)
        return sorted(sizes, key=place_of_size)[:SIZES_MAX]

    def whole(self) -> Totals:
        """Return what there is in all."""
        starts, after = self._linked.group_starts, self._linked.spans.after
        told = self._linked.spans.totals(0)
        return told._replace(groups=len(starts), partitions=int(np.count_nonzero(~after)))

    def _names(self, starts: Numbers) -> list[str]:
        groups = self._linked.names["group"]
        return [groups[code] for code in self._linked.codes["group"][starts].tolist()]


def place_of_size(size: Size) -> tuple[int, str]:
    """Return what groups are ordered by: the busiest first."""
    return -size.intervals, size.group


def place_of_step(step: Step) -> tuple[int, int, str, str, int]:
    """Return what steps are listed by: the longest gaps first."""
    return -step.gap_ms, step.at_ms, step.group, step.topic, step.partition


def _differs(column: Numbers) -> Flags:
    """Return of which rows it is another one than in the row before."""
    changed = np.zeros(len(column), np.bool_)
    changed[1:] = column[1:] != column[:-1]
    return changed
