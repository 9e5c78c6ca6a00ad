"""Commits of offsets, most of a history: decided once for each group as it is, then by template.

A commit changes nothing that the next one is judged by. So as long as a group has the same state,
generation and members, a commit of these differs from the last that was decided in offsets alone:
its cause and its principal are the same. A test decides each of them as well and compares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.model.commands import CommitOffsets
from holdfast.coordinator.model.events import (
    Cause,
    OffsetCommitted,
    OffsetsCommitted,
    Proposed,
)

if TYPE_CHECKING:
    from holdfast.coordinator.model.ids import GroupId, MemberId, Principal
    from holdfast.coordinator.model.state import Group
    from holdfast.coordinator.structures.pmap import PMap
    from holdfast.replay.generate.cast import Cast
    from holdfast.replay.generate.living import Living
    from holdfast.replay.generate.world import World

OUTSIDE: Final = "outside"
"""A group without members, whose offsets a program commits that belongs to no group."""
_OF_NO_GROUP: Final = -1
_SEVERAL: Final = 0.2
"""The share of commits with more than one partition."""
_ASIDE: Final = 0.03
"""The share that goes to the topic that no group subscribes to, if that is to be deleted."""
_SEVERAL_MAX: Final = 3


class _Template(NamedTuple):
    """What commits of a group have in common, and for which group it was decided."""

    members: PMap[MemberId, Any]
    generation: int
    state: str
    cause: Cause
    principal: Principal


class Commits:
    """Makes the commits of all groups."""

    def __init__(self, world: World, *, aside: bool) -> None:
        """`aside`: some go to the side topic."""
        self._world = world
        self._aside = _ASIDE if aside else 0.0
        self._templates: dict[GroupId, _Template] = {}
        self.aside_of: set[GroupId] = set()
        """The groups that may have offsets of the side topic."""

    def offsets(self, cast: Cast) -> tuple[OffsetCommitted, ...]:
        """Choose where a member of a group stands in its topic now."""
        world, chance = self._world, self._world.chance
        topic, count, at = cast.topic.name, cast.topic.num_partitions, world.leader.count
        drawn = chance.random()
        if drawn < self._aside:
            self.aside_of.add(cast.group_id)
            return (OffsetCommitted(world.side_topic, at % 4, at, -1, ""),)
        partition = int(drawn * 1_000_000) % count
        first = OffsetCommitted(topic, partition, at, -1, "")
        if drawn < 1 - _SEVERAL:
            return (first,)
        more = range(partition + 1, min(partition + _SEVERAL_MAX, count))
        return (first, *[OffsetCommitted(topic, each, at, -1, "") for each in more])

    def command(
        self, cast: Cast, member: Living | None, *, repeatable: bool = False
    ) -> CommitOffsets:
        """Make the call of a member, or of a program outside of any group."""
        caller = self._world.caller(cast.group_id, repeatable=repeatable)
        offsets = self.offsets(cast)
        if member is None:
            return CommitOffsets(caller, cast.group_id, _OF_NO_GROUP, "", None, offsets)
        return CommitOffsets(
            caller, cast.group_id, member.epoch, member.member_id, member.instance_id, offsets
        )

    def learn(self, group: Group[Any], proposed: tuple[Proposed, ...]) -> None:
        """Keep what a decision says of the commits of a group, as it was decided on."""
        if len(proposed) == 1:
            _, cause, principal, _ = proposed[0]
            told = _members(group), group.generation, group.state
            self._templates[group.group_id] = _Template(*told, cause, principal)

    def proposed(self, cast: Cast, count: int) -> tuple[Proposed, ...]:
        """Return so many commits, as they would be decided; none: nothing is known of them now."""
        template = self._templates.get(cast.group_id)
        if template is None:
            return ()
        group = self._world.leader.group(cast.group_id)
        if group is None or not _is_as_before(group, template):
            del self._templates[cast.group_id]
            return ()
        cause, principal = template.cause, template.principal
        return tuple(
            [
                Proposed(OffsetsCommitted(self.offsets(cast)), cause, principal, "")
                for _ in range(count)
            ]
        )


def _members(group: Group[Any]) -> PMap[MemberId, Any]:
    return type_of(group).members(group)


def _is_as_before(group: Group[Any], known: _Template) -> bool:
    """Return whether nothing has changed that commits are judged by; members are one value."""
    same = group.state == known.state and group.generation == known.generation
    return same and _members(group) is known.members
