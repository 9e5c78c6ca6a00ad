"""Analyses made by hand, for tests of what a report shows."""

from __future__ import annotations

from holdfast.replay.analyse.analysis import Analysis, GroupSummary, Listed
from holdfast.replay.analyse.timeline import Bundle, CellRun, Timeline, Totals

SPAN_MS = 10_000


def timeline(group: str, *runs: CellRun, **totals: int) -> Timeline:
    """One partition in columns of a second."""
    told = Totals(groups=1, partitions=1)._replace(**totals)
    return Timeline(group, 1_000, (Bundle("t/0", "t/0", 1),), runs, told)


def owned(owner: str, column: int = 0, columns: int = 10) -> CellRun:
    return CellRun(0, 0, column, columns, owner, 1, 1_000, 0, 0, 0, 0)


def summary(group: str, rebalances: int = 1, ownerless_ms: int = 0) -> GroupSummary:
    return GroupSummary(group, rebalances, 0, 0, ownerless_ms, 0, 0, None, None)


def analysis(*timelines: Timeline, groups: tuple[GroupSummary, ...] = ()) -> Analysis:
    whole = Totals()
    for each in timelines:
        whole = whole.plus(each.totals)
    return Analysis(
        node="n1",
        records=1,
        first_ms=0,
        last_ms=SPAN_MS,
        clock_offsets=((0, 0),),
        groups=groups,
        rebalances=(),
        steps=(),
        restless=(),
        intervals=(),
        marks=(),
        timelines=timelines,
        whole=whole,
        listed=Listed(groups=len(groups)),
    )
