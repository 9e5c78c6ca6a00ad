"""Who plays in a group: its protocol, its topic, how many members it has and which are static.

All follows from the group's number, so that nothing has to be kept for a group. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.replay.generate.world import TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model.events import TopicSize
    from holdfast.coordinator.model.ids import GroupId, InstanceId

GIANT_MEMBERS: Final = 24
MEMBERS_MAX: Final = 4


class Cast(NamedTuple):
    """The members that a group is to have."""

    group_id: GroupId
    classic: bool
    """Its protocol; else it is the heartbeat protocol."""
    topic: TopicSize
    instances: tuple[InstanceId, ...]
    """Of its static members."""
    dynamic: int
    """How many others it has."""

    def missing(self, present: Iterable[InstanceId | None]) -> tuple[InstanceId | None, ...]:
        """Return who is not there; None: a dynamic member."""
        there = list(present)
        gone = [each for each in self.instances if each not in there]
        return (*gone, *[None] * max(self.dynamic - there.count(None), 0))


def cast(number: int, topics: tuple[TopicSize, ...], *, giant: bool) -> Cast:
    """Return the cast of a group: half of each protocol, most members static."""
    members = GIANT_MEMBERS if giant else 1 + number // 2 % MEMBERS_MAX
    dynamic = members // 3
    instances = tuple(f"worker-{n}" for n in range(members - dynamic))
    topic = topics[number // 2 % TOPICS]
    return Cast(f"group-{number:07}", number % 2 == 0, topic, instances, dynamic)
