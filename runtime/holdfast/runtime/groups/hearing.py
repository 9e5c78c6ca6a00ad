"""What answers plain heartbeats from the groups' caches, for one turn of the loop.

The lease is looked at once for all heartbeats that have arrived together (S10 c): a node that may
not answer by itself hears nothing, so each heartbeat has to be decided. Knows no messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.coordinator.model.ids import GroupId, MemberId
    from holdfast.runtime.groups.actor import Actor
    from holdfast.runtime.groups.heartbeat_cache import CachedAnswer, Key, RememberedBeat


class Hearing:
    """The caches of some groups."""

    __slots__ = ("_actors",)

    def __init__(self, actors: Mapping[GroupId, Actor]) -> None:
        self._actors = actors

    def classic(self, group_id: GroupId, key: Key) -> CachedAnswer | None:
        """Answer a heartbeat of the classic protocol; None: it has to be decided."""
        actor = self._actors.get(group_id)
        return None if actor is None else actor.heartbeat(key)

    def last(self, group_id: GroupId, member_id: MemberId) -> RememberedBeat | None:
        """Return a member's last heartbeat, if another that says the same has its answer."""
        actor = self._actors.get(group_id)
        return None if actor is None else actor.last_beat(member_id)

    def again(self, group_id: GroupId, last: RememberedBeat, number: int) -> CachedAnswer:
        """Answer a heartbeat that says the same as this one, which `last` has just returned.

        `number`: of the heartbeat; 0: it has none (S26).
        """
        return self._actors[group_id].beat_again(last, number)
