"""A worker's part of the analyses: run `ownership` and `rebalances` over a bucket's groups.

Most records of a log are offsets and answers, which do not matter here: they are not decoded.
Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from holdfast.coordinator.model.events import (
    OffsetsCommitted,
    OffsetsDeleted,
    Record,
    RequestRecorded,
)
from holdfast.coordinator.model.state import Group
from holdfast.replay.analyse.beginnings import named_by, owned_by
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.ownership import OwnershipTimeline
from holdfast.replay.analyse.rebalances import Rebalance, RebalanceTimeline, Turn
from holdfast.replay.read.log_rows import Bucket, Cut, read_rows
from holdfast.storage.codec.event_codec import decode_record

_SILENT: Final = frozenset(
    kind.__name__ for kind in (OffsetsCommitted, OffsetsDeleted, RequestRecorded)
)


def intervals(bucket: Bucket, end_ms: int) -> Iterator[Interval]:
    """Yield the intervals of ownership in a bucket; those still open end at `end_ms`.

    What was owned where the log begins is owned from there on: since when is in no record (S24).
    """
    begun_ms = bucket.begins.log_time_ms
    groups = {each.group_id: owned_by(each, begun_ms) for each in _groups(bucket)}
    for record in _records(bucket):
        group_id = record.group_id
        timeline = groups.get(group_id)
        if timeline is None:
            timeline = groups[group_id] = OwnershipTimeline(group_id)
        yield from timeline.step(record)
    for timeline in groups.values():
        yield from timeline.close(end_ms)


def rebalances(bucket: Bucket) -> Iterator[Rebalance]:
    """Yield the rebalances of the groups in a bucket that began in the log."""
    groups = {each.group_id: named_by(each) for each in _groups(bucket)}
    for record in _records(bucket):
        each = groups.setdefault(record.group_id, RebalanceTimeline(record.group_id))
        for _ in each.turns(record):
            pass  # read for the members' names alone
        yield from each.ended(record)
    for each in groups.values():
        yield from each.close()


def turns(bucket: Bucket) -> Iterator[Turn]:
    """Yield how members came and went in the groups of a bucket."""
    groups = {each.group_id: named_by(each) for each in _groups(bucket)}
    for record in _records(bucket):
        each = groups.setdefault(record.group_id, RebalanceTimeline(record.group_id))
        yield from each.turns(record)


def _groups(bucket: Bucket) -> Iterable[Group[Any]]:
    """Return the groups that were there where the log begins."""
    return bucket.checkpoint().state.groups.values()


def _records(bucket: Bucket) -> Iterator[Record]:
    for source in bucket.sources:
        for row in read_rows(source, Cut()):
            if row["grp"] and row["type"] not in _SILENT:
                yield decode_record(row["payload"])
