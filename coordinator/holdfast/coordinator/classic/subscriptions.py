"""Which topics a classic group subscribes to, as far as the service can know: type `consumer` only.

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
    """Whether the group's type tells its topics at all (K-J23)."""
    return group.body.protocol_type == CONSUMER


def of(group: ClassicGroup) -> Subscribed:
    """What the group subscribes to (K-J24); nothing, for a type that does not tell.

    Who cannot be read, and everybody before the first protocol is chosen, counts as subscribed to
    every topic (K-J25). One look at each member, so ask once and not for each topic.
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
    """Those of `topics` that a member's metadata names, whichever of its protocols is chosen.

    What cannot be read names nothing here, unlike in `of`: one member with unreadable bytes must
    not keep an operator from every topic there is.
    """
    if not known(group):
        return frozenset()
    offered = chain.from_iterable(
        member.profile.protocols for member in group.body.members.values()
    )
    return frozenset(topic for each in offered for topic in each.topics or () if topic in topics)
