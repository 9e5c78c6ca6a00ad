"""What groups subscribe to, as values. No rules; each type of group reads its members' bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.coordinator.model.ids import GroupId
from holdfast.coordinator.model.pmap import PMap
from holdfast.coordinator.model.state import Group

if TYPE_CHECKING:
    from holdfast.coordinator.model.ids import TopicName

CONSUMER: Final = "consumer"
"""The protocol type whose metadata is a ConsumerProtocolSubscription."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Topics that somebody subscribes to; `everything`: it cannot be told, so all of them count."""

    topics: frozenset[TopicName]
    everything: bool = False

    def includes(self, topic: TopicName) -> bool:
        """Whether the topic must be treated as subscribed."""
        return self.everything or topic in self.topics


class Survey(NamedTuple):
    """Groups that were found to subscribe to some topics, among the groups of one state.

    With no `groups` nobody has looked yet.
    """

    groups: PMap[GroupId, Group[Any]] = PMap()
    subscribed: frozenset[GroupId] = frozenset()


UNSURVEYED: Final = Survey()
"""Nobody has looked: whoever asks looks at every group."""
