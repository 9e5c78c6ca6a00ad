"""A worker's part of the analyses: one pass over a bucket, and then the cells of its timelines.

Most records of a log are commits, which are counted by their columns, and answers, which do not
matter here: neither is decoded. Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.coordinator.model.events import (
    OffsetsCommitted,
    OffsetsDeleted,
    Record,
    RequestRecorded,
)
from holdfast.coordinator.model.state import Group
from holdfast.replay.analyse.beginnings import named_by, owned_by
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.one_pass.arrow_rows import (
    bytes_table,
    packed,
    table_bytes,
)
from holdfast.replay.analyse.one_pass.bucket_tally import BucketTally
from holdfast.replay.analyse.one_pass.chunks import chunks
from holdfast.replay.analyse.one_pass.drawing import Drawing, Plan, Row, Sums
from holdfast.replay.analyse.ownership import OwnershipTimeline
from holdfast.replay.analyse.rebalances import RebalanceTimeline
from holdfast.replay.analyse.sweep import Piece
from holdfast.replay.analyse.timeline import CellRun
from holdfast.replay.read.log_batches import behind
from holdfast.replay.read.log_rows import Bucket, Source
from holdfast.replay.read.urls import local_file
from holdfast.storage.codec.event_codec import decode_record

T = TypeVar("T", bound="tuple[Any, ...]")

_SILENT: Final = pa.array(
    kind.__name__ for kind in (OffsetsCommitted, OffsetsDeleted, RequestRecorded)
)
_COLUMNS: Final = (
    *("idx", "ordinal", "grp", "type", "log_time_ms", "wall_time_ms", "offsets", "payload"),
)
_REPEATING: Final = ["grp", "type"]
"""Columns of few values, which are read as numbers of them."""
LINKED: Final = "linked"
"""The name of rows that hold intervals for `draw`."""


def tell(bucket: Bucket, begun_ms: int, last_ms: int) -> Iterator[tuple[str, bytes]]:
    """Yield all that a bucket tells: rows of a kind with its name, and its intervals as LINKED.

    Intervals that are still open end at `last_ms`. What was owned where the log begins is owned
    from there on: since when is in no record (S24). Only rebalances that began in the log are told.
    """
    tally = BucketTally(begun_ms, last_ms)
    followed = _Followed(bucket)
    for source in bucket.sources:
        for batch in _batches(source):
            tally.take(batch)
            followed.follow(_telling(batch), tally)
    followed.close(last_ms, tally)
    linked = tally.intervals.linked()
    for kind, rows in tally.told(linked):
        yield kind.__name__, packed(kind, rows)
    yield from ((LINKED, table_bytes(table)) for table in chunks(linked))


class _Followed:
    """The groups of a bucket, record by record."""

    def __init__(self, bucket: Bucket) -> None:
        """Begin with the groups that were there where the log begins."""
        begun_ms = bucket.begins.log_time_ms
        at_first: Iterable[Group[Any]] = bucket.checkpoint().state.groups.values()
        self._groups = {
            each.group_id: (owned_by(each, begun_ms), named_by(each)) for each in at_first
        }

    def follow(self, payloads: Iterable[bytes], tally: BucketTally) -> None:
        for record in map(decode_record, payloads):
            owned, named = self._of(record)
            tally.intervals.add(list(owned.step(record)))
            for turn in named.turns(record):
                tally.instances.take(turn)
            for rebalance in named.ended(record):
                tally.rebalances.take(rebalance)

    def _of(self, record: Record) -> tuple[OwnershipTimeline, RebalanceTimeline]:
        group_id = record.group_id
        found = self._groups.get(group_id)
        if found is None:
            found = OwnershipTimeline(group_id), RebalanceTimeline(group_id)
            self._groups[group_id] = found
        return found

    def close(self, end_ms: int, tally: BucketTally) -> None:
        for owned, named in self._groups.values():
            tally.intervals.add(list(owned.close(end_ms)))
            for rebalance in named.close():
                tally.rebalances.take(rebalance)


def _batches(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file that are not in an earlier segment."""
    with (
        local_file(source.path) as path,
        pq.ParquetFile(path, read_dictionary=_REPEATING) as file,
    ):
        for batch in file.iter_batches(columns=_COLUMNS, use_threads=False):
            yield batch.filter(behind(batch, source.after))


def times(source: Source) -> Iterator[tuple[int, int]]:
    """Yield the first and the last log time of what a file has that no earlier segment has."""
    with local_file(source.path) as path, pq.ParquetFile(path) as file:
        for batch in file.iter_batches(columns=["idx", "ordinal", "log_time_ms"]):
            told = pc.min_max(batch.column("log_time_ms").filter(behind(batch, source.after)))
            if told["min"].is_valid:
                yield told["min"].as_py(), told["max"].as_py()


def _telling(batch: pa.RecordBatch) -> list[bytes]:
    """Return the payloads of a batch that tell of groups."""
    silent = pc.is_in(batch.column("type"), value_set=_SILENT)
    of_group = pc.not_equal(batch.column("grp"), "")
    told = pc.and_(of_group, pc.invert(silent))
    payloads: list[bytes] = batch.column("payload").filter(told).to_pylist()
    return payloads


def draw(plan: Plan, contents: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the timelines of a bucket, from its intervals as `tell` gave them."""
    drawing = Drawing(plan)
    for content in contents:
        drawing.take(bytes_table(content))
    yield CellRun.__name__, packed(CellRun, list(drawing.runs()))
    yield Piece.__name__, packed(Piece, drawing.rest())
    yield Row.__name__, packed(Row, list(drawing.rows.values()))
    yield Sums.__name__, packed(Sums, drawing.sums())
    yield Interval.__name__, packed(Interval, drawing.intervals)
