"""Which topics a group subscribes to, as far as the service can know: type `consumer` only.

The server reads the metadata of that type when a member joins (`Protocol.topics`); every other
type's is opaque. Knows no rules; `decide.offsets` and `decide.cluster` ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator.model.ids import GroupId
from holdfast.coordinator.model.pmap import PMap
from holdfast.coordinator.model.state import Group

if TYPE_CHECKING:
    from collections.abc import Container

    from holdfast.coordinator.model.ids import TopicName
    from holdfast.coordinator.model.state import Member

CONSUMER: Final = "consumer"
"""The protocol type whose metadata is a ConsumerProtocolSubscription."""


def known(group: Group) -> bool:
    """Whether the group's type tells its topics at all (K-J23)."""
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
    """What the group subscribes to (K-J24); nothing, for a type that does not tell.

    Who cannot be read, and everybody before the first protocol is chosen, counts as subscribed to
    every topic (K-J25). One look at each member, so ask once and not for each topic.
    """
    if not known(group):
        return Subscribed(frozenset())
    found = [_topics(member, group.protocol_name) for member in group.members.values()]
    readable = [topics for topics in found if topics is not None]
    everything = len(readable) < len(found)
    return Subscribed(frozenset(chain.from_iterable(readable)), everything)


def _topics(member: Member, protocol_name: str | None) -> tuple[TopicName, ...] | None:
    return next((p.topics for p in member.protocols if p.name == protocol_name), None)


class Survey(NamedTuple):
    """Groups that were found to subscribe to some topics, among the groups of one state.

    With no `groups` nobody has looked yet.
    """

    groups: PMap[GroupId, Group] = PMap()
    subscribed: frozenset[GroupId] = frozenset()


def named(group: Group, topics: Container[TopicName]) -> frozenset[TopicName]:
    """Those of `topics` that a member's metadata names, whichever of its protocols is chosen.

    What cannot be read names nothing here, unlike in `of`: one member with unreadable bytes must
    not keep an operator from every topic there is.
    """
    if not known(group):
        return frozenset()
    offered = chain.from_iterable(member.protocols for member in group.members.values())
    return frozenset(topic for each in offered for topic in each.topics or () if topic in topics)


def of_topics(
    groups: PMap[GroupId, Group], topics: Container[TopicName], survey: Survey
) -> dict[TopicName, list[GroupId]]:
    """Which groups subscribe to each of these topics, sorted; a topic without any is left out.

    Looks into the groups of the survey, and into those that have changed since it was taken.
    """
    found: dict[TopicName, list[GroupId]] = {}
    for group_id in sorted(survey.subscribed.union(groups.changed_since(survey.groups))):
        group = groups.get(group_id)
        for topic in named(group, topics) if group else ():
            found.setdefault(topic, []).append(group_id)
    return found


UNSURVEYED: Final = Survey()
"""Nobody has looked: whoever asks looks at every group."""
