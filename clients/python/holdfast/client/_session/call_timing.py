"""When the next heartbeat is due, and how long each call may wait for its answer.

Arithmetic on the timeouts asked for and those in force. No clock: times come in as arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.client._session.lease import Lease
    from holdfast.client._session.session_io import Settings

_JOIN_GRACE_MS = 5_000


class CallTiming:
    """Due times of heartbeats, and the limits of calls."""

    def __init__(self, settings: Settings, lease: Lease) -> None:
        self.heartbeat_at_ms: int | None = None
        self._settings = settings
        self._lease = lease

    def due(self, now_ms: int) -> bool:
        """Return whether a heartbeat is due."""
        return self.heartbeat_at_ms is not None and now_ms >= self.heartbeat_at_ms

    def answered(self, sent_ms: int, now_ms: int) -> None:
        """Set when the next heartbeat falls due: one that was sent then was answered."""
        self.heartbeat_at_ms = max(now_ms, sent_ms + self._interval_ms)

    @property
    def _interval_ms(self) -> int:
        # At least three chances in a session, whatever was configured.
        return min(self._settings.heartbeat_interval_ms, self._lease.session_ms // 3)

    @property
    def quarter_session_ms(self) -> int:
        """How often a member that cannot send heartbeats repeats a join (S17)."""
        return self._settings.session_timeout_ms // 4

    @property
    def short_timeout_ms(self) -> int:
        """For calls that are never parked: several nodes can be tried within one session."""
        eighth = self._lease.session_ms // 8
        return min(self._settings.request_timeout_ms, max(eighth, self._interval_ms))

    @property
    def join_timeout_ms(self) -> int:
        """How long a join may wait: as long as a rebalance may take (T-7)."""
        return self._settings.rebalance_timeout_ms + _JOIN_GRACE_MS
