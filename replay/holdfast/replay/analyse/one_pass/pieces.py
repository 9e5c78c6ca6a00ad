"""Cut what is owned, the gaps and the overlaps by the columns of a grid, and sum up what is equal.

For `sweep`. Times are log time in milliseconds (S8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from holdfast.replay.analyse.one_pass.interval_table import Numbers, Spans
from holdfast.replay.analyse.sweep import GAP, OVERLAP, OWNED, Piece

_KINDS: Final = (OWNED, GAP, OVERLAP)
"""By the number of a kind."""
NOBODY: Final = -1
"""In place of an owner: there is none, or it is not told."""


class Pieces(NamedTuple):
    """Pieces of a grid as columns: see `Piece`. `owner` is a number, or -1 for nobody."""

    row: Numbers
    kind: Numbers
    owner: Numbers
    first: Numbers
    last: Numbers
    number: Numbers
    head_ms: Numbers
    tail_ms: Numbers


def pieces(spans: Spans, row: Numbers, owner: Numbers, since_ms: int, width_ms: int) -> Pieces:
    """Cut intervals of a grid whose columns begin at `since_ms`."""
    start, end = spans.start, spans.end
    reach = np.where(spans.after, spans.reach, start)
    nobody = np.full_like(owner, NOBODY)
    told = [
        (owner, spans.owned_since, end),
        (nobody, reach, start),
        (owner, start, spans.overlapped_until),
    ]
    return summed(
        [
            _cut(row, np.full_like(row, kind), whose, since - since_ms, until - since_ms, width_ms)
            for kind, (whose, since, until) in enumerate(told)
        ]
    )


def _cut(
    row: Numbers, kind: Numbers, owner: Numbers, since: Numbers, until: Numbers, width: int
) -> Pieces:
    there = until > since
    since, until = since[there], until[there]
    first, last = since // width, (until - 1) // width
    head = np.minimum(until, (first + 1) * width) - since
    tail = np.where(last > first, until - last * width, 0)
    one = np.ones_like(first)
    return Pieces(row[there], kind[there], owner[there], first, last, one, head, tail)


def summed(several: Sequence[Pieces]) -> Pieces:
    """Add up the pieces that are alike; those of a row stand together."""
    whole = Pieces(*map(np.concatenate, zip(*several, strict=True)))
    if not len(whole.row):
        return whole
    order = np.lexsort((whole.owner, whole.kind, whole.last, whole.first, whole.row))
    whole = Pieces(*(column[order] for column in whole))
    new = np.ones(len(order), np.bool_)
    new[1:] = np.any([column[1:] != column[:-1] for column in whole[:5]], axis=0)
    starts = np.flatnonzero(new)
    keys = [column[starts] for column in whole[:5]]
    return Pieces(*keys, *(np.add.reduceat(column, starts) for column in whole[5:]))


def rows_of_pieces(
    told: Pieces, key: int, width_ms: int, owners: Sequence[str]
) -> Iterator[list[Piece]]:
    """Yield the pieces of each row as values, a row at a time: they may be many."""
    new = np.flatnonzero(np.diff(told.row, prepend=-1))
    for begin, end in zip(new, [*new[1:], len(told.row)], strict=True):
        columns = (column[begin:end].tolist() for column in told)
        yield [
            Piece(key, row, _KINDS[kind], _name(owners, owner), first, last, width_ms, *sums)
            for row, kind, owner, first, last, *sums in zip(*columns, strict=True)
        ]


def _name(owners: Sequence[str], owner: int) -> str:
    return "" if owner == NOBODY else owners[owner]
