"""Fold one recorded event into the state. Pure, and total over all events that can be true.

Nothing is decided here: an event says all that there is to know. `evolve` takes the record, not the
bare event, since an entry's index becomes a fencing token (S13) and log time is kept (S8). An event
that cannot be true of the state that it meets raises InvariantBroken (S6).
"""

from __future__ import annotations

from typing import Final

from holdfast.coordinator.classic import evolve as evolve_members
from holdfast.coordinator.classic import transitions
from holdfast.coordinator.cluster import evolve as evolve_cluster
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    AssignmentStored,
    ClusterEvent,
    ClusterFormed,
    GenerationStarted,
    GroupCreated,
    GroupDeleted,
    GroupEmptied,
    GroupEvent,
    OffsetsCommitted,
    OffsetsDeleted,
    PartitionsAdded,
    RebalanceStarted,
    Record,
    RequestRecorded,
    SegmentSealed,
    SettingsChanged,
    TopicsCreated,
    TopicsDeleted,
)
from holdfast.coordinator.model.state import COMPLETING, Group, State
from holdfast.coordinator.offsets import evolve as evolve_offsets
from holdfast.coordinator.projections import rebalances as evolve_rebalances

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
    """The state after this record; raise InvariantBroken if it cannot be true of `state`.

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


def evolve_group(group: Group | None, event: GroupEvent, record: Record) -> Group | None:
    """The group after its event; None if it is gone. Raise InvariantBroken as `evolve` does."""
    if group is not None and group.quarantined and isinstance(event, GroupDeleted):
        return None  # an operator ends the quarantine, whatever state it caught the group in (S6)
    to = transitions.target(group.state if group else transitions.ABSENT, event)
    index = record.position.index
    if group is None:
        return Group(
            record.group_id,
            version=index,
            seq=record.group_seq,
            state_since_ms=record.log_time_ms,
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


def _changed(group: Group, event: GroupEvent, record: Record) -> Group:
    match event:
        case OffsetsCommitted():
            return evolve_offsets.offsets_committed(group, event, record)
        case OffsetsDeleted():
            return evolve_offsets.offsets_deleted(group, event, record)
        case RebalanceStarted():
            return _rebalance_started(group, event, record)
        case GenerationStarted():
            started = _generation_started(group, event)
            return evolve_rebalances.closed(group, started, event.removed, record)
        case AssignmentStored():
            stored = _assignment_stored(group, event, record)
            return evolve_rebalances.assigned(group, stored, record)
        case GroupEmptied():
            return evolve_rebalances.closed(group, _group_emptied(group, event), (), record)
        case GroupCreated() | GroupDeleted():
            return group
        case _:
            applied = evolve_members.apply(group, event, record)
            return evolve_rebalances.changed(group, applied, event)


def _rebalance_started(group: Group, event: RebalanceStarted, record: Record) -> Group:
    members = group.members
    if group.state == COMPLETING:  # K-D10: what was handed out before is abandoned
        members = members.map_values(evolve_rebalances.abandon)
    opened = evolve_rebalances.opened(group, event, record)
    return opened._replace(
        members=members,
        rejoined=(),
        initial=event.initial,
        round_timeout_ms=event.timeout_ms,
    )


def _generation_started(group: Group, event: GenerationStarted) -> Group:
    _next_generation(group, event.generation)
    left = evolve_members.without(group, event.removed)
    members = left.members
    for rejoin in event.rejoined:
        member = evolve_members.known(left, rejoin.member_id)
        if member.request_id != rejoin.request_id:
            members = members.set(rejoin.member_id, member._replace(request_id=rejoin.request_id))
    evolve_members.known(left, event.leader)
    if len(event.rejoined) + len(event.absent) != len(members):
        raise InvariantBroken("S16", f"generation {event.generation} does not name every member")
    return left._replace(
        members=members,
        generation=event.generation,
        protocol_name=event.protocol_name,
        leader=event.leader,
        rejoined=tuple(rejoin.member_id for rejoin in event.rejoined),
        initial=False,
        round_timeout_ms=0,
    )


def _assignment_stored(group: Group, event: AssignmentStored, record: Record) -> Group:
    if event.generation != group.generation:
        raise InvariantBroken(
            "E5", f"assignment of generation {event.generation} in {group.generation}"
        )
    given = dict(event.assignments)
    if not given.keys() <= group.members.keys():
        raise InvariantBroken("E5", f"assigned to strangers: {given.keys() - set(group.members)}")
    left_ms = max(0, group.predecessors_until_ms - record.log_time_ms)
    return group._replace(
        rejoined=(),
        members=group.members.map_values(
            lambda member: member._replace(
                assignment=given.get(member.member_id, b""),
                abandoned=b"",
                granted_index=record.position.index,
                predecessor_ms=left_ms,
            )
        ),
    )


def _group_emptied(group: Group, event: GroupEmptied) -> Group:
    _next_generation(group, event.generation)
    if group.members:
        raise InvariantBroken("D9", f"emptied with {len(group.members)} members")
    return group._replace(
        generation=event.generation,
        protocol_name=None,
        leader=None,
        rejoined=(),
        initial=False,
        round_timeout_ms=0,
    )


def _next_generation(group: Group, generation: int) -> None:
    """Each closed join phase adds exactly one, and no number is issued twice (K-A25, S13)."""
    if generation != group.generation + 1:
        raise InvariantBroken("A25", f"generation {generation} follows {group.generation}")
