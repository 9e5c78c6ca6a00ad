"""Invariants of a classic group and its members, beside those of every group (S6).

A sentence for each broken one; none is good. Each begins with the rule's id. Knows the state only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.classic.transitions import COMPLETING, PREPARING
from holdfast.coordinator.model.ids import UNCOMMITTED
from holdfast.coordinator.model.state import EMPTY, STABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.coordinator.classic.state import ClassicGroup, Member
    from holdfast.coordinator.model.ids import MemberId

STATES: Final = frozenset({EMPTY, PREPARING, COMPLETING, STABLE})
"""The states that a stored group can be in."""

_DECIDED: Final = frozenset({COMPLETING, STABLE})
"""States in which a generation runs: there is a protocol, and a group leader."""

_SAME_PLACE: Final = "S6: two members have the same place in the order of joining"


def check(group: ClassicGroup) -> Iterator[str]:
    """Yield what does not hold of the group and its members, in time proportional to its size."""
    yield from _itself(group)
    seqs = {member.joined_seq for member in group.body.members.values()}
    if len(seqs) != len(group.body.members):
        yield _SAME_PLACE
    for member_id, member in group.body.members.items():
        if member.member_id != member_id:
            yield f"S6: member {member.member_id!r} is kept as {member_id!r}"
        yield from _member(group, member)
    yield from _instances(group)


def check_touched(
    before: ClassicGroup | None, group: ClassicGroup, member_ids: Iterable[MemberId]
) -> Iterator[str]:
    """Check these members and the leader, in time independent of the group's size.

    A removed member must have left no instance behind (K-C1).
    """
    yield from _itself(group)
    places: set[int] = set()
    leader = () if group.body.leader is None else (group.body.leader,)
    for member_id in {*member_ids, *leader}:
        member = group.body.members.get(member_id)
        if member is not None:
            yield from _kept(group, member_id, member)
            yield from () if member.joined_seq not in places else (_SAME_PLACE,)
            places.add(member.joined_seq)
        elif before is not None and (was := before.body.members.get(member_id)) is not None:
            yield from _left_behind(group, was)


def _kept(group: ClassicGroup, member_id: MemberId, member: Member) -> Iterator[str]:
    if member.member_id != member_id:
        yield f"S6: member {member.member_id!r} is kept as {member_id!r}"
    yield from _member(group, member)
    instance = member.instance_id
    if instance and group.body.instances.get(instance) != member_id:
        yield f"C1: instance {instance!r} is not said to be {member_id!r}, who holds it"


def _left_behind(group: ClassicGroup, gone: Member) -> Iterator[str]:
    if gone.instance_id and group.body.instances.get(gone.instance_id) == gone.member_id:
        yield f"C1: instance {gone.instance_id!r} is said to be {gone.member_id!r}, who is gone"


def _itself(group: ClassicGroup) -> Iterator[str]:
    if group.state not in STATES:
        yield f"transitions: there is no state {group.state!r}"
    if group.state == EMPTY and (
        group.body.members or group.body.leader or group.body.protocol_name is not None
    ):
        yield "D9: it is Empty, but has members, a leader or a protocol"
    if group.body.members and group.body.protocol_type is None:
        yield "I2: it has members, but no protocol type"
    if group.state != PREPARING and (group.body.initial or group.body.round_timeout_ms):
        yield "D1: no join phase is open, but something is left of one"
    yield from _leadership(group)
    if len(set(group.body.rejoined)) != len(group.body.rejoined):
        yield "S16: a member rejoined the same generation twice"


def _leadership(group: ClassicGroup) -> Iterator[str]:
    if group.body.leader is not None and group.body.leader not in group.body.members:
        yield f"D13: its leader {group.body.leader!r} is no member"
    if group.state not in _DECIDED:
        return
    if not group.body.members or group.body.leader is None or group.generation < 1:
        yield f"S16: it is {group.state} without members, leader or generation"
    if group.body.protocol_name is None:  # an empty name is one, as with Kafka
        yield f"D11: it is {group.state} without a protocol"


def _member(group: ClassicGroup, member: Member) -> Iterator[str]:
    who = f"member {member.member_id!r}"
    if not member.member_id:
        yield "A1: a member has an empty id"
    if not 0 < member.joined_seq <= group.seq:
        yield f"S3: {who} joined at seq {member.joined_seq}, the group is at {group.seq}"
    if member.granted_index < UNCOMMITTED or member.predecessor_ms < 0:
        yield f"S13: {who} has grant {member.granted_index} after {member.predecessor_ms} ms"
    if member.released and member.instance_id is None:
        yield f"S12: {who} is released, but not static"
    if member.assignment and not member.granted_index:
        yield f"S13: {who} has an assignment, but no grant"
    if group.state == STABLE and not member.granted_index:
        yield f"E5: {who} has no grant in a Stable group"
    if group.state in _DECIDED and not _speaks(member, group.body.protocol_name):
        yield f"I1: {who} does not support the protocol {group.body.protocol_name!r}"


def _instances(group: ClassicGroup) -> Iterator[str]:
    """Check that instances and static members are one to one (K-I4, K-C1).

    No identity may be held twice.
    """
    static = {m.member_id: m.instance_id for m in group.body.members.values() if m.instance_id}
    if len(set(static.values())) != len(static):
        yield "C1: two members hold the same instance id"
    for instance_id, member_id in group.body.instances.items():
        if static.get(member_id) != instance_id:
            yield f"C1: instance {instance_id!r} is said to be {member_id!r}, who does not hold it"
    if len(group.body.instances) != len(static):
        yield f"C1: {len(group.body.instances)} instances are known, {len(static)} are held"


def _speaks(member: Member, protocol_name: str | None) -> bool:
    return any(protocol.name == protocol_name for protocol in member.profile.protocols)
