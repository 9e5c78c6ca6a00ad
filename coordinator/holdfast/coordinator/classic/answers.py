"""How answers are built from the state; nothing is decided here."""

from __future__ import annotations

from holdfast.coordinator.classic.state import ClassicGroup, Member
from holdfast.coordinator.model.ids import UNCOMMITTED, MemberId, fencing_token
from holdfast.coordinator.model.rejections import Rejection
from holdfast.coordinator.model.replies import Grant, JoinedMember, JoinReply, SyncReply
from holdfast.coordinator.model.state import State


def refused_join(error: Rejection, member_id: MemberId = "") -> JoinReply:
    """Return an error answer: no generation, no protocol (K-A24); its member id varies."""
    return JoinReply(error, member_id=member_id)


def joined(
    state: State,
    group: ClassicGroup,
    member_id: MemberId,
    *,
    members: tuple[JoinedMember, ...] = (),
    skip_assignment: bool = False,
) -> JoinReply:
    """Return the answer of a join in the present generation."""
    return JoinReply(
        None,
        generation=group.generation,
        protocol_type=group.body.protocol_type,
        protocol_name=group.body.protocol_name,
        leader=group.body.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
        grant=grant(state, group.body.members[member_id]),
    )


def synced(state: State, group: ClassicGroup, member: Member) -> SyncReply:
    """Return the answer of a sync: what this member holds in the present generation."""
    return SyncReply(
        None,
        protocol_type=group.body.protocol_type,
        protocol_name=group.body.protocol_name,
        assignment=member.assignment,
        grant=grant(state, member),
    )


def member_list(group: ClassicGroup) -> tuple[JoinedMember, ...]:
    """List all members for the leader, absent static ones too (K-D6), in the order of joining."""
    name = group.body.protocol_name or ""
    ordered = sorted(group.body.members.values(), key=lambda member: member.joined_seq)
    return tuple(
        JoinedMember(member.member_id, member.instance_id, member.profile.metadata(name))
        for member in ordered
    )


def grant(state: State, member: Member) -> Grant:
    """Return what a member holds beside its assignment (S11-S13).

    The token of a grant that is not committed yet is `UNCOMMITTED`; `effects.settled` fills it in.
    """
    index = member.granted_index
    token = index if index in (0, UNCOMMITTED) else fencing_token(state.recovery_number, index)
    profile = member.profile
    return Grant(
        token, profile.session_timeout_ms, profile.rebalance_timeout_ms, member.predecessor_ms
    )
