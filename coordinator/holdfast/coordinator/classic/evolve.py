"""How a classic group changes by its events: members, join phases, assignments.

Knows neither commands nor settings, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from holdfast.coordinator.classic.state import ClassicBody, ClassicGroup, Member
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
from holdfast.coordinator.model.ids import MemberId, Principal, RequestId
from holdfast.coordinator.model.state import Group
from holdfast.coordinator.structures.copies import with_one

REPLACED_REQUESTS_MAX: Final = 8
"""So many joins of earlier processes are remembered for each static member (S14)."""


_with_body: Final = with_one(Group, "body")
_with_members: Final = with_one(ClassicBody, "members")


def evolve(group: ClassicGroup, event: GroupEvent, record: Record) -> ClassicGroup:
    """Fold an event of the classic protocol. Raises InvariantBroken if it cannot be true."""
    return FOLDS[type(event)](group, event, record)


def known(group: ClassicGroup, member_id: MemberId) -> Member:
    """Return the member that an event names. Raises InvariantBroken if there is none."""
    member = group.body.members.get(member_id)
    if member is None:
        raise InvariantBroken("S6", f"no member {member_id!r} in group {group.group_id!r}")
    return member


def without(group: ClassicGroup, member_ids: Iterable[MemberId]) -> ClassicGroup:
    """Return the group without these members, their instances, and their leadership."""
    body = group.body
    members, instances, leader = body.members, body.instances, body.leader
    for member_id in member_ids:
        if member_id not in members:
            raise InvariantBroken("S6", f"no member {member_id!r} in group {group.group_id!r}")
        instance_id = members[member_id].instance_id
        members = members.remove(member_id)
        instances = instances if instance_id is None else instances.remove(instance_id)
        leader = None if leader == member_id else leader
    left = body._replace(members=members, instances=instances, leader=leader)
    return _with_body(group, left)


def _put(group: ClassicGroup, member: Member) -> ClassicGroup:
    members = group.body.members.set(member.member_id, member)
    return _with_body(group, _with_members(group.body, members))


def _joined(group: ClassicGroup, event: MemberJoined, record: Record) -> ClassicGroup:
    body, instance_id = group.body, event.instance_id
    if event.member_id in body.members:
        raise InvariantBroken("S6", f"member {event.member_id!r} joined twice")
    if instance_id is not None and instance_id in body.instances:
        raise InvariantBroken("C15", f"instance {instance_id!r} is held already")
    member = Member(
        member_id=event.member_id,
        instance_id=instance_id,
        profile=event.profile,
        request_id=event.request_id,
        joined_seq=record.group_seq,
        since_ms=record.log_time_ms,
    )
    instances = body.instances
    made = body._replace(
        members=body.members.set(event.member_id, member),
        instances=instances if instance_id is None else instances.set(instance_id, event.member_id),
        protocol_type=body.protocol_type if body.members else event.protocol_type,
    )
    return _with_body(group, made)


def own(group: ClassicGroup, member_id: MemberId, principal: Principal) -> ClassicGroup:
    """Note to whom a member belongs."""
    return _put(group, known(group, member_id)._replace(principal=principal))


def _updated(group: ClassicGroup, event: MemberUpdated, _record: Record) -> ClassicGroup:
    member = known(group, event.member_id)
    return _put(group, member._replace(profile=event.profile, request_id=event.request_id))


def _released(group: ClassicGroup, event: InstanceReleased, _record: Record) -> ClassicGroup:
    return _put(group, known(group, event.member_id)._replace(released=True))


def _left(group: ClassicGroup, event: MembersLeft, _record: Record) -> ClassicGroup:
    return without(group, event.member_ids)


def _out(
    group: ClassicGroup, event: MemberExpired | MemberRefused, _record: Record
) -> ClassicGroup:
    return without(group, (event.member_id,))


def _replaced_requests(old: Member) -> tuple[RequestId, ...]:
    if not old.request_id:
        return old.replaced_requests
    return (*old.replaced_requests, old.request_id)[-REPLACED_REQUESTS_MAX:]


def _replaced(group: ClassicGroup, event: StaticMemberReplaced, record: Record) -> ClassicGroup:
    """Do the whole swap (K-B3): assignment, order and leadership go with the instance.

    A member that was never granted anything passes nothing on, so that is no grant (S13).
    """
    body, old = group.body, known(group, event.old_member_id)
    if old.instance_id != event.instance_id or event.new_member_id in body.members:
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
    swapped = body._replace(
        members=body.members.remove(old.member_id).set(new.member_id, new),
        instances=body.instances.set(event.instance_id, new.member_id),
        leader=new.member_id if body.leader == old.member_id else body.leader,
        predecessors_until_ms=max(body.predecessors_until_ms, until_ms),
    )
    return _with_body(group, swapped)


def _removed(group: ClassicGroup, event: MembersRemoved, record: Record) -> ClassicGroup:
    """Remove members for an operator; each may act until its session would have ended (S12)."""
    sessions = (
        known(group, member_id).profile.session_timeout_ms
        for member_id in event.member_ids
        if not known(group, member_id).released
    )
    until_ms = record.log_time_ms + max(sessions, default=0)
    left = without(group, event.member_ids)
    until_ms = max(left.body.predecessors_until_ms, until_ms)
    return _with_body(left, left.body._replace(predecessors_until_ms=until_ms))


# --- join phases and assignments ---


def _rebalance_started(
    group: ClassicGroup, event: RebalanceStarted, _record: Record
) -> ClassicGroup:
    members = group.body.members
    if group.state == COMPLETING:  # K-D10: what was handed out before is abandoned
        members = members.map_values(_abandon)
    opened = group.body._replace(
        members=members,
        rejoined=(),
        initial=event.initial,
        round_timeout_ms=event.timeout_ms,
    )
    return _with_body(group, opened)


def _abandon(member: Member) -> Member:
    """Abandon a member's assignment (K-D10); moves are still found by comparing with it."""
    held = member.assignment or member.abandoned
    return member._replace(assignment=b"", abandoned=held)


def _generation_started(
    group: ClassicGroup, event: GenerationStarted, _record: Record
) -> ClassicGroup:
    _next_generation(group, event.generation)
    left = without(group, event.removed)
    members = left.body.members
    for rejoin in event.rejoined:
        member = known(left, rejoin.member_id)
        if member.request_id != rejoin.request_id:
            members = members.set(rejoin.member_id, member._replace(request_id=rejoin.request_id))
    known(left, event.leader)
    if len(event.rejoined) + len(event.absent) != len(members):
        raise InvariantBroken("S16", f"generation {event.generation} does not name every member")
    started = left.body._replace(
        members=members,
        protocol_name=event.protocol_name,
        leader=event.leader,
        rejoined=tuple(rejoin.member_id for rejoin in event.rejoined),
        initial=False,
        round_timeout_ms=0,
    )
    return left._replace(generation=event.generation, body=started)


def _assignment_stored(
    group: ClassicGroup, event: AssignmentStored, record: Record
) -> ClassicGroup:
    if event.generation != group.generation:
        raise InvariantBroken(
            "E5", f"assignment of generation {event.generation} in {group.generation}"
        )
    body, given = group.body, dict(event.assignments)
    if not given.keys() <= body.members.keys():
        raise InvariantBroken("E5", f"assigned to strangers: {given.keys() - set(body.members)}")
    left_ms = max(0, body.predecessors_until_ms - record.log_time_ms)
    members = body.members.map_values(
        lambda member: member._replace(
            assignment=given.get(member.member_id, b""),
            abandoned=b"",
            granted_index=record.position.index,
            predecessor_ms=left_ms,
        )
    )
    return _with_body(group, body._replace(rejoined=(), members=members))


def _group_emptied(group: ClassicGroup, event: GroupEmptied, _record: Record) -> ClassicGroup:
    _next_generation(group, event.generation)
    if group.body.members:
        raise InvariantBroken("D9", f"emptied with {len(group.body.members)} members")
    emptied = group.body._replace(
        protocol_name=None,
        leader=None,
        rejoined=(),
        initial=False,
        round_timeout_ms=0,
    )
    return group._replace(generation=event.generation, body=emptied)


def _next_generation(group: ClassicGroup, generation: int) -> None:
    """Check that the generation grows by exactly one, so no number is issued twice (K-A25, S13)."""
    if generation != group.generation + 1:
        raise InvariantBroken("A25", f"generation {generation} follows {group.generation}")


FOLDS: Final[dict[type, Callable[[ClassicGroup, Any, Record], ClassicGroup]]] = {
    MemberJoined: _joined,
    MemberUpdated: _updated,
    StaticMemberReplaced: _replaced,
    InstanceReleased: _released,
    MembersLeft: _left,
    MembersRemoved: _removed,
    MemberExpired: _out,
    MemberRefused: _out,
    RebalanceStarted: _rebalance_started,
    GenerationStarted: _generation_started,
    AssignmentStored: _assignment_stored,
    GroupEmptied: _group_emptied,
}
"""The fold of each event of the classic protocol, by the event's class."""
