"""Find the groups that subscribe to topics before these are deleted: all groups, in slices.

The state is a value, so it can be read over many turns of the loop. When the deletion is decided,
it looks again at each group that has changed since.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.model.subscriptions import Survey

if TYPE_CHECKING:
    from collections.abc import Container

    from holdfast.coordinator.model.ids import GroupId, TopicName
    from holdfast.coordinator.model.pmap import PMap
    from holdfast.coordinator.model.state import Group

MEMBERS_A_TURN: Final = 1_000
"""Members that are examined in one turn of the loop: about a millisecond."""


async def survey(groups: PMap[GroupId, Group[Any]], topics: Container[TopicName]) -> Survey:
    """Find the groups with a member that names one of the topics."""
    subscribed: set[GroupId] = set()
    looked_at = 0
    for group in groups.values():
        kind = type_of(group)
        if kind.names(group, topics):
            subscribed.add(group.group_id)
        looked_at += 1 + len(kind.members(group))
        if looked_at >= MEMBERS_A_TURN:
            looked_at = 0
            await asyncio.sleep(0)
    return Survey(groups, frozenset(subscribed))
