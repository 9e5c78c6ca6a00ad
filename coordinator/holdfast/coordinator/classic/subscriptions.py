"""The topics that a classic group subscribes to; known for the type `consumer` only.

The server reads the metadata of that type when a member joins (`Protocol.topics`); every other
type's is opaque. Decides nothing.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from holdfast.coordinator.model.subscriptions import CONSUMER, Subscribed

if TYPE_CHECKING:
    from collections.abc import Container

    from holdfast.coordinator.classic.state import ClassicGroup, Member
    from holdfast.coordinator.model.ids import TopicName


def known(group: ClassicGroup) -> bool:
    """Return whether the group's protocol type shows its topics at all (K-J23)."""
    return group.body.protocol_type == CONSUMER


def of(group: ClassicGroup) -> Subscribed:
    """Return what the group subscribes to (K-J24); nothing, for a type that does not show it.

    A member that cannot be read, and every member before the first protocol is chosen, counts as
    subscribed to every topic (K-J25). Looks at each member, so call it once and not for each topic.
    """
    if not known(group):
        return Subscribed(frozenset())
    found = [_topics(member, group.body.protocol_name) for member in group.body.members.values()]
    readable = [topics for topics in found if topics is not None]
    everything = len(readable) < len(found)
    return Subscribed(frozenset(chain.from_iterable(readable)), everything)


def _topics(member: Member, protocol_name: str | None) -> tuple[TopicName, ...] | None:
    return next((p.topics for p in member.profile.protocols if p.name == protocol_name), None)


def named(group: ClassicGroup, topics: Container[TopicName]) -> frozenset[TopicName]:
    """Return those of `topics` that a member's metadata names, in any of its protocols.

    Unreadable metadata names nothing here, unlike in `of`: one member with unreadable bytes must
    not keep an operator from deleting any topic.
    """
    if not known(group):
        return frozenset()
    offered = chain.from_iterable(
        member.profile.protocols for member in group.body.members.values()
    )
    return frozenset(topic for each in offered for topic in each.topics or () if topic in topics)
