"""A group of any size as the analysis of its log, made without a log: all lose all once.

For 100 seconds: from 10 s on each partition has an owner, from 40 s to 60 s none has, and from then
on each has the next member.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Final

from holdfast.replay.analyse.analysis import Analysis, Bar, GroupSummary, Listed, Mark, Step
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.timeline import ROWS_FIRST, Bundle, CellRun, Timeline, Totals
from unit.replay.report.reports import analysis

FIRST_MS: Final = 10_000
LOST_MS: Final = 40_000
BACK_MS: Final = 60_000
SPAN_MS: Final = 100_000
LISTED: Final = 1_000
EXACT: Final = 64

_COLUMN_MS: Final = 1_000
_GROUP: Final = "a-group-with-a-name-" + "that-is-long-" * 12


def crew(members: int, partitions: int) -> Analysis:
    """The analysis, with tables as long as they get."""
    drawn = Timeline(
        _GROUP,
        _COLUMN_MS,
        _bundles(partitions),
        tuple(run for row in range(_rows(partitions)) for run in _runs(row, members, partitions)),
        _totals(partitions),
    )
    summary = GroupSummary(_GROUP, 2, partitions, 0, _gap_ms(partitions), 20_000, 0, 80, 20_000)
    return replace(
        analysis(drawn, groups=(summary,)),
        last_ms=SPAN_MS,
        intervals=_intervals(members, partitions) if partitions <= EXACT else (),
        marks=(Mark(LOST_MS, "n1 killed"), Mark(LOST_MS + 500, "n2 leads")),
        steps=tuple(_step(number, members) for number in range(min(partitions, LISTED))),
        listed=Listed(groups=1, steps=partitions),
        bars=(Bar(0, "JoinGroup", 3), Bar(8, "DeadlineFired", 1)),
        bar_ms=5_000,
    )


def _totals(partitions: int) -> Totals:
    return Totals(1, partitions, 2 * partitions, gaps=partitions, gap_ms=_gap_ms(partitions))


def _gap_ms(partitions: int) -> int:
    return partitions * (BACK_MS - LOST_MS)


def _rows(partitions: int) -> int:
    return min(partitions, ROWS_FIRST)


def _edges(partitions: int) -> list[int]:
    rows = _rows(partitions)
    return [row * partitions // rows for row in range(rows + 1)]


def _bundles(partitions: int) -> tuple[Bundle, ...]:
    edges = _edges(partitions)
    return tuple(
        Bundle(f"documents/{since}", f"documents/{until - 1}", until - since)
        for since, until in pairwise(edges)
    )


def _runs(row: int, members: int, partitions: int) -> tuple[CellRun, ...]:
    since, until = _edges(partitions)[row : row + 2]
    size = until - since
    owners = min(size, members)
    first, then = (_owner(row + n, members) if owners == 1 else "" for n in (0, 1))
    owned, lost = size * _COLUMN_MS, size * _COLUMN_MS
    return (
        CellRun(0, row, 10, 30, first, owners, owned, 0, 0, 0, 0),
        CellRun(0, row, 40, 1, "", 0, 0, lost, size, 0, 0),
        CellRun(0, row, 41, 19, "", 0, 0, lost, 0, 0, 0),
        CellRun(0, row, 60, 40, then, owners, owned, 0, 0, 0, 0),
    )


def _owner(number: int, members: int) -> str:
    return f"worker-{number % members + 1}"


def _intervals(members: int, partitions: int) -> tuple[Interval, ...]:
    return tuple(
        Interval(
            _GROUP, "documents", number, _owner(number + at, members), "m", at, *when, "left", 0
        )
        for number in range(partitions)
        for at, when in enumerate(((FIRST_MS, LOST_MS), (BACK_MS, SPAN_MS)))
    )


def _step(number: int, members: int) -> Step:
    before, after = _owner(number, members), _owner(number + 1, members)
    gap_ms = BACK_MS - LOST_MS
    return Step(_GROUP, "documents", number, before, after, "expired", BACK_MS, gap_ms, moved=True)
