"""Analyses as tables: titles, heads and cells are text, the same for a terminal and for HTML.

Knows the analysis, not Spark.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from holdfast.coordinator.model.text import readable
from holdfast.replay.analyse.analysis import (
    Analysis,
    Cause,
    Commits,
    GroupSummary,
    Restless,
    Step,
)
from holdfast.replay.analyse.rebalances import Rebalance


class Cell(NamedTuple):
    """What stands in a table; `value` is what it is sorted by, if that is a number."""

    text: str
    value: float | None = None


class Table(NamedTuple):
    """A table for people. `about` explains how to read it, or why it is empty."""

    title: str
    about: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int = 0
    """How many rows there are in the log; those that are not here are counted where it is shown."""

    @property
    def missing(self) -> str:
        """Say how many rows are not listed; "" if all are."""
        if self.total <= len(self.rows):
            return ""
        return f"{len(self.rows):,} of {self.total:,} are listed, {self._rest:,} are not."

    @property
    def _rest(self) -> int:
        return self.total - len(self.rows)


def tables(analysis: Analysis) -> list[Table]:
    """Make all tables of a report, the most important first; cells have no control characters."""
    return [
        table._replace(rows=tuple(tuple(map(_safe, row)) for row in table.rows))
        for table in _tables(analysis)
    ]


def _safe(cell: Cell) -> Cell:
    return cell._replace(text=readable(cell.text))


def _tables(analysis: Analysis) -> list[Table]:
    since, listed = analysis.first_ms, analysis.listed
    return [
        Table(
            "Groups",
            "Kept: partitions that stayed with their instance under a new member id. If the same "
            "history had no instance ids, each of them would be a move, and each swap a member "
            "gone and a member joined. Times without an owner lie between two owners. "
            "The busiest groups first: by rebalances, then by moves.",
            _GROUP_HEAD,
            tuple(_group(summary) for summary in analysis.groups),
            listed.groups,
        ),
        Table(
            "Rebalances",
            "Why each began, who caused it, and how long until every assignment was in force. If "
            "there are too many, the slowest are listed, and those that never were in force.",
            _REBALANCE_HEAD,
            tuple(_rebalance(each, since) for each in analysis.rebalances),
            listed.rebalances,
        ),
        Table(
            "Changes of owner",
            "Moves, times without an owner, and overlaps, the longest gaps first.",
            _STEP_HEAD,
            tuple(_step(step, since) for step in analysis.steps),
            listed.steps,
        ),
        Table(
            "Flapping and fenced instances",
            "Turns: the most swaps and ends of sessions within ten minutes; three are flapping. "
            "Fenced: swaps that no release came before, so the process before may have run on.",
            _RESTLESS_HEAD,
            tuple(_restless(each, since) for each in analysis.restless),
            listed.restless,
        ),
        Table(
            "Rebalances by cause",
            "All of them: the command that began it; in the heartbeat protocol, what changed.",
            _CAUSE_HEAD,
            tuple(map(_cause, analysis.causes)),
        ),
        Table(
            "Commits",
            "The log has what was committed, not what was produced: so this is the time between "
            "commits of a partition, and for how long one had none when the log ended.",
            _COMMITS_HEAD,
            tuple(map(_commits, analysis.commits)),
            listed.commits,
        ),
    ]


def heading(analysis: Analysis) -> str:
    """Write what the report covers, in a sentence."""
    day = datetime.fromtimestamp(analysis.first_ms / 1000, UTC)
    length = duration(analysis.last_ms - analysis.first_ms)
    told = (
        f"{many(analysis.records, 'record')} of node {readable(analysis.node)}, {length} from "
        f"{day:%Y-%m-%d %H:%M:%S} UTC"
    )
    if analysis.cut is None:
        return told
    place = f"{analysis.cut.index}.{analysis.cut.ordinal}"
    return (
        f"{told}. The history begins at the checkpoint at {place}: what was owned then is shown "
        "from there on, and a rebalance that was under way is left out"
    )


def many(number: int, thing: str) -> str:
    """Write a number of things, whose name has no other plural than with an s."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def plain(table: Table) -> str:
    """Format a table for a terminal."""
    if not table.rows:
        return f"{table.title}: none"
    lines = [table.head, *(tuple(cell.text for cell in row) for row in table.rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.head))]
    body = ["  ".join(_pad(c, w) for c, w in zip(line, widths, strict=True)) for line in lines]
    about = f"{table.about} {table.missing}".rstrip()
    return "\n".join([table.title, about, "", *(line.rstrip() for line in body)])


def duration(milliseconds: int | None) -> str:
    """Format milliseconds for people."""
    if milliseconds is None:
        return "never"
    if abs(milliseconds) < 1_000:  # noqa: PLR2004 - a second
        return f"{milliseconds} ms"
    if abs(milliseconds) < 120_000:  # noqa: PLR2004 - two minutes
        return f"{milliseconds / 1000:.1f} s"
    if abs(milliseconds) < 7_200_000:  # noqa: PLR2004 - two hours
        return f"{milliseconds / 60_000:.1f} min"
    return f"{milliseconds / 3_600_000:,.1f} h"


_GROUP_HEAD = (
    *("group", "rebalances", "moves", "kept", "moves without ids", "swaps"),
    *("without owner", "longest", "overlaps", "stable after (median)", "(longest)"),
)
_REBALANCE_HEAD = ("at", "group", "entry", "reason", "by", "rule", "generation", "joined", "stable")
_STEP_HEAD = ("at", "group", "partition", "from", "to", "ended by", "gap", "moved")
_RESTLESS_HEAD = (
    *("group", "instance", "turns", "how", "planned swaps", "fenced", "lost", "first", "last"),
)
_CAUSE_HEAD = ("cause", "rebalances", "never stable", "stable after (median)", "(longest)")
_COMMITS_HEAD = (
    *("group", "partitions", "commits", "every (mean)", "longest silent", "silent for"),
)


def _group(each: GroupSummary) -> tuple[Cell, ...]:
    return (
        Cell(each.group),
        _count(each.rebalances),
        _count(each.moves),
        _count(each.kept),
        _count(each.moves + each.kept),
        _count(each.swaps),
        _lasted(each.ownerless_ms),
        _lasted(each.ownerless_max_ms),
        _count(each.overlaps),
        _lasted(each.stable_p50_ms),
        _lasted(each.stable_max_ms),
    )


def _rebalance(each: Rebalance, since_ms: int) -> tuple[Cell, ...]:
    return (
        _when(each.start_ms, since_ms),
        Cell(each.group),
        _count(each.entry),
        Cell(each.reason),
        Cell(each.who or "-"),
        Cell(f"{each.rule} {each.command}".strip()),
        _count(each.generation),
        _lasted(each.joined_ms),
        _lasted(each.stable_ms),
    )


def _step(each: Step, since_ms: int) -> tuple[Cell, ...]:
    return (
        _when(each.at_ms, since_ms),
        Cell(each.group),
        Cell(f"{each.topic}/{each.partition}"),
        Cell(each.before),
        Cell(each.after),
        Cell(each.ended),
        _lasted(each.gap_ms),
        Cell("yes" if each.moved else "no"),
    )


def _restless(each: Restless, since_ms: int) -> tuple[Cell, ...]:
    first, last = _when(each.first_ms, since_ms), _when(each.last_ms, since_ms)
    counts = (_count(each.planned), _count(each.fenced), _count(each.lost))
    names = (Cell(each.group), Cell(each.owner), _count(each.turns), Cell(each.kinds))
    return (*names, *counts, first, last)


def _cause(each: Cause) -> tuple[Cell, ...]:
    return (
        Cell(each.cause or "unknown"),
        _count(each.rebalances),
        _count(each.never),
        _lasted(each.stable_p50_ms),
        _lasted(each.stable_max_ms),
    )


def _commits(each: Commits) -> tuple[Cell, ...]:
    return (
        Cell(each.group),
        _count(each.partitions),
        _count(each.commits),
        Cell("-") if each.every_ms is None else _lasted(each.every_ms),
        Cell(each.silent),
        _lasted(each.silent_ms),
    )


def _count(number: int) -> Cell:
    return Cell(str(number), number)


def _lasted(milliseconds: int | None) -> Cell:
    return Cell(duration(milliseconds), milliseconds)


def _when(at_ms: int, since_ms: int) -> Cell:
    return Cell(f"+{(at_ms - since_ms) / 1000:.1f} s", at_ms - since_ms)


def _pad(cell: str, width: int) -> str:
    number = cell.lstrip("+-")[:1].isdigit()
    return cell.rjust(width) if number else cell.ljust(width)
