"""A worker's part of the analyses: one pass over a bucket, with `ownership` and `rebalances`.

Most records of a log are offsets and answers, which do not matter here: they are not decoded.
Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.coordinator.model.events import (
    OffsetsCommitted,
    OffsetsDeleted,
    Record,
    RequestRecorded,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import Group
from holdfast.replay.analyse.beginnings import named_by, owned_by
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.ownership import OwnershipTimeline
from holdfast.replay.analyse.rebalances import Rebalance, RebalanceTimeline, Turn
from holdfast.replay.read.log_rows import Bucket
from holdfast.storage.codec.event_codec import decode_record

_SILENT: Final = pa.array(
    kind.__name__ for kind in (OffsetsCommitted, OffsetsDeleted, RequestRecorded)
)
_COLUMNS: Final = ("idx", "ordinal", "grp", "type", "payload")


FIELDS: Final = tuple(dict.fromkeys((*Interval._fields, *Rebalance._fields, *Turn._fields)))
"""Of every fact: those of an `Interval`, a `Rebalance` and a `Turn`; what it lacks is None."""
_PLACES: Final = {
    kind: tuple(kind._fields.index(name) if name in kind._fields else -1 for name in FIELDS)
    for kind in (Interval, Rebalance, Turn)
}


def facts(bucket: Bucket, end_ms: int) -> Iterator[tuple[object, ...]]:
    """Yield all that is told of the groups in a bucket: the kind's name, then FIELDS.

    Intervals that are still open end at `end_ms`. What was owned where the log begins is owned from
    there on: since when is in no record (S24). Only rebalances that began in the log are told.
    """
    begun_ms = bucket.begins.log_time_ms
    groups = {each.group_id: (owned_by(each, begun_ms), named_by(each)) for each in _groups(bucket)}
    for record in _records(bucket):
        group_id = record.group_id
        if group_id not in groups:
            groups[group_id] = OwnershipTimeline(group_id), RebalanceTimeline(group_id)
        owned, named = groups[group_id]
        yield from map(_fact, owned.step(record))
        yield from map(_fact, named.turns(record))
        yield from map(_fact, named.ended(record))
    for owned, named in groups.values():
        yield from map(_fact, owned.close(end_ms))
        yield from map(_fact, named.close())


def _fact(told: Interval | Rebalance | Turn) -> tuple[object, ...]:
    kind = type(told)
    return (kind.__name__, *(None if at < 0 else told[at] for at in _PLACES[kind]))


def _groups(bucket: Bucket) -> Iterable[Group[Any]]:
    """Return the groups that were there where the log begins."""
    return bucket.checkpoint().state.groups.values()


def _records(bucket: Bucket) -> Iterator[Record]:
    for source in bucket.sources:
        with pq.ParquetFile(source.path) as file:
            for batch in file.iter_batches(columns=_COLUMNS):
                yield from map(decode_record, _telling(batch, source.after))


def _telling(batch: pa.RecordBatch, after: Position) -> list[bytes]:
    """Return the payloads of a batch that tell of groups, and are not in an earlier segment."""
    index, ordinal = batch.column("idx"), batch.column("ordinal")
    same = pc.and_(pc.equal(index, after.index), pc.greater(ordinal, after.ordinal))
    fresh = pc.or_(pc.greater(index, after.index), same)
    silent = pc.is_in(batch.column("type"), value_set=_SILENT)
    of_group = pc.not_equal(batch.column("grp"), "")
    told = pc.and_(pc.and_(fresh, of_group), pc.invert(silent))
    payloads: list[bytes] = batch.filter(told).column("payload").to_pylist()
    return payloads
