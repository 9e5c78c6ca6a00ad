"""The heartbeats of one member: when the next is due, what it says, and the one that is open.

One at a time: the next goes out when the open one has been answered or has failed, so answers come
in the order of what they answer. What an answer means, session.py knows. No IO, no clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.client._session.calls_in_flight import CallsInFlight, Kind
from holdfast.client._session.consumer.requests import EPOCH_JOIN, fields_of, heartbeat
from holdfast.client._session.consumer.sent_fields import SentFields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.client._session.consumer.life import Life
    from holdfast.client._session.consumer.owned import Owned
    from holdfast.client._session.session_io import (
        SaidByAssignor,
        Settings,
        Subscription,
        TopicPartition,
    )

CHANCES: Final = 3
"""At least so many heartbeats fall due in a session, whatever interval the group tells."""


@dataclass(frozen=True, slots=True)
class Beat:
    """One heartbeat on its way."""

    epoch: int
    sent_ms: int
    fields: Mapping[str, object]
    believed: frozenset[TopicPartition]
    """All that the group may take for owned once it has heard this heartbeat."""
    owned_version: int


class Heartbeats:
    """Sends heartbeats, and keeps what the group has accepted of them."""

    def __init__(self, settings: Settings, calls: CallsInFlight, owned: Owned, life: Life) -> None:
        self.due_at_ms: int | None = None
        """When the next one is due; None: the open one decides, or none is wanted."""
        self._settings = settings
        self._calls = calls
        self._owned = owned
        self._life = life
        self._sent = SentFields()
        self.client_assignors: tuple[SaidByAssignor, ...] = settings.client_assignors
        """What the member can compute itself, as it is to be said."""
        self.believed: frozenset[TopicPartition] = frozenset()
        """All that the group may take for owned: what was said last, and what it gave since."""
        self._interval_ms = settings.heartbeat_interval_ms
        self._open: Beat | None = None
        self._wanted = False

    def at_once(self, now_ms: int) -> None:
        """Send the next one now, or as soon as the open one has ended."""
        if self._open is None:
            self.due_at_ms = now_ms
        else:
            self._wanted = True

    def send(self, epoch: int, subscription: Subscription, now_ms: int) -> None:
        """Send what has changed since the last accepted one; a join says everything."""
        if epoch == EPOCH_JOIN:
            self.say_all()
        owned = self._owned
        present = fields_of(self._settings, subscription, owned.known, self.client_assignors)
        fields = self._sent.changed(present, owned.version)
        request = heartbeat(self._settings, epoch, fields, self._life.number(now_ms))
        self._calls.send(Kind.HEARTBEAT, request, self.timeout_ms, now_ms)
        believed = owned.known if "owned" in fields else self.believed
        self._open = Beat(epoch, now_ms, fields, believed, owned.version)
        self.due_at_ms, self._wanted = None, False

    def take(self) -> Beat:
        """Take the open one: it has ended."""
        if self._open is None:
            raise RuntimeError("no heartbeat is open")
        beat, self._open = self._open, None
        return beat

    def accepted(
        self, beat: Beat, given: Iterable[TopicPartition], interval_ms: int, now_ms: int
    ) -> None:
        """Note that one was answered NONE; the next is due an interval after it was sent."""
        self._sent.accepted(beat.fields, beat.owned_version)
        self.believed = beat.believed.union(given)
        self._interval_ms = interval_ms or self._interval_ms
        after_ms = min(self._interval_ms, self._owned.lease.session_ms // CHANCES)
        self.due_at_ms = now_ms if self._wanted else max(now_ms, beat.sent_ms + after_ms)

    def failed(self, retry_at_ms: int) -> None:
        """Note that one was refused or not answered (T-15, T-16): the next one says everything."""
        self.say_all()
        self.due_at_ms = retry_at_ms

    def say_all(self) -> None:
        """Take nothing for known to the group."""
        self._sent.forget()

    def stop(self) -> None:
        """Give the open one up, and send no more until `at_once`."""
        self._calls.forget(Kind.HEARTBEAT)
        self._open, self.due_at_ms, self._wanted = None, None, False
        self.say_all()

    @property
    def joining(self) -> bool:
        """Whether the open one asks to join."""
        return self._open is not None and self._open.epoch == EPOCH_JOIN

    @property
    def timeout_ms(self) -> int:
        """How long one may wait for its answer: several nodes can be tried within one session."""
        eighth = self._owned.lease.session_ms // 8
        return min(self._settings.request_timeout_ms, max(eighth, self._interval_ms))
