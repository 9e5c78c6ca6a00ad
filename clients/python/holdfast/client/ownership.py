"""What the member was granted, and whether it may act on it: rules S11 and S12.

Ownership begins with a grant (after the old holder's time, if asked to wait) and ends by a revoke,
by the loss of the membership, or by the clock alone. All times are boot-clock milliseconds that
come in as arguments; what the user must hear goes into the session's outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.client.lease import Lease
from holdfast.client.signals import Assigned, Lost, Revoke

if TYPE_CHECKING:
    from holdfast.client.protocol import TopicPartition
    from holdfast.client.signals import Grant, Output, Settings


class Ownership:
    """Partitions, the grant they came with, and the lease that limits acting on them."""

    def __init__(self, settings: Settings, outputs: list[Output]) -> None:
        self.lease = Lease(settings.session_timeout_ms, settings.rebalance_timeout_ms)
        self.partitions: tuple[TopicPartition, ...] = ()
        self.grant: Grant | None = None
        self.held = False
        self._outputs = outputs
        self._waits = settings.takeover == "wait"
        self._begins_at_ms = 0
        # S11: after self-fencing only a heartbeat answered NONE gives ownership back.
        self._must_confirm = False
        self._revoking = False

    def holds(self, now_ms: int) -> bool:
        """Whether the member may act now: by the clock, not by what was last settled."""
        return self.held and self.lease.holds(now_ms)

    @property
    def changes_at_ms(self) -> int | None:
        """When the clock alone will begin or end ownership."""
        if self.held:
            return self.lease.ends_at_ms
        return self._begins_at_ms if self._pending() else None

    def await_predecessor(self, until_ms: int) -> None:
        """An old holder may act until then (S12); the latest of several such moments counts."""
        self._begins_at_ms = max(self._begins_at_ms, until_ms if self._waits else 0)

    def granted(self, grant: Grant, partitions: tuple[TopicPartition, ...], sent_ms: int) -> None:
        """A sync that was sent then has brought an assignment.

        S11 counts it from its send time, as a heartbeat answered NONE. So one that was parked for
        long brings partitions that the next heartbeat must confirm before they are owned.
        """
        self.lease.confirmed(sent_ms)
        self.grant = grant
        self.partitions = partitions
        self._must_confirm = False

    def confirmed(self, sent_ms: int) -> None:
        """A heartbeat of this generation and member id was answered NONE."""
        self.lease.confirmed(sent_ms)
        self._must_confirm = False

    def settle(self, now_ms: int) -> None:
        """Bring ownership in line with the clock. Called around every input."""
        if not self.lease.holds(now_ms):
            self._must_confirm = True
            self.lose("no sign of life was accepted in time (S11)")
        elif self._pending() and now_ms >= self._begins_at_ms and self.grant is not None:
            self.held = True
            self._outputs.append(Assigned(self.partitions, self.grant))

    def revoke(self) -> None:
        """Ask the user to let go; the partitions are owned until `release` or the lease's end."""
        self._revoking = True
        self._outputs.append(Revoke(self.partitions))

    def release(self) -> None:
        """The grant is given back: the user has let go, or never held it."""
        self.held = self._revoking = False
        self.grant = None
        self._begins_at_ms = 0

    def lose(self, reason: str) -> None:
        """Ownership ended by itself; the grant stays, for a heartbeat may confirm it."""
        if self.held:
            self.held = False
            self._outputs.append(Lost(self.partitions, reason))

    def _pending(self) -> bool:
        idle = not (self.held or self._must_confirm or self._revoking)
        return self.grant is not None and idle
