"""The ownership timeline of a group as a grid: rows of partitions, columns of time, and counts.

What is finer than the grid is counted beside it, so that a reader knows what cannot be seen. Times
are log time in milliseconds (S8). Plain values: no Spark, no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

COLUMNS_MAX: Final = 3_840
"""Columns of a group with few intervals: a wide screen, four times enlarged."""
COLUMNS_STRIP: Final = 240
"""Columns of a strip, which shows all partitions of a group, or of many groups, in one row."""
ROWS_FIRST: Final = 96
"""Rows of the busiest group at most; each further partition makes bundles."""
ROWS_OTHERS: Final = 24
CELLS_FIRST: Final = 30_000
"""Cells of the busiest group at most, if each differed from its neighbour."""
CELLS_OTHERS: Final = 6_000
CELLS_ALL: Final = 90_000
"""Cells of all grids together: a page has to hold them."""
GRIDS_MAX: Final = 100
STRIPS_MAX: Final = 100
REST: Final = -1
"""The key of the strip that groups share."""


class CellRun(NamedTuple):
    """Neighbouring cells of a row that are equal. Numbers are those of each cell."""

    key: int  # of the timeline
    row: int
    column: int
    columns: int
    owner: str  # "" if several owned something of it, or nobody
    owners: int
    owned_ms: int  # over all partitions of the row; once, also where two owned one
    gap_ms: int  # between two owners, over all partitions of the row
    gaps: int  # that begin here
    overlap_ms: int
    overlaps: int  # that begin here


class Bundle(NamedTuple):
    """The partitions of a row: those from the first to the last in the order of names."""

    first: str  # topic/number
    last: str
    partitions: int


class Totals(NamedTuple):
    """What there is, of a timeline or of the whole log."""

    groups: int = 0
    partitions: int = 0
    intervals: int = 0
    intervals_below: int = 0  # shorter than a column
    owned_ms: int = 0
    gaps: int = 0
    gaps_below: int = 0
    gap_ms: int = 0
    overlaps: int = 0
    overlaps_below: int = 0
    overlap_ms: int = 0

    def plus(self, other: Totals) -> Totals:
        """Add up two of them."""
        return Totals(*(a + b for a, b in zip(self, other, strict=True)))


NONE: Final = Totals()


class Size(NamedTuple):
    """How much of a group there is to draw."""

    group: str
    partitions: int
    intervals: int


class Scale(NamedTuple):
    """How finely a group is drawn."""

    key: int
    group: str
    rows: int
    column_ms: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """One group's grid, or the strip of all groups that have none of their own (`group` is "")."""

    group: str
    column_ms: int
    rows: tuple[Bundle, ...]
    runs: tuple[CellRun, ...]
    totals: Totals


def scales(sizes: Sequence[Size], span_ms: int) -> list[Scale]:
    """Choose how finely each group is drawn, the busiest first; those left out share a strip."""
    return [
        Scale(key, size.group, rows, column_ms(span_ms, columns))
        for key, (size, rows, columns) in enumerate(_chosen(sizes))
    ]


def column_ms(span_ms: int, columns: int) -> int:
    """Return the whole milliseconds of a column, at least one."""
    return max(1, -(-span_ms // columns))


def _chosen(sizes: Sequence[Size]) -> Iterator[tuple[Size, int, int]]:
    """Yield groups with their rows and columns: grids while there is room, then strips."""
    spent = grids = strips = 0
    for at, size in enumerate(sizes):
        rows, columns = _grid(size, ROWS_OTHERS, CELLS_OTHERS)
        if at == 0:
            rows, columns = _grid(size, ROWS_FIRST, CELLS_FIRST)
        cells = min(rows * columns, _cells(size, rows))
        if grids < GRIDS_MAX and spent + cells <= CELLS_ALL:
            grids, spent = grids + 1, spent + cells
            yield size, rows, columns
        elif strips < STRIPS_MAX:
            strips += 1
            yield size, 1, COLUMNS_STRIP


def _grid(size: Size, rows_max: int, cells_max: int) -> tuple[int, int]:
    rows = max(1, min(size.partitions, rows_max))
    if _cells(size, rows) <= cells_max:
        return rows, COLUMNS_MAX
    return rows, min(COLUMNS_MAX, cells_max // rows)


def _cells(size: Size, rows: int) -> int:
    """Return how many runs of cells there can be: each interval begins and ends in a cell."""
    return 4 * size.intervals + rows
