"""Whether a round kept what it must: a row for each, its bounds, and the table.

Pure: what was seen comes in, sentences and lines go out.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cluster.load import Acked
    from upgrades.plan import Kind

GAP_S_MAX: Final = 1.5
"""The longest time without an accepted change, however many callers ask for one."""
_HEAD: Final = ("round", "kind", "restarts", "changes", "moves", "lost", "twice", "longest gap")


class Logged(NamedTuple):
    """A commit as the event log holds it."""

    group: str
    partition: int
    offset: int
    entry: int
    """Its index. An answer's ordinal is that of the request's own record, which follows."""


class Row(NamedTuple):
    """What came of a round."""

    number: int
    kind: Kind
    restarts: int
    changes: int
    """Commits that were acknowledged."""
    moves: int
    """Partitions that changed hands, and those that a member had to give up by itself."""
    lost: int
    """Acknowledged commits that the log does not hold as they were told."""
    twice: int
    """Request ids that the log holds more than once (S15)."""
    gap_s: float
    """The longest time between two acknowledgements, by whoever asked."""


def longest_gap(acked_at: Iterable[float], begin: float, end: float) -> float:
    """Return the longest time without an acknowledgement, in seconds, between two moments."""
    moments = sorted(moment for moment in acked_at if begin < moment < end)
    return max(later - sooner for sooner, later in pairwise([begin, *moments, end]))


def lost(acked: Iterable[Acked], log: Mapping[str, Sequence[Logged]]) -> list[Acked]:
    """Return the acknowledged commits that the log does not hold as they were told (S5)."""
    return [each for each in acked if _as_told(each) not in log.get(each.request_id, ())]


def _as_told(acked: Acked) -> Logged:
    return Logged(acked.place.group, acked.place.partition, acked.offset, acked.position[0])


def twice(log: Mapping[str, Sequence[Logged]]) -> list[str]:
    """Return the request ids that were carried out more than once (S15)."""
    return [request_id for request_id, found in log.items() if len(found) > 1]


def problems(row: Row) -> list[str]:
    """Say what a round did not keep; how long a gap may be is judged by `too_slow`."""
    counted = {
        "partitions moved": row.moves,
        "acknowledged changes are lost": row.lost,
        "changes were made twice": row.twice,
    }
    return [f"round {row.number}: {count} {what}" for what, count in counted.items() if count]


def too_slow(row: Row) -> list[str]:
    """Say that nothing was accepted for too long."""
    if row.gap_s <= GAP_S_MAX:
        return []
    return [f"round {row.number}: nothing was accepted for {row.gap_s:.2f} s, not {GAP_S_MAX} s"]


def table(rows: Sequence[Row]) -> str:
    """Write a line a round, and one for all of them."""
    lines = [_HEAD, *map(_cells, rows), _sum(rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 1 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    counts = (row.restarts, row.changes, row.moves, row.lost, row.twice)
    return (str(row.number), str(row.kind), *map(str, counts), f"{row.gap_s:.2f} s")


def _sum(rows: Sequence[Row]) -> tuple[str, ...]:
    columns = zip(*((r.restarts, r.changes, r.moves, r.lost, r.twice) for r in rows), strict=True)
    longest = max(row.gap_s for row in rows)
    return (str(len(rows)), "all", *(str(sum(column)) for column in columns), f"{longest:.2f} s")
