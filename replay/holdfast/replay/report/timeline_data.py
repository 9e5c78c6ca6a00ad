"""Timelines as the data of a page: small, within a budget, and safe inside of a `<script>`.

What does not fit is left out from the end, the least busy groups first, and counted. Knows the
analysis, not Spark.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from holdfast.coordinator.model.text import readable
from holdfast.replay.analyse.analysis import Analysis
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.timeline import CellRun, Timeline, Totals

BUDGET: Final = 3_000_000
"""Bytes of all timelines of a page."""

Json = dict[str, Any]


class Embedded(NamedTuple):
    """The timelines that a page holds, as text, and what is in the log but not in them."""

    text: str
    timelines: tuple[Timeline, ...]
    left_out: Totals


def embedded(analysis: Analysis, budget: int = BUDGET) -> Embedded:
    """Choose the timelines that fit, the strip of all others first, and write them as JSON."""
    kept, texts, left_out = [], [], Totals()
    exact = _exact(analysis)
    by_worth = sorted(analysis.timelines, key=lambda each: each.group != "")
    for each in by_worth:
        content = script_json(_timeline(each, exact.get(each.group, ())))
        if len(content) > budget:
            content = script_json(_timeline(each, ()))
        if len(content) > budget:
            left_out = left_out.plus(each.totals)
            continue
        budget -= len(content)
        kept.append(each)
        texts.append(content)
    order = sorted(range(len(kept)), key=lambda at: kept[at].group == "")
    head = script_json(_head(analysis))[:-1]
    text = f'{head},"timelines":[{",".join(texts[at] for at in order)}]}}'
    return Embedded(text, tuple(kept[at] for at in order), left_out)


def script_json(content: object) -> str:
    """Encode content as JSON that cannot end the script that it stands in."""
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def log_ms(wall_ms: int, analysis: Analysis) -> int:
    """Convert a wall time to log time, which falls behind at each failover (S8)."""
    offsets = analysis.clock_offsets
    before = [offset for since_ms, offset in offsets if since_ms <= wall_ms]
    return wall_ms + (before[-1] if before else offsets[0][1])


def _head(analysis: Analysis) -> Json:
    first_ms = analysis.first_ms
    marks = [[log_ms(m.wall_ms, analysis) - first_ms, readable(m.label)] for m in analysis.marks]
    frozen = [
        [
            readable(each.owner),
            log_ms(each.wall_ms, analysis) - first_ms,
            log_ms(each.until_wall_ms, analysis) - first_ms,
        ]
        for each in analysis.frozen
    ]
    span_ms = max(1, analysis.last_ms - first_ms)
    return {"span": span_ms, "marks": marks, "frozen": frozen}


def _exact(analysis: Analysis) -> dict[str, list[Interval]]:
    """Return the intervals of those groups whose every interval is at hand, relative to the log."""
    found: dict[str, list[Interval]] = {}
    since = analysis.first_ms
    for each in sorted(analysis.intervals, key=lambda interval: interval.start_ms):
        moved = each._replace(start_ms=each.start_ms - since, end_ms=each.end_ms - since)
        found.setdefault(each.group, []).append(moved)
    return found


def _timeline(each: Timeline, exact: Sequence[Interval]) -> Json:
    """Write equal cells once; a row is a flat list of column, columns, number of the cell.

    `exact`: the intervals, if there are not too many; of a row: start, length, owner.
    """
    owners: dict[str, int] = {}
    cells: dict[tuple[int, ...], int] = {}
    rows: list[list[int]] = [[] for _ in each.rows]
    for run in each.runs:
        cell = cells.setdefault(_cell(run, owners), len(cells))
        rows[run.row] += [run.column, run.columns, cell]
    intervals = {"exact": _intervals(each, exact, owners)} if exact else {}
    return {
        "group": readable(each.group),
        "width": each.column_ms,
        "owners": [readable(owner) for owner in owners],
        "cells": list(cells),
        "rows": rows,
        "names": _names(each.rows),
        **intervals,
        **each.totals._asdict(),
    }


def _intervals(
    each: Timeline, exact: Sequence[Interval], owners: dict[str, int]
) -> list[list[int]]:
    rows = {row.first: at for at, row in enumerate(each.rows)}
    found: list[list[int]] = [[] for _ in each.rows]
    for interval in exact:
        owner = owners.setdefault(interval.owner, len(owners))
        row = found[rows[f"{interval.topic}/{interval.partition}"]]
        row += [interval.start_ms, interval.end_ms - interval.start_ms, owner]
    return found


def _cell(run: CellRun, owners: dict[str, int]) -> tuple[int, ...]:
    """Owner, number of owners, times and counts; zeros at the end are left out."""
    owner = owners.setdefault(run.owner, len(owners)) if run.owner else -1
    told = [owner, *run[5:]]
    while not told[-1]:
        told.pop()
    return tuple(told)


def _names(rows: Sequence[Any]) -> list[list[Any]]:
    return [[readable(row.first), readable(row.last), row.partitions] for row in rows]
