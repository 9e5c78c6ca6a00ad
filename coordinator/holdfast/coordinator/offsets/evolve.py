"""How events of offsets change a group. Total: an event on the log is a fact.

Knows no rules of who may commit or delete; those are in `offsets.commits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.state import Offset

if TYPE_CHECKING:
    from holdfast.coordinator.model.events import OffsetsCommitted, OffsetsDeleted, Record
    from holdfast.coordinator.model.state import Group


def offsets_committed(group: Group[Any], event: OffsetsCommitted, record: Record) -> Group[Any]:
    """Set offsets, which may go backwards; the commit time is log time (S8)."""
    fresh = (
        (
            TopicPartition(made.topic, made.partition),
            Offset(made.offset, made.leader_epoch, made.metadata, record.log_time_ms),
        )
        for made in event.offsets
    )
    return group._replace(offsets=group.offsets.update_all(fresh))


def offsets_deleted(group: Group[Any], event: OffsetsDeleted, _record: Record) -> Group[Any]:
    """Remove offsets; one that is not there is ignored."""
    offsets = group.offsets
    for place in event.partitions:
        offsets = offsets.remove(place)
    return group._replace(offsets=offsets)
