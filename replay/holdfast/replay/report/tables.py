"""Analyses as tables: titles, heads and cells are text, the same for a terminal and for HTML.

Knows the analysis, not Spark.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from holdfast.coordinator.model.text import readable
from holdfast.replay.analyse.analysis import Analysis, GroupSummary, Restless, Step
from holdfast.replay.analyse.rebalances import Rebalance


class Table(NamedTuple):
    """A table for people. `about` explains how to read it, or why it is empty."""

    title: str
    about: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(analysis: Analysis) -> list[Table]:
    """Make all tables of a report, the most important first; cells have no control characters."""
    return [
        table._replace(rows=tuple(tuple(map(readable, row)) for row in table.rows))
        for table in _tables(analysis)
    ]


def _tables(analysis: Analysis) -> list[Table]:
    since = analysis.first_ms
    return [
        Table(
            "Groups",
            "Kept: partitions that stayed with their instance through a restart; dynamic members "
            "would have moved them. Times without an owner count what lies between two owners.",
            _GROUP_HEAD,
            tuple(_group(summary) for summary in analysis.groups),
        ),
        Table(
            "Rebalances",
            "Why each began, who caused it, and how long until every assignment was in force.",
            _REBALANCE_HEAD,
            tuple(_rebalance(each, since) for each in analysis.rebalances),
        ),
        Table(
            "Changes of owner",
            "Moves, times without an owner, and overlaps, the longest gaps first.",
            _STEP_HEAD,
            tuple(_step(step, since) for step in analysis.steps),
        ),
        Table(
            "Restless instances",
            "Swapped or expired again and again within ten minutes.",
            _RESTLESS_HEAD,
            tuple(_restless(each, since) for each in analysis.restless),
        ),
    ]


def heading(analysis: Analysis) -> str:
    """Write what the report covers, in a sentence."""
    day = datetime.fromtimestamp(analysis.first_ms / 1000, UTC)
    length = duration(analysis.last_ms - analysis.first_ms)
    told = (
        f"{analysis.records} records of node {readable(analysis.node)}, {length} from "
        f"{day:%Y-%m-%d %H:%M:%S} UTC"
    )
    if analysis.cut is None:
        return told
    place = f"{analysis.cut.index}.{analysis.cut.ordinal}"
    return (
        f"{told}. The history begins at the checkpoint at {place}: what was owned then is shown "
        "from there on, and a rebalance that was under way is left out"
    )


def plain(table: Table) -> str:
    """Format a table for a terminal."""
    if not table.rows:
        return f"{table.title}: none"
    lines = [table.head, *table.rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.head))]
    body = ["  ".join(_pad(c, w) for c, w in zip(line, widths, strict=True)) for line in lines]
    return "\n".join([table.title, table.about, "", *(line.rstrip() for line in body)])


def duration(milliseconds: int | None) -> str:
    """Format milliseconds for people."""
    if milliseconds is None:
        return "never"
    if abs(milliseconds) < 1_000:  # noqa: PLR2004 - a second
        return f"{milliseconds} ms"
    if abs(milliseconds) < 120_000:  # noqa: PLR2004 - two minutes
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds / 60_000:.1f} min"


_GROUP_HEAD = (
    *("group", "rebalances", "moves", "kept", "without owner", "longest", "overlaps"),
    *("stable after (median)", "(longest)"),
)
_REBALANCE_HEAD = ("at", "group", "entry", "reason", "by", "rule", "generation", "joined", "stable")
_STEP_HEAD = ("at", "group", "partition", "from", "to", "ended by", "gap", "moved")
_RESTLESS_HEAD = ("group", "instance", "turns", "how", "first", "last")


def _group(each: GroupSummary) -> tuple[str, ...]:
    return (
        each.group,
        str(each.rebalances),
        str(each.moves),
        str(each.kept),
        duration(each.ownerless_ms),
        duration(each.ownerless_max_ms),
        str(each.overlaps),
        duration(each.stable_p50_ms),
        duration(each.stable_max_ms),
    )


def _rebalance(each: Rebalance, since_ms: int) -> tuple[str, ...]:
    return (
        _when(each.start_ms, since_ms),
        each.group,
        str(each.entry),
        each.reason,
        each.who or "-",
        f"{each.rule} {each.command}".strip(),
        str(each.generation),
        duration(each.joined_ms),
        duration(each.stable_ms),
    )


def _step(each: Step, since_ms: int) -> tuple[str, ...]:
    return (
        _when(each.at_ms, since_ms),
        each.group,
        f"{each.topic}/{each.partition}",
        each.before,
        each.after,
        each.ended,
        duration(each.gap_ms),
        "yes" if each.moved else "no",
    )


def _restless(each: Restless, since_ms: int) -> tuple[str, ...]:
    first, last = _when(each.first_ms, since_ms), _when(each.last_ms, since_ms)
    return (each.group, each.owner, str(each.turns), each.kinds, first, last)


def _when(at_ms: int, since_ms: int) -> str:
    return f"+{(at_ms - since_ms) / 1000:.1f} s"


def _pad(cell: str, width: int) -> str:
    number = cell.lstrip("+-")[:1].isdigit()
    return cell.rjust(width) if number else cell.ljust(width)
