"""A worker's part of the analyses: run `ownership` and `rebalances` over a bucket's groups.

Most records of a log are offsets and answers, which do not matter here: they are not decoded.
Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.coordinator.model.events import (
    OffsetsCommitted,
    OffsetsDeleted,
    Record,
    RequestRecorded,
)
from holdfast.replay.analyse.ownership import Interval, OwnershipTimeline
from holdfast.replay.analyse.rebalances import Rebalance, RebalanceTimeline, Turn
from holdfast.replay.read.log_rows import Cut, Source, read_rows
from holdfast.storage.codec.event_codec import decode_record

_SILENT: Final = frozenset(
    kind.__name__ for kind in (OffsetsCommitted, OffsetsDeleted, RequestRecorded)
)


def intervals(sources: Sequence[Source], end_ms: int) -> Iterator[Interval]:
    """Yield the intervals of ownership in some files; those still open end at `end_ms`."""
    groups: dict[str, OwnershipTimeline] = {}
    for record in _records(sources):
        group_id = record.group_id
        timeline = groups.get(group_id)
        if timeline is None:
            timeline = groups[group_id] = OwnershipTimeline(group_id)
        yield from timeline.step(record)
    for timeline in groups.values():
        yield from timeline.close(end_ms)


def rebalances(sources: Sequence[Source]) -> Iterator[Rebalance]:
    """Yield the rebalances of the groups in some files."""
    groups: dict[str, RebalanceTimeline] = {}
    for record in _records(sources):
        each = groups.setdefault(record.group_id, RebalanceTimeline(record.group_id))
        for _ in each.turns(record):
            pass  # read for the members' names alone
        yield from each.ended(record)
    for each in groups.values():
        yield from each.close()


def turns(sources: Sequence[Source]) -> Iterator[Turn]:
    """Yield how members came and went in the groups of some files."""
    groups: dict[str, RebalanceTimeline] = {}
    for record in _records(sources):
        each = groups.setdefault(record.group_id, RebalanceTimeline(record.group_id))
        yield from each.turns(record)


def _records(sources: Sequence[Source]) -> Iterator[Record]:
    for source in sources:
        for row in read_rows(source, Cut()):
            if row["grp"] and row["type"] not in _SILENT:
                yield decode_record(row["payload"])
