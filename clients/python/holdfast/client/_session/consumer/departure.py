"""How a member goes: for a while, for a restart, or for good, and how long it waits for an answer.

The goodbye is sent when nothing is owned any more (S12); moves.py calls this then. No IO, no clock.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from holdfast.client._session.calls_in_flight import CallsInFlight, Kind
from holdfast.client._session.consumer.requests import EPOCH_LEAVE, EPOCH_RELEASE, goodbye
from holdfast.client.errors import HoldfastError, OutcomeUnknown, Unavailable

if TYPE_CHECKING:
    from holdfast.client._session.calls_in_flight import Sent
    from holdfast.client._session.consumer.life import Life
    from holdfast.client._session.session_io import Failure, Settings


class Goal(enum.Enum):
    """What the member goes for."""

    STAY = enum.auto()
    UNSUBSCRIBE = enum.auto()
    """Be in no group until the user subscribes again."""
    IDLE = enum.auto()
    """Be in no group until the program works again."""
    RESTART = enum.auto()
    """Stop; a static member keeps its place (S12)."""
    LEAVE = enum.auto()
    """Stop, and leave for good."""


class Departure:
    """Where the member goes, and the one request that it takes."""

    def __init__(self, settings: Settings, calls: CallsInFlight, life: Life) -> None:
        self.goal = Goal.STAY
        self.error: HoldfastError | None = None
        """What has failed here; None: the user has asked for the end."""
        self.unconfirmed: HoldfastError | None = None
        """Set when the member has stopped and nobody has answered its goodbye."""
        self.until_ms: int | None = None
        """Until when an answer is waited for."""
        self._settings = settings
        self._calls = calls
        self._life = life

    @property
    def final(self) -> bool:
        """Whether the member stops."""
        return self.goal in {Goal.RESTART, Goal.LEAVE}

    def say_goodbye(self, timeout_ms: int, now_ms: int) -> None:
        """Tell the group: a static member keeps its place unless it leaves for good (KIP-345)."""
        settings = self._settings
        stays = settings.instance_id is not None and self.goal is not Goal.LEAVE
        epoch = EPOCH_RELEASE if stays else EPOCH_LEAVE
        request = goodbye(settings, epoch, self._life.number(now_ms))
        if stays and settings.absence_ms is not None and self._is_planned:
            request.holdfast.absence_ms = settings.absence_ms
        limit_ms = settings.leave_timeout_ms
        self.until_ms = now_ms + limit_ms
        self._calls.send(Kind.LEAVE, request, min(timeout_ms, limit_ms), now_ms)

    @property
    def _is_planned(self) -> bool:
        """Whether the user has asked for it, and so knows for how long.

        Of a program that hangs, or has failed, nobody knows when it comes back.
        """
        return self.error is None and self.goal is not Goal.IDLE

    def repeats(self, sent: Sent, failure: Failure, now_ms: int) -> bool:
        """Send a goodbye again that nobody has answered, if that is harmless; return whether.

        T-18: Kafka never does. A goodbye that certainly did nothing can be repeated. One that may
        be on its way still would end a later life of the same member id, so only a member that
        stops repeats it: its id is not used again.
        """
        if not self.final and not isinstance(failure.error, Unavailable):
            return False
        self._calls.repeat_at(sent, now_ms + failure.retry_in_ms)
        return True

    def overdue(self, now_ms: int) -> bool:
        """Return whether the goodbye was not answered in time."""
        return self.until_ms is not None and now_ms >= self.until_ms

    def give_up(self, session_ms: int) -> HoldfastError:
        """Nobody has confirmed the goodbye: the error for the user who asked for it."""
        self.unconfirmed = OutcomeUnknown(
            f"Group {self._settings.group!r} has not confirmed that member "
            f"{self._settings.member_id!r} left. Nothing is owned here any more; the service "
            f"notices within {session_ms} ms."
        )
        return self.unconfirmed
