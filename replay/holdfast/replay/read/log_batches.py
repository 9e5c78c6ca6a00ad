"""Rows of files as batches of columns, for the checks and the folds that take in every record.

A column at a time costs a tenth of what a dict for each row does (`log_rows`). Rows of a file are
by group, and in order within each group; those of a segment are put into the order of the log. Runs
in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import compress
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.coordinator.model.events import GroupDeleted, Record
from holdfast.coordinator.model.ids import Position
from holdfast.replay.read.log_rows import START, Cut, LogRow, Source
from holdfast.replay.read.urls import local_file
from holdfast.storage.codec.event_codec import CodecError, decode_record

_BATCH_ROWS: Final = 8_192
"""Their records are in memory at once."""
_ORDER_ROWS: Final = 65_536
_ORDERED: Final = ("idx", "ordinal", "grp", "type", "log_time_ms", "payload")
"""What is read of every record in the order of the log."""
_MOVING: Final = ("idx", "ordinal", "grp", "type", "offsets")
"""What tells of a record what it changes."""


class Decoded(NamedTuple):
    """The records of a batch; None for a payload that cannot be read, and why, by its number."""

    records: list[Record | None]
    unreadable: dict[int, str]


class Moved(NamedTuple):
    """What has records in some files."""

    groups: set[str]
    """All groups that have any."""
    deleted: set[str]
    """Groups that were deleted; they may have another life since."""
    offsets: set[tuple[str, str, int]]
    """Group, topic and partition of each offset that was committed or deleted by itself."""


class Ordered(NamedTuple):
    """Some rows in the order of the log, column by column."""

    indexes: Any
    ordinals: Any
    log_times_ms: Any
    payloads: list[bytes]
    rows: dict[int, LogRow]
    """The rows that are wanted one by one, by number."""

    def fresh(self, last: tuple[int, int]) -> Any:  # noqa: ANN401 - an array of numpy
        """Return of each row whether it is behind a place, and not there a second time."""
        index, ordinal = last
        found = self.indexes > index
        found |= (self.indexes == index) & (self.ordinals > ordinal)
        found[1:] &= (np.diff(self.indexes) != 0) | (np.diff(self.ordinals) != 0)
        return found

    def only(self, kept: Any) -> Ordered:  # noqa: ANN401 - as above
        """Return the rows of which this is true, numbered anew."""
        numbers = np.cumsum(kept) - 1
        return Ordered(
            self.indexes[kept],
            self.ordinals[kept],
            self.log_times_ms[kept],
            list(compress(self.payloads, kept)),
            {int(numbers[at]): row for at, row in self.rows.items() if kept[at]},
        )


def read_batches(source: Source, cut: Cut) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file as they are stored."""
    with _opened(source) as file:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False):
            kept = _kept(batch, source.after, cut)
            if kept.num_rows:
                yield kept


@contextmanager
def _opened(source: Source) -> Iterator[pq.ParquetFile]:
    """Open a file, of which there is a copy meanwhile if it is behind a URL."""
    with local_file(source.path) as path, pq.ParquetFile(path) as file:
        yield file


def cluster_payloads(source: Source, cut: Cut, kind: str) -> list[bytes]:
    """Return the payloads of those of the cluster's own records in a file that are of a type."""
    with _opened(source) as file:
        few = file.read(columns=["grp", "type"], use_threads=False)
        own = pc.and_(pc.equal(few.column("grp"), ""), pc.equal(few.column("type"), kind))
        if not pc.any(own).as_py():
            return []
        mine = file.read(columns=list(_ORDERED), use_threads=False).filter(own)
    kept: list[bytes] = _kept(mine, source.after, cut).column("payload").to_pylist()
    return kept


def moved_in(source: Source) -> Moved:
    """Find what has records in a file, but for those in an earlier one as well."""
    found = Moved(set(), set(), set())
    with _opened(source) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=list(_MOVING), use_threads=False):
            rows = _kept(batch, source.after, Cut())
            groups = rows.column("grp")
            found.groups.update(groups.unique().to_pylist())
            gone = pc.equal(rows.column("type"), GroupDeleted.__name__)
            found.deleted.update(groups.filter(gone).to_pylist())
            found.offsets.update(_distinct(groups, rows.column("offsets")))
    return found


def _distinct(groups: pa.Array, offsets: pa.Array) -> Iterator[tuple[str, str, int]]:
    """Yield each partition once that lists of a group name; what has no name in one is none."""
    each, named = pc.list_flatten(offsets), ["grp", "topic", "partition"]
    columns = [pc.struct_field(each, name) for name in named[1:]]
    whose = groups.take(pc.list_parent_indices(offsets))
    each_named = pa.table([whose, *columns], named).drop_null()
    distinct = each_named.group_by(named, use_threads=False).aggregate([])
    yield from zip(*(distinct.column(name).to_pylist() for name in named), strict=True)


def row_of(batch: pa.RecordBatch, number: int) -> LogRow:
    """Return one row by column."""
    row: LogRow = batch.slice(number, 1).to_pylist()[0]
    return row


def decoded(batch: pa.RecordBatch) -> Decoded:
    """Decode the payloads of a batch."""
    payloads = batch.column("payload").to_pylist()
    try:
        return Decoded([decode_record(payload) for payload in payloads], {})
    except Exception:  # noqa: BLE001 - which it was is found below, one by one
        return _decoded_singly(payloads)


def _decoded_singly(payloads: Sequence[bytes]) -> Decoded:
    records, unreadable = list[Record | None](), dict[int, str]()
    for number, payload in enumerate(payloads):
        try:
            records.append(decode_record(payload))
        except CodecError as error:
            records.append(None)
            unreadable[number] = error.what
        except Exception as error:  # noqa: BLE001 - whatever a forged record leads to
            records.append(None)
            unreadable[number] = repr(error)
    return Decoded(records, unreadable)


def read_in_order(
    sources: Sequence[Source], cut: Cut, kinds: Collection[str] = ()
) -> Iterator[Ordered]:
    """Yield all rows of a segment in the order of the log; one segment fits into memory.

    `kinds`: the types of records whose rows are wanted one by one, beside the cluster's own.
    """
    parts, wanted, before = list[pa.Table](), dict[int, LogRow](), 0
    for source in sources:
        table = _narrow(source, cut)
        wanted.update(_wanted_rows(source, cut, table, before, kinds))
        parts.append(table)
        before += table.num_rows
    whole = pa.concat_tables(parts).combine_chunks()
    order = np.lexsort([whole.column(name).to_numpy() for name in ("ordinal", "idx")])
    for first in range(0, before, _ORDER_ROWS):
        numbers = order[first : first + _ORDER_ROWS]
        some = whole.select(["idx", "ordinal", "log_time_ms", "payload"]).take(pa.array(numbers))
        rows = {at: wanted[n] for at, n in enumerate(numbers.tolist()) if n in wanted}
        indexes, ordinals, log_times_ms = (column.to_numpy() for column in some.columns[:3])
        yield Ordered(indexes, ordinals, log_times_ms, some.column("payload").to_pylist(), rows)


def _narrow(source: Source, cut: Cut) -> pa.Table:
    with _opened(source) as file:
        table = file.read(columns=list(_ORDERED), use_threads=False).select(list(_ORDERED))
    return _kept(table, source.after, cut)


def _wanted_rows(
    source: Source, cut: Cut, narrow: pa.Table, before: int, kinds: Collection[str]
) -> Iterator[tuple[int, LogRow]]:
    """Yield rows that are wanted one by one: the cluster's own have all columns."""
    own = pc.equal(narrow.column("grp"), "")
    others = pc.and_(pc.is_in(narrow.column("type"), pa.array(kinds, pa.string())), pc.invert(own))
    yield from _numbered(narrow, others, before)
    if pc.any(own).as_py():
        with _opened(source) as file:
            whole = _kept(file.read(use_threads=False), source.after, cut)
        yield from _numbered(whole, own, before)


def _numbered(table: pa.Table, wanted: Any, before: int) -> Iterator[tuple[int, LogRow]]:  # noqa: ANN401 - of any length
    numbers = pc.indices_nonzero(wanted)
    rows = table.take(numbers).to_pylist()
    yield from zip([before + number for number in numbers.to_pylist()], rows, strict=True)


def _kept(rows: Any, after: Position, cut: Cut) -> Any:  # noqa: ANN401 - a batch or a table
    """Return the rows that are not in an earlier file as well, and not behind the cut."""
    wanted = []
    if after != START:
        wanted.append(behind(rows, after))
    if cut.last is not None:
        wanted.append(pc.invert(behind(rows, cut.last)))
    if cut.log_time_ms is not None:
        wanted.append(pc.less_equal(rows.column("log_time_ms"), cut.log_time_ms))
    return rows.filter(reduce(pc.and_, wanted)) if wanted else rows


def behind(rows: Any, place: Position) -> Any:  # noqa: ANN401 - as above
    """Return of each row whether it is behind a place."""
    idx, ordinal = rows.column("idx"), rows.column("ordinal")
    same = pc.and_(pc.equal(idx, place.index), pc.greater(ordinal, place.ordinal))
    return pc.or_(pc.greater(idx, place.index), same)
