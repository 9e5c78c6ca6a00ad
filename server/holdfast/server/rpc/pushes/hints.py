"""Hints to members of the heartbeat protocol: beat now, for there is something for you.

Once there is a target, each member is told that must give up what it owns, and each that can take
all that it waits for: one push a member, whatever the size of the group. While there is none, one
member is asked to beat (`one_by_one`). What a member then does its own heartbeat decides; a hint
that is lost costs time only, so nothing is repeated. Asks the group's type; knows no rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.model.consumer_events import EpochRaised, MemberAdvanced, TargetStored
from holdfast.coordinator.model.events import InstanceReleased, StaticMemberReplaced
from holdfast.coordinator.model.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from holdfast.coordinator.groups.group_type import Move
    from holdfast.coordinator.model.events import Event
    from holdfast.coordinator.model.ids import GroupId, MemberId, TopicName
    from holdfast.coordinator.model.state import Group, State
    from holdfast.server.rpc.pushes.carriers import Carriers
    from holdfast.server.rpc.pushes.one_by_one import OneByOne

    Ask = Callable[[GroupId, Sequence[MemberId]], None]
    """Pushes to members of a group that they are to beat now."""

_BY_OTHERS: Final = (InstanceReleased, StaticMemberReplaced)
"""Events that free what a member was to give up, without a step of its own."""


class _Blocked:
    """Who waits in a group for partitions that others own."""

    __slots__ = ("by_member", "by_place")

    def __init__(self, moves: Iterable[tuple[MemberId, Move]]) -> None:
        self.by_member: dict[MemberId, set[TopicPartition]] = {}
        self.by_place: dict[TopicPartition, MemberId] = {}
        for member_id, move in moves:
            if move.blocked:
                self.by_member[member_id] = set(move.blocked)
                self.by_place.update(dict.fromkeys(move.blocked, member_id))

    def free(self, place: TopicPartition) -> MemberId | None:
        """Note that a partition is free; return who waits for no other any more."""
        member_id = self.by_place.pop(place, None)
        if member_id is None:
            return None
        left = self.by_member[member_id]
        left.discard(place)
        if left:
            return None
        del self.by_member[member_id]
        return member_id


class Hints:
    """Which members of which groups are to beat now."""

    def __init__(
        self, state: Callable[[], State], carriers: Carriers, ask: Ask, one_by_one: OneByOne
    ) -> None:
        """`state`: gives the newest applied state."""
        self._state, self._carriers, self._ask = state, carriers, ask
        self._one_by_one = one_by_one
        self._blocked: dict[GroupId, _Blocked] = {}

    def follow(self, group_id: GroupId, events: Sequence[Event]) -> None:
        """Tell whom these events of a group concern; the state is as after all of them."""
        group = self._state().groups.get(group_id)
        if group is None or not type_of(group).moves or not self._carriers.of(group_id):
            self.forget(group_id)
            return
        if any(isinstance(event, TargetStored) for event in events):
            self._one_by_one.end(group_id)
            self._begin(group)
        elif group_id not in self._blocked or any(isinstance(e, _BY_OTHERS) for e in events):
            self._look_again(group)
        else:
            self._step(group, events)
        raised = any(isinstance(event, EpochRaised) for event in events)
        if raised and type_of(group).awaits_target(group):
            self._one_by_one.begin(group_id)

    def topics_changed(self, names: frozenset[TopicName]) -> None:
        """Have one member look in each group that may subscribe to one of these topics."""
        for group_id in self._carriers.groups:
            group = self._state().groups.get(group_id)
            if group is not None and _may_subscribe(group, names):
                self._one_by_one.begin(group_id)

    def forget(self, group_id: GroupId) -> None:
        """Tell nobody of a group any more: it changes, and nobody of it can be told."""
        self._blocked.pop(group_id, None)
        self._one_by_one.end(group_id)

    def stop(self) -> None:
        """Tell nobody any more: another node leads."""
        self._blocked.clear()
        self._one_by_one.end_all()

    def _begin(self, group: Group[Any]) -> None:
        """Tell all that can move towards a new target."""
        moves = dict(_moves(group))
        self._blocked[group.group_id] = _Blocked(moves.items())
        self._tell(group, [each for each, move in moves.items() if _is_up(move)])

    def _look_again(self, group: Group[Any]) -> None:
        """Find out who waits now, and tell those who did and can take now."""
        before = self._blocked.get(group.group_id)
        if before is None:
            self._begin(group)
            return
        moves = dict(_moves(group))
        after = self._blocked[group.group_id] = _Blocked(moves.items())
        freed = [each for each in before.by_member if each not in after.by_member]
        self._tell_takers(group, freed)

    def _step(self, group: Group[Any], events: Iterable[Event]) -> None:
        """Tell who can take now what members have given up."""
        blocked = self._blocked[group.group_id]
        if blocked.by_place:
            freed = [blocked.free(place) for place in _freed(events)]
            self._tell_takers(group, [each for each in freed if each is not None])

    def _tell_takers(self, group: Group[Any], member_ids: Sequence[MemberId]) -> None:
        """Tell those of these who can take all that is left: some may have, or may have to give."""
        found = [(each, type_of(group).move(group, each)) for each in member_ids]
        can_take = [each for each, move in found if move and _is_up(move) and not move.gives]
        self._tell(group, can_take)

    def _tell(self, group: Group[Any], member_ids: Sequence[MemberId]) -> None:
        carried = self._carriers.of(group.group_id)
        told = [each for each in member_ids if each in carried]
        if told:
            self._ask(group.group_id, told)


def _moves(group: Group[Any]) -> Iterator[tuple[MemberId, Move]]:
    """Yield what the members of a group have to do, if anything."""
    own = type_of(group)
    for member_id in own.members(group):
        move = own.move(group, member_id)
        if move is not None:
            yield member_id, move


def _is_up(move: Move) -> bool:
    """Return whether a member has to give something up, or can take all that it is to own."""
    return not move.lets_go and (move.gives or not move.blocked)


def _freed(events: Iterable[Event]) -> Iterator[TopicPartition]:
    """Yield the partitions that members have given up."""
    for event in events:
        if isinstance(event, MemberAdvanced):
            for topic, partitions in event.freed:
                for number in partitions:
                    yield TopicPartition(topic, number)


def _may_subscribe(group: Group[Any], names: frozenset[TopicName]) -> bool:
    own = type_of(group)
    return own.moves and (
        bool(own.names(group, names)) or any(True for _ in own.regex_users(group))
    )
