"""Hints to members of the heartbeat protocol: beat now, for there is something for you.

Once there is a target, each member is told that must give up what it owns, and each that can take
all that it waits for: one push a member, whatever the size of the group. While there is none, one
member is asked to beat, once a target is due (`one_by_one`). What a member then does its own
heartbeat decides; a hint that is lost costs time only, so nothing is repeated. Asks the group's
type; knows no rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.model.consumer_events import (
    AssignmentRequested,
    EpochRaised,
    MemberAdvanced,
    TargetStored,
)
from holdfast.coordinator.model.events import InstanceReleased, StaticMemberReplaced
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.membership import line_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from holdfast.coordinator.groups.group_type import Move
    from holdfast.coordinator.model.events import Event
    from holdfast.coordinator.model.ids import GroupId, MemberId, TopicName
    from holdfast.coordinator.model.state import Group, State
    from holdfast.server.rpc.pushes.carriers import Carriers
    from holdfast.server.rpc.pushes.one_by_one import OneByOne

    Ask = Callable[[GroupId, Sequence[MemberId]], None]
    """Pushes to members of a group that they are to beat now."""

_ASIDE: Final = (TargetStored, InstanceReleased, StaticMemberReplaced)
"""Events that give members a target, or free what a member was to give up, without its step."""


class _Blocked:
    """Who waits in a group for partitions that others own."""

    __slots__ = ("by_member", "by_place")

    def __init__(self) -> None:
        self.by_member: dict[MemberId, set[TopicPartition]] = {}
        self.by_place: dict[TopicPartition, MemberId] = {}

    def note(self, member_id: MemberId, move: Move | None) -> None:
        """Note for what a member waits now; what it waited for until now is forgotten."""
        for place in self.by_member.pop(member_id, ()):
            if self.by_place.get(place) == member_id:  # else it is meant for another one by now
                del self.by_place[place]
        if move is not None and move.blocked:
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
        self,
        state: Callable[[], State],
        log_time_ms: Callable[[], int],
        carriers: Carriers,
        ask: Ask,
        one_by_one: OneByOne,
    ) -> None:
        """`state`: gives the newest applied state. `log_time_ms`: what time it is on the log."""
        self._state, self._carriers, self._ask = state, carriers, ask
        self._log_time_ms, self._one_by_one = log_time_ms, one_by_one
        self._blocked: dict[GroupId, _Blocked] = {}

    def follow(self, group_id: GroupId, events: Sequence[Event]) -> None:
        """Tell whom these events of a group concern; the state is as after all of them."""
        group = self._state().groups.get(group_id)
        if group is None or not type_of(group).moves or not self._carriers.of(group_id):
            self.forget(group_id)
            return
        if any(isinstance(event, TargetStored) for event in events):
            self._one_by_one.end(group_id)
        blocked = self._blocked.get(group_id)
        if blocked is None:
            self._blocked[group_id] = blocked = _Blocked()
            self._look(group, blocked, type_of(group).members(group))
        elif any(isinstance(event, _ASIDE) for event in events):
            self._look(group, blocked, dict.fromkeys(_meant(events)), _came(events))
        else:
            self._step(group, blocked, events)
        self._tell_computing(group, events)

    def _tell_computing(self, group: Group[Any], events: Sequence[Event]) -> None:
        """Tell the member that is to compute the target; if there is none, have one member beat."""
        chosen = [each.member_id for each in events if isinstance(each, AssignmentRequested)]
        if chosen:
            self._one_by_one.end(group.group_id)
            self._tell(group, chosen[-1:])
        elif any(map(_may_await, events)):
            self.await_target(group.group_id)

    def await_target(self, group_id: GroupId) -> None:
        """Have one member beat once a target is due, if the group waits for one."""
        after_s = self._due_in_s(group_id)
        if after_s is not None:
            self._one_by_one.begin(group_id, after_s)

    def reached(self, group_id: GroupId) -> None:
        """Look whether a group waits for a target that is not due, since a member can be asked now.

        That member is about to be heard; a target that is due comes with its heartbeat.
        """
        if self._due_in_s(group_id):
            self.await_target(group_id)

    def pause_changed(self) -> None:
        """Reckon anew when the targets are due for which groups wait."""
        for group_id in self._carriers.groups:
            after_s = self._due_in_s(group_id)
            if after_s is not None:
                self._one_by_one.end(group_id)
                self._one_by_one.begin(group_id, after_s)

    def _due_in_s(self, group_id: GroupId) -> float | None:
        """Return in how many seconds a heartbeat brings a target; None: none is waited for."""
        group = self._state().groups.get(group_id)
        due_ms = None if group is None else type_of(group).target_due_ms(self._state(), group)
        if due_ms is None:
            return None
        left_ms = due_ms - self._log_time_ms()
        return (left_ms + 1) / 1000 if left_ms > 0 else 0.0  # never a fraction too early

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

    def _look(
        self,
        group: Group[Any],
        blocked: _Blocked,
        meant: Collection[MemberId],
        came: Iterable[MemberId] = (),
    ) -> None:
        """Tell those that have another target if they can move, those that waited if they can take.

        All others of the group are as they were, and are not looked at. `came`: may wait from now
        on; by their own heartbeat, which has an answer.
        """
        others = dict.fromkeys((*blocked.by_member, *came))
        up = []
        for member_id in (*meant, *(each for each in others if each not in meant)):
            move = type_of(group).move(group, member_id)
            blocked.note(member_id, move)
            if _is_up(move) if member_id in meant else _can_take(move):
                up.append(member_id)
        self._tell(group, up)

    def _step(self, group: Group[Any], blocked: _Blocked, events: Iterable[Event]) -> None:
        """Tell who can take all that is left, after what members have given up."""
        if blocked.by_place:
            freed = [blocked.free(place) for place in _freed(events)]
            last = [each for each in freed if each is not None]
            move = type_of(group).move
            self._tell(group, [each for each in last if _can_take(move(group, each))])

    def _tell(self, group: Group[Any], member_ids: Sequence[MemberId]) -> None:
        carried = self._carriers.of(group.group_id)
        told = [each for each in member_ids if each in carried]
        if told:
            self._ask(group.group_id, told)


def _is_up(move: Move | None) -> bool:
    """Return whether a member has to give something up, or can take all that it is to own."""
    return move is not None and not move.lets_go and (move.gives or not move.blocked)


def _can_take(move: Move | None) -> bool:
    """Return whether a member can take all that it is to own: it may have, or may have to give."""
    return _is_up(move) and move is not None and not move.gives


def _meant(events: Iterable[Event]) -> Iterator[MemberId]:
    """Yield the members that are to own something else than before."""
    for event in events:
        if isinstance(event, TargetStored):
            yield from (each.member_id for each in event.targets)


def _came(events: Iterable[Event]) -> Iterator[MemberId]:
    """Yield the members that took the place of others, and wait for what these waited for."""
    for event in events:
        if isinstance(event, StaticMemberReplaced):
            yield from line_of(event).came(event)


def _may_await(event: Event) -> bool:
    """Return whether a target may be waited for since this event, and nobody computes it."""
    return isinstance(event, EpochRaised | InstanceReleased | StaticMemberReplaced)


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
