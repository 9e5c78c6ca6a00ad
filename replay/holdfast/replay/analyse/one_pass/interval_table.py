"""Intervals of ownership as columns, and what comes before each on its partition.

A million intervals are numbers here, and no objects. Times are log time in milliseconds (S8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.timeline import Totals

Numbers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

_TEXTS: Final = ("group", "topic", "owner", "member_id", "ended")
_NAMED: Final = pa.dictionary(pa.int32(), pa.string())
_SCHEMA: Final = pa.schema(
    [(name, _NAMED if name in _TEXTS else pa.int64()) for name in Interval._fields]
)
_WAITING_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Spans:
    """Intervals, with until when their partition was owned before."""

    start: Numbers
    end: Numbers
    reach: Numbers
    """A gap, or an overlap, lies between it and `start`; it says nothing where `after` is false."""
    after: Flags
    """Whether there is an interval before it."""

    def part(self, of: slice | Flags) -> Spans:
        """Return some of them."""
        return Spans(self.start[of], self.end[of], self.reach[of], self.after[of])

    @property
    def owned_since(self) -> Numbers:
        """From when on it is the first to own the partition: once, also where two owned it."""
        return np.where(self.after, np.maximum(self.start, self.reach), self.start)

    @property
    def gap(self) -> Numbers:
        """For how long nobody owned it before; negative: somebody did for so long."""
        return np.where(self.after, self.start - self.reach, 0)

    @property
    def overlapped_until(self) -> Numbers:
        """Until when an owner before has it, too."""
        return np.where(self.after, np.minimum(self.reach, self.end), self.start)

    def totals(self, width_ms: int) -> Totals:
        """Sum them up; what is shorter than a column is below it."""
        owned = np.maximum(self.end - self.owned_since, 0)
        gap, overlap = self.gap, self.overlapped_until - self.start
        return Totals(
            intervals=len(self.start),
            intervals_below=_number(self.end - self.start < width_ms),
            owned_ms=int(owned.sum()),
            gaps=_number(gap > 0),
            gaps_below=_number((gap > 0) & (gap < width_ms)),
            gap_ms=int(np.maximum(gap, 0).sum()),
            overlaps=_number(overlap > 0),
            overlaps_below=_number((overlap > 0) & (overlap < width_ms)),
            overlap_ms=int(np.maximum(overlap, 0).sum()),
        )


def _number(flags: Flags) -> int:
    return int(np.count_nonzero(flags))


@dataclass(frozen=True, slots=True)
class Linked:
    """All intervals of a bucket, by group, topic, partition, and time.

    Names are numbers in `codes`, and texts in `names`; those of groups and topics are sorted.
    """

    names: dict[str, list[str]]
    codes: dict[str, Numbers]
    partition: Numbers
    token: Numbers
    predecessor_ms: Numbers
    spans: Spans

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.token)

    @property
    def group_starts(self) -> Numbers:
        """Where each group begins."""
        return _changes(self.codes["group"])

    @property
    def lane(self) -> Numbers:
        """The number of the partition, counted over all groups."""
        return np.cumsum(~self.spans.after) - 1


class IntervalTable:
    """Gathers the intervals of a bucket, in any order."""

    def __init__(self) -> None:
        """There are none yet."""
        self._waiting: list[Interval] = []
        self._parts: list[pa.Table] = []

    def add(self, intervals: Sequence[Interval]) -> None:
        """Add some."""
        self._waiting += intervals
        if len(self._waiting) >= _WAITING_MAX:
            self._store()

    def _store(self) -> None:
        columns = zip(*self._waiting, strict=True)
        arrays = [
            pa.array(column, pa.string()).dictionary_encode()
            if name in _TEXTS
            else pa.array(column, pa.int64())
            for name, column in zip(Interval._fields, columns, strict=True)
        ]
        self._parts.append(pa.Table.from_arrays(arrays, schema=_SCHEMA))
        self._waiting = []

    def linked(self) -> Linked:
        """Return all of them, linked; forgets them."""
        if self._waiting:
            self._store()
        whole = pa.concat_tables(self._parts) if self._parts else _SCHEMA.empty_table()
        self._parts = []
        return _linked(whole.unify_dictionaries().combine_chunks())


def _linked(table: pa.Table) -> Linked:
    named = {name: _named(table.column(name)) for name in _TEXTS}
    codes = {name: found for name, (found, _) in named.items()}
    number = {n: table.column(n).to_numpy() for n in Interval._fields if n not in _TEXTS}
    places = (number["partition"], codes["topic"], codes["group"])
    order = np.lexsort((number["end_ms"], number["token"], number["start_ms"], *places))
    codes = {name: found[order] for name, found in codes.items()}
    number = {name: found[order] for name, found in number.items()}
    after = _same_as_before(codes["group"], codes["topic"], number["partition"])
    reach = _reach(number["end_ms"], after)
    return Linked(
        names={name: names for name, (_, names) in named.items()},
        codes=codes,
        partition=number["partition"],
        token=number["token"],
        predecessor_ms=number["predecessor_ms"],
        spans=Spans(number["start_ms"], number["end_ms"], reach, after),
    )


def _named(column: pa.ChunkedArray) -> tuple[Numbers, list[str]]:
    """Return texts as numbers in the order of the texts, and the texts."""
    if not column.num_chunks:
        return np.empty(0, np.int64), []
    (chunk,) = column.chunks
    order = pc.array_sort_indices(chunk.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[chunk.indices.to_numpy()], chunk.dictionary.take(pa.array(order)).to_pylist()


def _same_as_before(*columns: Numbers) -> Flags:
    """Return of which rows all these are as in the row before."""
    same = np.ones(len(columns[0]), np.bool_)
    same[:1] = False
    for column in columns:
        same[1:] &= column[1:] == column[:-1]
    return same


def _changes(column: Numbers) -> Numbers:
    return np.flatnonzero(~_same_as_before(column))


def _reach(end: Numbers, after: Flags) -> Numbers:
    """Return the latest end before each row on its partition; what it says of the first is void.

    Of each row the rank of its end is compared, above all ranks of the partitions before: so one
    running maximum serves all partitions, whatever the times are.
    """
    if not len(end):
        return end
    ends, rank = np.unique(end, return_inverse=True)
    lane = np.cumsum(~after)
    highest = np.maximum.accumulate(rank + lane * len(ends))
    reach = np.empty_like(end)
    reach[0] = end[0]
    reach[1:] = ends[highest[:-1] % len(ends)]
    return reach
