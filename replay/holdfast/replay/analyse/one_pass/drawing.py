"""Draw a bucket's intervals: the cells of each timeline, and what is beside them in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.one_pass.chunks import names_of, spans_of
from holdfast.replay.analyse.one_pass.interval_table import Numbers
from holdfast.replay.analyse.one_pass.pieces import NOBODY, Pieces, pieces, rows_of_pieces, summed
from holdfast.replay.analyse.sweep import Piece, sweep
from holdfast.replay.analyse.timeline import NONE, REST, CellRun, Scale, Totals


class Plan(NamedTuple):
    """How all groups are drawn."""

    begun_ms: int
    rest: Scale
    """Of the strip that all groups share which are not in `scales`."""
    scales: dict[str, Scale]
    partitions: dict[str, int]
    """Of each group in `scales`."""
    exact: frozenset[str]
    """Groups of which each interval is wanted, too."""


class Row(NamedTuple):
    """Which partitions are in a row of a timeline: the first and the last of those of a bucket."""

    key: int
    row: int
    topic: str
    partition: int
    last_topic: str
    last_partition: int


class Sums(NamedTuple):
    """What there is in a timeline, of a bucket: see `Totals`."""

    key: int
    intervals: int
    intervals_below: int
    owned_ms: int
    gaps: int
    gaps_below: int
    gap_ms: int
    overlaps: int
    overlaps_below: int
    overlap_ms: int


@dataclass(slots=True)
class Drawing:
    """The timelines of a bucket's groups, as its tables of intervals come."""

    plan: Plan
    totals: dict[int, Totals] = field(default_factory=dict)
    rows: dict[tuple[int, int], Row] = field(default_factory=dict)
    intervals: list[Interval] = field(default_factory=list)
    _pieces: dict[int, list[Pieces]] = field(default_factory=dict)
    _owners: dict[str, int] = field(default_factory=dict)

    def take(self, table: pa.Table) -> None:
        """Take in a table of `chunks`."""
        codes, groups = names_of(table, "group")
        for first, last in _stretches(codes):
            group, part = groups[codes[first]], table.slice(first, last - first)
            scale = self.plan.scales.get(group)
            if scale is not None:
                self._draw(scale, part)
                if group in self.plan.exact:
                    self.intervals += _exact(part)
        others = np.array([group not in self.plan.scales for group in groups])[codes]
        if others.any():
            self._draw(self.plan.rest, table.filter(pa.array(others)))

    def _draw(self, scale: Scale, table: pa.Table) -> None:
        spans = spans_of(table)
        told = self.totals.get(scale.key, NONE)
        self.totals[scale.key] = told.plus(spans.totals(scale.column_ms))
        row = self._placed(scale, table)
        owner = self._owner(scale, table)
        found = pieces(spans, row, owner, self.plan.begun_ms, scale.column_ms)
        self._pieces.setdefault(scale.key, []).append(found)

    def _owner(self, scale: Scale, table: pa.Table) -> Numbers:
        """Return the owners as numbers that all tables share; the others' strip tells of none."""
        if scale.key == REST:
            return np.full(table.num_rows, NOBODY, np.int64)
        codes, names = names_of(table, "owner")
        known = self._owners
        numbers = np.zeros(len(names), np.int64)
        for code in np.unique(codes).tolist():
            numbers[code] = known.setdefault(names[code], len(known))
        return numbers[codes]

    def _placed(self, scale: Scale, table: pa.Table) -> Numbers:
        """Return the row of each interval, equally many partitions to each; note their names."""
        lane: Numbers = table.column("lane").to_numpy()
        row = np.zeros_like(lane)
        if scale.key != REST:
            row = lane * scale.rows // self.plan.partitions[scale.group]
        for first, last in self._ends(scale, table, row):
            self._note(scale.key, int(row[first]), table, (first, last))
        return row

    @staticmethod
    def _ends(scale: Scale, table: pa.Table, row: Numbers) -> Iterable[tuple[int, int]]:
        """Return where the first and the last partition of each row are."""
        if scale.key != REST:
            return ((first, last - 1) for first, last in _stretches(row))
        codes, topics = names_of(table, "topic")
        rank = np.empty(len(topics), np.int64)
        rank[np.array(sorted(range(len(topics)), key=topics.__getitem__))] = range(len(topics))
        order = np.lexsort((table.column("partition").to_numpy(), rank[codes]))
        return [(int(order[0]), int(order[-1]))]

    def _note(self, key: int, row: int, table: pa.Table, ends: tuple[int, int]) -> None:
        first, last = (_place(table, at) for at in ends)
        known = self.rows.get((key, row))
        if known is not None:
            first, last = min(first, known[2:4]), max(last, known[4:6])
        self.rows[key, row] = Row(key, row, *first, *last)

    def runs(self) -> Iterator[CellRun]:
        """Yield the cells of all timelines but the strip that groups share."""
        owners = list(self._owners)
        for scale in self.plan.scales.values():
            if scale.key in self._pieces:
                told = summed(self._pieces.pop(scale.key))
                for row in rows_of_pieces(told, scale.key, scale.column_ms, owners):
                    yield from sweep(row)

    def rest(self) -> list[Piece]:
        """Return the pieces of the strip that groups of all buckets share."""
        if REST not in self._pieces:
            return []
        told = summed(self._pieces.pop(REST))
        rows = rows_of_pieces(told, REST, self.plan.rest.column_ms, list(self._owners))
        return [piece for row in rows for piece in row]

    def sums(self) -> list[Sums]:
        """Return what there is in each timeline."""
        return [
            Sums(key, *(getattr(told, name) for name in Sums._fields[1:]))
            for key, told in self.totals.items()
        ]


def _stretches(codes: Numbers) -> Iterator[tuple[int, int]]:
    """Yield from where to where a number stays the same."""
    starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
    yield from zip(starts, [*starts[1:], len(codes)], strict=True)


def _place(table: pa.Table, at: int) -> tuple[Any, ...]:
    return table.column("topic")[at].as_py(), table.column("partition")[at].as_py()


def _exact(table: pa.Table) -> list[Interval]:
    columns = (table.column(name).to_pylist() for name in Interval._fields)
    return [Interval(*row) for row in zip(*columns, strict=True)]
