"""Make the cells of a timeline's row from the pieces of intervals in it, in one sweep over time.

Each piece says how many equal intervals begin in one column and end in another; what changes only
there is not looked at in between, so the work grows with the pieces and not with the columns. Runs
in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from holdfast.replay.analyse.timeline import CellRun

OWNED: Final = "owned"
GAP: Final = "gap"
OVERLAP: Final = "overlap"


class Piece(NamedTuple):
    """Intervals, gaps or overlaps of a row with the same owner and the same columns."""

    key: int
    row: int
    kind: str
    owner: str  # of an overlap: the owner that came second
    first: int  # column
    last: int
    column_ms: int
    number: int  # of those that it stands for
    head_ms: int  # in the first column, over all of them
    tail_ms: int  # in the last column, if that is another one


class _Cell(NamedTuple):
    owner: str = ""
    owners: int = 0
    owned_ms: int = 0
    gap_ms: int = 0
    gaps: int = 0
    overlap_ms: int = 0
    overlaps: int = 0


_NOTHING: Final = _Cell()


def sweep(pieces: Iterable[Piece]) -> Iterator[CellRun]:
    """Yield the cells of all rows; the pieces of a row must stand together."""
    for (key, row), mine in groupby(pieces, lambda piece: (piece.key, piece.row)):
        for column, columns, cell in _merged(_cells(mine)):
            yield CellRun(key, row, column, columns, *cell)


def _merged(cells: Iterable[tuple[int, int, _Cell]]) -> Iterator[tuple[int, int, _Cell]]:
    """Join equal neighbours, and leave out cells in which nothing is."""
    before: tuple[int, int, _Cell] | None = None
    for column, until, cell in cells:
        if before is not None and before[2] == cell and before[0] + before[1] == column:
            before = (before[0], until - before[0], cell)
            continue
        if before is not None and before[2] != _NOTHING:
            yield before
        before = (column, until - column, cell)
    if before is not None and before[2] != _NOTHING:
        yield before


@dataclass(slots=True)
class _Column:
    """What begins, ends, and goes over into whole columns or out of them, in one column."""

    owners: set[str] = field(default_factory=set)
    parts_ms: Counter[str] = field(default_factory=Counter)
    begun: Counter[str] = field(default_factory=Counter)
    whole: list[tuple[str, str, int]] = field(default_factory=list)
    """Kind, owner, and how many more are in all of the column, or fewer."""


def _cells(pieces: Iterable[Piece]) -> Iterator[tuple[int, int, _Cell]]:
    """Yield the cells of one row as (column, next other column, cell)."""
    changes: defaultdict[int, _Column] = defaultdict(_Column)
    column_ms = 1
    for piece in pieces:
        column_ms = piece.column_ms
        _noted(piece, changes)
    whole_of: Counter[str] = Counter()
    owners: Counter[str] = Counter()
    for column, until in pairwise([*sorted(changes), max(changes, default=0) + 1]):
        change = changes[column]
        for kind, owner, number in change.whole:
            whole_of[kind] += number
            if kind != GAP:
                owners[owner] += number
                if not owners[owner]:
                    del owners[owner]
        yield column, until, _cell(change, whole_of, owners, column_ms)


def _noted(piece: Piece, changes: defaultdict[int, _Column]) -> None:
    kind, first, last = piece.kind, piece.first, piece.last
    changes[first].parts_ms[kind] += piece.head_ms
    changes[first].begun[kind] += piece.number
    changes[last].parts_ms[kind] += piece.tail_ms
    if kind != GAP:
        changes[first].owners.add(piece.owner)
        changes[last].owners.add(piece.owner)
    if last > first:
        changes[first + 1].whole.append((kind, piece.owner, piece.number))
        changes[last].whole.append((kind, piece.owner, -piece.number))
    changes[last + 1].owners |= set()  # a cell of its own begins here


def _cell(change: _Column, whole_of: Counter[str], owners: Counter[str], column_ms: int) -> _Cell:
    others = [owner for owner in change.owners if owner not in owners]
    number = len(owners) + len(others)
    parts = change.parts_ms
    owned, gap, overlap = (parts[k] + whole_of[k] * column_ms for k in (OWNED, GAP, OVERLAP))
    return _Cell(
        owner=next(iter((*owners, *others))) if number == 1 else "",
        owners=number,
        owned_ms=owned,
        gap_ms=gap,
        gaps=change.begun[GAP],
        overlap_ms=overlap,
        overlaps=change.begun[OVERLAP],
    )
