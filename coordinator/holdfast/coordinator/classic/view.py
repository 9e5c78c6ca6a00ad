"""What others ask of a classic group: its topics, and how people are shown it. Decides nothing.

Topics are known for the type `consumer` only: the server reads the metadata of that type when a
member joins (`Protocol.topics`); every other type's is opaque.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from holdfast.coordinator.model.described import DescribedBody, DescribedMember, Identity
from holdfast.coordinator.model.ids import fencing_token
from holdfast.coordinator.model.state import STABLE
from holdfast.coordinator.model.subscriptions import CONSUMER, Subscribed

if TYPE_CHECKING:
    from collections.abc import Container

    from holdfast.coordinator.classic.state import ClassicGroup, Member
    from holdfast.coordinator.model.ids import TopicName
    from holdfast.coordinator.model.state import State

# --- topics (K-J23 to K-J25) ---


def tells_topics(group: ClassicGroup) -> bool:
    """Return whether the group's protocol type shows its topics at all (K-J23)."""
    return group.body.protocol_type == CONSUMER


def subscribed(group: ClassicGroup) -> Subscribed:
    """Return what the group subscribes to (K-J24); nothing, for a type that does not show it.

    A member that cannot be read, and every member before the first protocol is chosen, counts as
    subscribed to every topic (K-J25). Looks at each member, so call it once and not for each topic.
    """
    if not tells_topics(group):
        return Subscribed(frozenset())
    found = [_topics(member, group.body.protocol_name) for member in group.body.members.values()]
    readable = [topics for topics in found if topics is not None]
    everything = len(readable) < len(found)
    return Subscribed(frozenset(chain.from_iterable(readable)), everything)


def _topics(member: Member, protocol_name: str | None) -> tuple[TopicName, ...] | None:
    return next((p.topics for p in member.profile.protocols if p.name == protocol_name), None)


def names(group: ClassicGroup, topics: Container[TopicName]) -> frozenset[TopicName]:
    """Return those of `topics` that a member's metadata names, in any of its protocols.

    Unreadable metadata names nothing here, unlike in `subscribed`: one member with unreadable
    bytes must not keep an operator from deleting any topic.
    """
    if not tells_topics(group):
        return frozenset()
    offered = chain.from_iterable(
        member.profile.protocols for member in group.body.members.values()
    )
    return frozenset(topic for each in offered for topic in each.topics or () if topic in topics)


# --- descriptions (K-K1, K-K2) ---


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
        principal=member.principal,
    )


def _token(state: State, member: Member) -> int | None:
    if member.granted_index == 0:
        return None
    return fencing_token(state.recovery_number, member.granted_index)
