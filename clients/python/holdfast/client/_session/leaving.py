"""How a session ends by itself: release for a restart, or leave (S12).

Because the user asked for it, or because something here has failed. Sends that one request, and
knows until when to wait for its answer. Does not know what is owned: session.py calls this when
nothing is. No IO, no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.client._session import requests
from holdfast.client._session.calls_in_flight import CallsInFlight, Kind
from holdfast.client._session.phases import Goal
from holdfast.client.errors import HoldfastError, OutcomeUnknown

if TYPE_CHECKING:
    from holdfast.client._session.call_timing import CallTiming
    from holdfast.client._session.requests import RequestIdSource
    from holdfast.client._session.session_io import Identity, Settings


class Leaving:
    """Where the user wants the session to go, and the request that it takes."""

    def __init__(
        self, settings: Settings, ids: RequestIdSource, calls: CallsInFlight, timing: CallTiming
    ) -> None:
        self.goal = Goal.STAY
        self.error: HoldfastError | None = None
        """What has failed; None: the user has asked for the end."""
        self.unconfirmed: HoldfastError | None = None
        """Set when the request was sent and not confirmed in time."""
        self.until_ms: int | None = None
        self._settings = settings
        self._ids = ids
        self._calls = calls
        self._timing = timing

    def send(self, identity: Identity, now_ms: int) -> bool:
        """Tell the group; False: there is nothing to tell.

        Only now, when nothing is owned any more, may the group hear it (S12).
        """
        settings = self._settings
        self.until_ms = now_ms + settings.leave_timeout_ms
        timeout_ms = min(self._timing.short_timeout_ms, settings.leave_timeout_ms)
        if self.goal is Goal.RESTART and identity.can_heartbeat:
            release = requests.release(settings, identity, self._ids.make(now_ms))
            self._calls.send(Kind.LEAVE, release, timeout_ms, now_ms)
        elif self.goal is Goal.LEAVE and identity.member_id:
            leave = requests.leave(settings, identity, self._ids.make(now_ms))
            self._calls.send(Kind.LEAVE, leave, timeout_ms, now_ms)
        else:
            return False
        return True

    def overdue(self, now_ms: int) -> bool:
        """Return whether the request was not answered in time."""
        return self.until_ms is not None and now_ms >= self.until_ms

    def give_up(self, identity: Identity, session_ms: int) -> HoldfastError:
        """Nobody has confirmed the request: the error for the user who asked for it."""
        self.unconfirmed = OutcomeUnknown(
            f"Group {self._settings.group!r} has not confirmed that member "
            f"{identity.member_id!r} left. Nothing is owned here any more; the service "
            f"notices within {session_ms} ms."
        )
        return self.unconfirmed
