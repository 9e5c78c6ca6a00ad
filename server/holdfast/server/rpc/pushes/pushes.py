"""Pushes to members what cannot wait for their next heartbeat, in the turn in which it is applied.

A listener of the replica: `news` says what an event means to members, `hints` who of a group of the
heartbeat protocol is to beat now, `carriers` on which stream a member is reached. Decides nothing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.events import (
    AccessModeChanged,
    AclsChanged,
    PartitionsAdded,
    SettingsChanged,
    TopicsCreated,
    TopicsDeleted,
)
from holdfast.server.rpc.pushes.hints import Hints
from holdfast.server.rpc.pushes.news import gone, news, push
from holdfast.server.rpc.pushes.one_by_one import OneByOne
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.coordinator.model.events import Event, Record
    from holdfast.coordinator.model.ids import GroupId, MemberId, TopicName
    from holdfast.coordinator.model.state import State
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.rpc.pushes.carriers import Carrier, Carriers
    from holdfast.server.rpc.pushes.one_by_one import Later

    Refusal = Callable[[g.HeartbeatRequest, Callable[[], str]], object | None]
    """Refuses a heartbeat that a principal may not send, else returns None."""

_PAUSE: Final = "group.consumer_assignment_interval_ms"
"""The setting that keeps the targets of a group from coming one after another (K-P15)."""


class Pushes:
    """Pushes to the members that open streams carry."""

    def __init__(
        self,
        replica: ReplicaLike,
        carriers: Carriers,
        refusal: Refusal = lambda _request, _principal: None,
        later: Later | None = None,
    ) -> None:
        """`later`: calls a function after so many seconds; None: the loop's own."""
        self.sent = self.left_out = 0
        """Pushes that were queued for their readers; and not, since too much waits for these."""
        self._replica, self._carriers, self._refusal = replica, carriers, refusal
        one_by_one = OneByOne(self._state, carriers, self._beat_now, later)
        self._hints = Hints(
            *(self._state, replica.log_time_ms, carriers, self._all_beat_now, one_by_one)
        )

    def listen(self) -> None:
        """Subscribe to the replica, and to what streams carry."""
        self._carriers.when_reached(self._reached)
        self._replica.subscribe(
            on_leading=self.on_leading,
            on_not_leading=self._hints.stop,
            on_applied=self.on_applied,
        )

    def on_leading(self, term: int) -> None:
        """Ask for the targets that groups wait for, and that the leader before was to ask for."""
        del term
        for group_id in self._carriers.groups:
            self._hints.await_target(group_id)

    def _reached(self, group_id: GroupId) -> None:
        if self._replica.leading_term:
            self._hints.reached(group_id)

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        """Push what these records mean to the members that they concern."""
        del index
        if any(isinstance(record.event, AclsChanged | AccessModeChanged) for record in records):
            self._forget_revoked()
        touched: dict[GroupId, list[Event]] = defaultdict(list)
        for record in records:
            if self._carriers.of(record.group_id):
                self._push_news(record)
                touched[record.group_id].append(record.event)
            else:  # what is known of the group is not so any more
                self._hints.forget(record.group_id)
        if self._replica.leading_term:
            self._push_hints(touched, records)

    def _push_news(self, record: Record) -> None:
        group = self._replica.state.groups.get(record.group_id)
        self._push(record.group_id, list(news(record, group)))
        self._carriers.forget(record.group_id, gone(record))

    def _push_hints(self, touched: dict[GroupId, list[Event]], records: Sequence[Record]) -> None:
        for group_id, events in touched.items():
            self._hints.follow(group_id, events)
        topics = frozenset(_topics(record.event for record in records if not record.group_id))
        if topics:
            self._hints.topics_changed(topics)
        if any(_is_of_pause(record.event) for record in records):
            self._hints.pause_changed()

    def _push(self, group_id: GroupId, pushes: Sequence[g.HeartbeatPush]) -> None:
        """Queue each push on the stream that carries its member."""
        carried = self._carriers.of(group_id)
        by_carrier: dict[Carrier, list[g.HeartbeatPush]] = defaultdict(list)
        for each in pushes:
            carrier = carried.get(each.member_id)
            if carrier is not None:
                by_carrier[carrier].append(each)
        for carrier, some in by_carrier.items():
            left_out = carrier.push(some)
            self.left_out += left_out
            self.sent += len(some) - left_out

    def _all_beat_now(self, group_id: GroupId, member_ids: Sequence[MemberId]) -> None:
        group = self._replica.state.groups.get(group_id)
        code = e.ERROR_CODE_NONE
        self._push(group_id, [push(group_id, group, each, code) for each in member_ids])

    def _beat_now(self, group_id: GroupId, member_id: MemberId) -> None:
        self._all_beat_now(group_id, (member_id,))

    def _forget_revoked(self) -> None:
        """Push nothing more of groups whose members a stream may not speak for any longer."""
        for group_id in self._carriers.groups:
            asked = g.HeartbeatRequest(group_id=group_id)
            of_stream: dict[Carrier, list[MemberId]] = defaultdict(list)
            for member_id, carrier in self._carriers.of(group_id).items():
                of_stream[carrier].append(member_id)
            for carrier, member_ids in of_stream.items():
                if self._refusal(asked, carrier.principal) is not None:
                    self._carriers.forget(group_id, member_ids)

    def _state(self) -> State:
        return self._replica.state


def _topics(events: Iterable[Event]) -> Iterable[TopicName]:
    """Yield the topics that events have changed."""
    for event in events:
        if isinstance(event, TopicsCreated | PartitionsAdded):
            yield from (each.name for each in event.topics)
        elif isinstance(event, TopicsDeleted):
            yield from event.names


def _is_of_pause(event: Event) -> bool:
    """Return whether an event changes how long groups wait for their next target."""
    return isinstance(event, SettingsChanged) and any(each.key == _PAUSE for each in event.changes)
