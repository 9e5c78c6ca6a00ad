"""Folds one recorded event into the state. Pure, and total over all events that can be true.

Nothing is decided here: an event is complete. `evolve` takes the record, not the
bare event, since an entry's index becomes a fencing token (S13) and log time is kept (S8). An event
that cannot be true of the state that it meets raises InvariantBroken (S6).
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.coordinator.cluster import evolve as evolve_cluster
from holdfast.coordinator.kernel.group_types import new_group, type_of
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    ClusterEvent,
    ClusterFormed,
    GroupCreated,
    GroupDeleted,
    GroupEvent,
    OffsetsCommitted,
    OffsetsDeleted,
    PartitionsAdded,
    Record,
    RequestRecorded,
    SegmentSealed,
    SettingsChanged,
    TopicsCreated,
    TopicsDeleted,
)
from holdfast.coordinator.model.state import ABSENT, Group, State
from holdfast.coordinator.offsets import evolve as evolve_offsets

_CLUSTER: Final = (
    ClusterFormed,
    SettingsChanged,
    TopicsCreated,
    PartitionsAdded,
    TopicsDeleted,
    SegmentSealed,
    RequestRecorded,
)


def evolve(state: State, record: Record) -> State:
    """Return the state after this record. Raises InvariantBroken if it cannot be true of `state`.

    A group's version becomes the index of the record's entry (S2).
    """
    event = record.event
    if isinstance(event, _CLUSTER):
        return _evolve_cluster(state, event, record)
    group = evolve_group(state.groups.get(record.group_id), event, record)
    if group is None:
        return state._replace(groups=state.groups.remove(record.group_id))
    return state._replace(groups=state.groups.set(record.group_id, group))


def _evolve_cluster(state: State, event: ClusterEvent | RequestRecorded, record: Record) -> State:
    match event:
        case RequestRecorded():
            return evolve_cluster.request_recorded(state, event, record)
        case ClusterFormed():
            return evolve_cluster.cluster_formed(state, event, record)
        case SettingsChanged():
            return evolve_cluster.settings_changed(state, event, record)
        case TopicsCreated():
            return evolve_cluster.topics_created(state, event, record)
        case PartitionsAdded():
            return evolve_cluster.partitions_added(state, event, record)
        case TopicsDeleted():
            return evolve_cluster.topics_deleted(state, event, record)
        case SegmentSealed():
            return evolve_cluster.segment_sealed(state, event, record)


def evolve_group(group: Group[Any] | None, event: GroupEvent, record: Record) -> Group[Any] | None:
    """Return the group after its event; None if it is gone. Raises as `evolve` does."""
    if group is not None and group.quarantined and isinstance(event, GroupDeleted):
        return None  # an operator ends the quarantine, whatever state it caught the group in (S6)
    to = type_of(group).target(group.state if group else ABSENT, event)
    index = record.position.index
    if group is None:
        return new_group(record.group_id)._replace(
            version=index, seq=record.group_seq, state_since_ms=record.log_time_ms
        )
    if record.group_seq != group.seq + 1:
        raise InvariantBroken("S3", f"record {record.group_seq} follows {group.seq}")
    if isinstance(event, GroupDeleted):
        return None
    changed = _changed(group, event, record)
    if to == group.state:
        return changed._replace(version=index, seq=record.group_seq)
    return changed._replace(
        version=index, seq=record.group_seq, state=to, state_since_ms=record.log_time_ms
    )


def _changed(group: Group[Any], event: GroupEvent, record: Record) -> Group[Any]:
    match event:
        case OffsetsCommitted():
            return evolve_offsets.offsets_committed(group, event, record)
        case OffsetsDeleted():
            return evolve_offsets.offsets_deleted(group, event, record)
        case GroupCreated() | GroupDeleted():
            return group
    return type_of(group).evolve(group, event, record)
