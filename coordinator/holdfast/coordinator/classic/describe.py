"""Descriptions of a classic group and its members, for people and tools (K-K1, K-K2). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.model.described import DescribedBody, DescribedMember, Identity
from holdfast.coordinator.model.ids import fencing_token
from holdfast.coordinator.model.state import STABLE

if TYPE_CHECKING:
    from holdfast.coordinator.classic.state import ClassicGroup, Member
    from holdfast.coordinator.model.state import State


def describe(group: ClassicGroup) -> DescribedBody:
    """Describe the protocol and the leader."""
    return DescribedBody(
        group.body.protocol_type or "", _protocol_in_force(group) or "", group.body.leader or ""
    )


def _protocol_in_force(group: ClassicGroup) -> str | None:
    """Return the protocol whose data is shown; None while there is none."""
    return group.body.protocol_name if group.state == STABLE else None


def seniority(member: Member) -> int:
    """Return the key by which members are sorted: the oldest first."""
    return member.joined_seq


def identify(member: Member) -> Identity:
    """Return the ids by which a member is known."""
    return Identity(member.member_id, member.instance_id, member.profile.client_id)


def held(member: Member) -> bytes:
    """Return a member's assignment, or the one that it held until that was abandoned (K-D10)."""
    return member.assignment or member.abandoned


def describe_member(state: State, group: ClassicGroup, member: Member) -> DescribedMember:
    """Describe one member of the group."""
    name = _protocol_in_force(group)
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        profile=member.profile,
        metadata=b"" if name is None else member.profile.metadata(name),
        assignment=member.assignment,
        fencing_token=_token(state, member),
        released=member.released,
        since_ms=member.since_ms,
    )


def _token(state: State, member: Member) -> int | None:
    if member.granted_index == 0:
        return None
    return fencing_token(state.recovery_number, member.granted_index)
