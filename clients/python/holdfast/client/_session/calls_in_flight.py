"""Calls in flight: which answers the session still waits for, and what is to be sent again when.

Of each kind at most one call is open: one request with one request id, sent in one or more
attempts. Forgetting a call cancels its attempts; an answer that comes for them later is dropped. No
IO, no clock; what an answer means is not known here.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.client._session.session_io import Cancel, Send

if TYPE_CHECKING:
    from holdfast.client._session.session_io import Output, Request


class Kind(enum.Enum):
    """Kinds of calls that a session makes."""

    FIND = "FindCoordinator"
    JOIN = "JoinGroup"
    SYNC = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    """In the heartbeat protocol ConsumerGroupHeartbeat, which joins as well."""
    TOPICS = "ListTopics"
    LEAVE = "LeaveGroup"
    PREPARE = "PrepareAssignment"
    INSTALL = "InstallAssignment"


@dataclass(frozen=True, slots=True)
class Sent:
    """One call on its way."""

    kind: Kind
    request: Request
    sent_ms: int


@dataclass(frozen=True, slots=True)
class _Again:
    at_ms: int
    request: Request
    timeout_ms: int


class CallsInFlight:
    """Numbers calls, remembers when they were sent (S11), repeats them with the same request id."""

    def __init__(self, outputs: list[Output]) -> None:
        self._outputs = outputs
        self._in_flight: dict[int, Sent] = {}
        self._again: dict[Kind, _Again] = {}
        self._timeouts: dict[Kind, int] = {}
        self._number = 0

    def send(
        self, kind: Kind, request: Request, timeout_ms: int, now_ms: int, *, elsewhere: bool = False
    ) -> None:
        """Open a call, or send its request once more."""
        self._again.pop(kind, None)
        self._number += 1
        self._in_flight[self._number] = Sent(kind, request, now_ms)
        self._timeouts[kind] = timeout_ms
        self._outputs.append(Send(self._number, request, timeout_ms, elsewhere))

    def resend(self, kind: Kind, now_ms: int) -> None:
        """Repeat a parked call beside its first attempt, which the server then ends (S17).

        An earlier repetition that the node has not answered by ending the attempt before it means
        that the node is silent: the call then goes elsewhere, and its attempts are given up.
        """
        attempts = self.in_flight(kind)
        if not attempts:
            return
        request = self._in_flight[attempts[-1]].request
        silent = len(attempts) > 1
        if silent:
            self._cancel(attempts)
        self.send(kind, request, self._timeouts[kind], now_ms, elsewhere=silent)

    def take(self, call: int) -> Sent | None:
        """Take the call that an answer or failure belongs to; None: it no longer matters."""
        return self._in_flight.pop(call, None)

    def repeat_at(self, sent: Sent, at_ms: int) -> None:
        """Send a failed call again later, the very same request (S14)."""
        self._again[sent.kind] = _Again(at_ms, sent.request, self._timeouts[sent.kind])

    def repeat_due(self, now_ms: int) -> None:
        """Send what is due again."""
        due = [kind for kind, again in self._again.items() if again.at_ms <= now_ms]
        for kind in due:
            again = self._again.pop(kind)
            self.send(kind, again.request, again.timeout_ms, now_ms)

    def forget(self, *kinds: Kind) -> None:
        """End the calls of these kinds."""
        for kind in kinds:
            self._again.pop(kind, None)
            self._cancel(self.in_flight(kind))

    def in_flight(self, kind: Kind) -> list[int]:
        """List the unanswered attempts of this kind's call, the oldest first."""
        return [call for call, sent in self._in_flight.items() if sent.kind is kind]

    def is_of(self, call: int, kind: Kind) -> bool:
        """Return whether the call is unanswered and of this kind."""
        sent = self._in_flight.get(call)
        return sent is not None and sent.kind is kind

    def pending(self, kind: Kind) -> bool:
        """Return whether a call of this kind is open."""
        return kind in self._again or bool(self.in_flight(kind))

    @property
    def wake_at_ms(self) -> int | None:
        """When the next repetition is due."""
        return min((again.at_ms for again in self._again.values()), default=None)

    def _cancel(self, calls: list[int]) -> None:
        for call in calls:
            del self._in_flight[call]
            self._outputs.append(Cancel(call))
