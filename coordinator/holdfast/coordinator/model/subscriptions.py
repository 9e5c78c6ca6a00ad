"""What groups subscribe to, as values. No rules; each type of group reads its members' bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.coordinator.model.ids import GroupId
from holdfast.coordinator.model.state import Group
from holdfast.coordinator.structures.pmap import PMap

if TYPE_CHECKING:
    from holdfast.coordinator.model.ids import TopicName

CONSUMER: Final = "consumer"
"""The protocol type whose metadata is a ConsumerProtocolSubscription."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The topics that are subscribed to."""

    topics: frozenset[TopicName]
    everything: bool = False
    """They are not known, so every topic counts."""

    def includes(self, topic: TopicName) -> bool:
        """Return whether the topic must be treated as subscribed."""
        return self.everything or topic in self.topics


class Survey(NamedTuple):
    """A search of one state's groups for those that subscribe to some topics."""

    groups: PMap[GroupId, Group[Any]] = PMap()
    """The groups that were searched; empty: none yet."""
    subscribed: frozenset[GroupId] = frozenset()
    """Those that subscribe."""


UNSURVEYED: Final = Survey()
"""No group was searched yet, so every group must be."""
