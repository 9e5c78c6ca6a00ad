"""When ownership ends on the client: rule S11, as arithmetic on send times.

The service may give a member's partitions away in two ways: the session runs out, or a rebalance
runs into this member's own rebalance timeout. Both clocks start on the server no earlier than the
client *sent* its last accepted sign of life, so the client is safe if it stops a fifth earlier.
Knows neither a clock nor the protocol.
"""

from __future__ import annotations


class Lease:
    """Two end points, of which the earlier counts; all times are boot-clock milliseconds."""

    def __init__(self, session_ms: int, rebalance_ms: int) -> None:
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self._accepted_ms: int | None = None
        self._confirmed_ms: int | None = None

    def set_timeouts(self, session_ms: int, rebalance_ms: int) -> None:
        """Take over the timeouts in force, which a join's answer carries: never the asked ones."""
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms

    def accepted(self, sent_ms: int) -> None:
        """Run the session on: a heartbeat sent then was answered NONE or REBALANCE_IN_PROGRESS."""
        self._accepted_ms = _later(self._accepted_ms, sent_ms)

    def confirmed(self, sent_ms: int) -> None:
        """Run both halves on: a heartbeat or sync sent then was answered NONE, in no rebalance."""
        self.accepted(sent_ms)
        self._confirmed_ms = _later(self._confirmed_ms, sent_ms)

    def forget(self) -> None:
        """Forget every sign of life: the membership or the generation is gone."""
        self._accepted_ms = None
        self._confirmed_ms = None

    @property
    def ends_at_ms(self) -> int | None:
        """The moment from which nothing may be owned; None: nothing is owned at all."""
        # Each is read once: threads of the user ask while the loop's thread may forget.
        accepted_ms, confirmed_ms = self._accepted_ms, self._confirmed_ms
        if accepted_ms is None or confirmed_ms is None:
            return None
        return min(
            accepted_ms + self.session_ms * 8 // 10,
            confirmed_ms + self.rebalance_ms * 8 // 10,
        )

    @property
    def ended_by_rebalance(self) -> bool:
        """Whether the end is that of the rebalance half, and not that of the session half."""
        if self._accepted_ms is None or self._confirmed_ms is None:
            return False
        session_end_ms = self._accepted_ms + self.session_ms * 8 // 10
        return self._confirmed_ms + self.rebalance_ms * 8 // 10 < session_end_ms

    @property
    def length_ms(self) -> int:
        """How long ownership lasts after a sign of life that was confirmed."""
        return min(self.session_ms, self.rebalance_ms) * 8 // 10

    def silent_ms(self, now_ms: int) -> int | None:
        """For how long no sign of life was accepted; None: there was none, or it is forgotten."""
        return None if self._accepted_ms is None else now_ms - self._accepted_ms

    def holds(self, now_ms: int) -> bool:
        """Return whether ownership may be acted on at `now_ms`."""
        ends_at = self.ends_at_ms
        return ends_at is not None and now_ms < ends_at


def _later(known: int | None, sent_ms: int) -> int:
    return sent_ms if known is None or sent_ms > known else known
