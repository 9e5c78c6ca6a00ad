"""Which topics a group subscribes to, as far as the service can know: type `consumer` only.

The server reads the metadata of that type when a member joins (`Protocol.topics`); every other
type's is opaque. Knows no rules; `decide.offsets` asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holdfast.coordinator.ids import TopicName
    from holdfast.coordinator.state import Group, Member

CONSUMER: Final = "consumer"
"""The protocol type whose metadata is a ConsumerProtocolSubscription."""


def known(group: Group) -> bool:
    """Whether the group's type tells its topics at all (J23)."""
    return group.protocol_type == CONSUMER


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Topics that somebody subscribes to; `everything`: it cannot be told, so all of them count."""

    topics: frozenset[TopicName]
    everything: bool = False

    def includes(self, topic: TopicName) -> bool:
        """Whether the topic must be treated as subscribed."""
        return self.everything or topic in self.topics


def of(group: Group) -> Subscribed:
    """What the group subscribes to (J24); nothing, for a type that does not tell.

    Who cannot be read, and everybody before the first protocol is chosen, counts as subscribed to
    every topic (J25). One look at each member, so ask once and not for each topic.
    """
    if not known(group):
        return Subscribed(frozenset())
    found = [_topics(member, group.protocol_name) for member in group.members.values()]
    readable = [topics for topics in found if topics is not None]
    everything = len(readable) < len(found)
    return Subscribed(frozenset(chain.from_iterable(readable)), everything)


def _topics(member: Member, protocol_name: str | None) -> tuple[TopicName, ...] | None:
    return next((p.topics for p in member.protocols if p.name == protocol_name), None)
