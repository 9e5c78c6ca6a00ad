"""How events of offsets change a group. Total: an event on the log is a fact.

Knows no rules of who may commit or delete; those are in `offsets.commits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.state import Group, Offset
from holdfast.coordinator.structures.copies import with_one

if TYPE_CHECKING:
    from holdfast.coordinator.model.events import OffsetsCommitted, OffsetsDeleted, Record

_with_offsets: Final = with_one(Group, "offsets")
_new: Final[Any] = tuple.__new__  # makes a NamedTuple of its fields


def offsets_committed(group: Group[Any], event: OffsetsCommitted, record: Record) -> Group[Any]:
    """Set offsets, which may go backwards; the commit time is log time (S8)."""
    log_time_ms = record.log_time_ms
    if len(event.offsets) == 1:  # most commits
        ((topic, partition, *told),) = event.offsets
        place = _new(TopicPartition, (topic, partition))
        offset = _new(Offset, (*told, log_time_ms))
        return _with_offsets(group, group.offsets.set(place, offset))
    fresh: dict[TopicPartition, Offset | None] = {
        _new(TopicPartition, (topic, partition)): _new(Offset, (offset, epoch, text, log_time_ms))
        for topic, partition, offset, epoch, text in event.offsets
    }
    return _with_offsets(group, group.offsets.changed(fresh))


def offsets_deleted(group: Group[Any], event: OffsetsDeleted, _record: Record) -> Group[Any]:
    """Remove offsets; one that is not there is ignored."""
    return _with_offsets(group, group.offsets.changed(dict.fromkeys(event.partitions)))
