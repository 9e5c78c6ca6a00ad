"""How a classic group changes by its events: members, join phases, assignments.

Knows neither commands nor settings, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias, cast

from holdfast.coordinator.classic.transitions import COMPLETING
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    AssignmentStored,
    GenerationStarted,
    GroupEmptied,
    GroupEvent,
    InstanceReleased,
    MemberExpired,
    MemberJoined,
    MemberRefused,
    MembersLeft,
    MembersRemoved,
    MemberUpdated,
    RebalanceStarted,
    Record,
    StaticMemberReplaced,
)
from holdfast.coordinator.model.ids import MemberId, RequestId
from holdfast.coordinator.model.state import Group, Member

MemberEvent: TypeAlias = (
    MemberJoined
    | MemberUpdated
    | StaticMemberReplaced
    | InstanceReleased
    | MembersLeft
    | MembersRemoved
    | MemberExpired
    | MemberRefused
)

REPLACED_REQUESTS_MAX: Final = 8
"""So many joins of earlier processes are remembered for each static member (S14)."""


def evolve(group: Group, event: GroupEvent, record: Record) -> Group:
    """The group after an event of the classic protocol; InvariantBroken if it cannot be true."""
    match event:
        case RebalanceStarted():
            return _rebalance_started(group, event)
        case GenerationStarted():
            return _generation_started(group, event)
        case AssignmentStored():
            return _assignment_stored(group, event, record)
        case GroupEmptied():
            return _group_emptied(group, event)
        case _:
            return _members(group, cast("MemberEvent", event), record)


def _members(group: Group, event: MemberEvent, record: Record) -> Group:
    match event:
        case MemberJoined():
            return _joined(group, event, record)
        case MemberUpdated():
            return _updated(group, event)
        case StaticMemberReplaced():
            return _replaced(group, event, record)
        case InstanceReleased():
            member = known(group, event.member_id)
            return _put(group, member._replace(released=True))
        case MembersLeft():
            return without(group, event.member_ids)
        case MembersRemoved():
            return _removed(group, event, record)
        case MemberExpired() | MemberRefused():
            return without(group, (event.member_id,))


def known(group: Group, member_id: MemberId) -> Member:
    """The member that an event speaks of; raise InvariantBroken if there is none."""
    member = group.members.get(member_id)
    if member is None:
        raise InvariantBroken("S6", f"no member {member_id!r} in group {group.group_id!r}")
    return member


def without(group: Group, member_ids: Iterable[MemberId]) -> Group:
    """The group without these members, their instances, and their leadership."""
    members, instances, leader = group.members, group.instances, group.leader
    for member_id in member_ids:
        if member_id not in members:
            raise InvariantBroken("S6", f"no member {member_id!r} in group {group.group_id!r}")
        instance_id = members[member_id].instance_id
        members = members.remove(member_id)
        instances = instances if instance_id is None else instances.remove(instance_id)
        leader = None if leader == member_id else leader
    return group._replace(members=members, instances=instances, leader=leader)


def _put(group: Group, member: Member) -> Group:
    return group._replace(members=group.members.set(member.member_id, member))


def _joined(group: Group, event: MemberJoined, record: Record) -> Group:
    if event.member_id in group.members:
        raise InvariantBroken("S6", f"member {event.member_id!r} joined twice")
    if event.instance_id is not None and event.instance_id in group.instances:
        raise InvariantBroken("C15", f"instance {event.instance_id!r} is held already")
    member = Member(
        member_id=event.member_id,
        instance_id=event.instance_id,
        profile=event.profile,
        request_id=event.request_id,
        joined_seq=record.group_seq,
        since_ms=record.log_time_ms,
    )
    made = _put(group, member)
    if event.instance_id is not None:
        made = made._replace(instances=made.instances.set(event.instance_id, event.member_id))
    return made if group.members else made._replace(protocol_type=event.protocol_type)


def _updated(group: Group, event: MemberUpdated) -> Group:
    member = known(group, event.member_id)
    return _put(group, member._replace(profile=event.profile, request_id=event.request_id))


def _replaced_requests(old: Member) -> tuple[RequestId, ...]:
    if not old.request_id:
        return old.replaced_requests
    return (*old.replaced_requests, old.request_id)[-REPLACED_REQUESTS_MAX:]


def _replaced(group: Group, event: StaticMemberReplaced, record: Record) -> Group:
    """The whole swap (K-B3): assignment, place in the order and leadership go with the instance.

    Who was never granted anything hands nothing over, so that is no grant (S13).
    """
    old = known(group, event.old_member_id)
    if old.instance_id != event.instance_id or event.new_member_id in group.members:
        raise InvariantBroken("C14", f"{event.old_member_id!r} cannot become what the event says")
    new = old._replace(
        member_id=event.new_member_id,
        profile=event.profile,
        request_id=event.request_id,
        since_ms=record.log_time_ms,
        granted_index=record.position.index if old.granted_index else 0,
        predecessor_ms=event.predecessor_ms,
        released=False,
        replaced_requests=_replaced_requests(old),
    )
    until_ms = record.log_time_ms + event.predecessor_ms
    return group._replace(
        members=group.members.remove(old.member_id).set(new.member_id, new),
        instances=group.instances.set(event.instance_id, new.member_id),
        leader=new.member_id if group.leader == old.member_id else group.leader,
        predecessors_until_ms=max(group.predecessors_until_ms, until_ms),
    )


def _removed(group: Group, event: MembersRemoved, record: Record) -> Group:
    """Who was removed by an operator may act until its session would have ended (S12)."""
    sessions = (
        known(group, member_id).profile.session_timeout_ms
        for member_id in event.member_ids
        if not known(group, member_id).released
    )
    until_ms = record.log_time_ms + max(sessions, default=0)
    return without(group, event.member_ids)._replace(
        predecessors_until_ms=max(group.predecessors_until_ms, until_ms)
    )


# --- join phases and assignments ---


def _rebalance_started(group: Group, event: RebalanceStarted) -> Group:
    members = group.members
    if group.state == COMPLETING:  # K-D10: what was handed out before is abandoned
        members = members.map_values(_abandon)
    return group._replace(
        members=members,
        rejoined=(),
        initial=event.initial,
        round_timeout_ms=event.timeout_ms,
    )


def _abandon(member: Member) -> Member:
    """The member's assignment is abandoned (K-D10); what moves is told against it all the same."""
    held = member.assignment or member.abandoned
    return member._replace(assignment=b"", abandoned=held)


def _generation_started(group: Group, event: GenerationStarted) -> Group:
    _next_generation(group, event.generation)
    left = without(group, event.removed)
    members = left.members
    for rejoin in event.rejoined:
        member = known(left, rejoin.member_id)
        if member.request_id != rejoin.request_id:
            members = members.set(rejoin.member_id, member._replace(request_id=rejoin.request_id))
    known(left, event.leader)
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
