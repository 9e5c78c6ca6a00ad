"""What the member was granted, and what it may act on: rules S11 and S12, partition by partition.

`granted` is what the last assignment gave and nobody has taken back; `held` is what the user was
told to own. A partition comes to be held after the old holder's time, if asked to wait for that; it
stops by a revoke, by the loss of the membership, or by the clock alone. What is kept from one
assignment to the next keeps the grant, and so the token, under which the user holds it: nobody else
can have been given it in between. All times are boot-clock milliseconds that come in as arguments;
what the user must hear goes into the session's outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.client._session.lease import Lease
from holdfast.client._session.loss import by_clock
from holdfast.client._session.session_io import Assigned, Lost, Revoke

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.client._session.loss import LostReason
    from holdfast.client._session.protocol import TopicPartition
    from holdfast.client._session.session_io import Grant, Output, Settings


class Ownership:
    """Partitions, the grants they came with, and the lease that limits acting on them."""

    def __init__(self, settings: Settings, outputs: list[Output]) -> None:
        self.lease = Lease(settings.session_timeout_ms, settings.rebalance_timeout_ms)
        self.granted: frozenset[TopicPartition] = frozenset()
        self.held: dict[TopicPartition, Grant] = {}
        self.loss: LostReason | None = None
        """Why something was lost last."""
        self.untold = False
        """Whether the user was told of something after the last Revoke."""
        self._grant: Grant | None = None
        self._outputs = outputs
        self._waits = settings.takeover == "wait"
        self._begins_at_ms = 0
        # S11: after self-fencing only a heartbeat answered NONE gives ownership back.
        self._must_confirm = False
        self._announced = False
        self._letting_go: tuple[TopicPartition, ...] = ()

    def lets_go_of(self, partition: TopicPartition) -> bool:
        """Whether the user has been asked to let go of it, and has not done so yet."""
        return partition in self._letting_go

    def holds(self, now_ms: int) -> bool:
        """Whether the member may act on anything: by the clock, not by the last update."""
        return bool(self.held) and self.lease.holds(now_ms)

    def complete(self, now_ms: int) -> bool:
        """Whether the user holds all that was granted, be it nothing, and may act on it now."""
        granted = self._grant is not None and not self._must_confirm
        return granted and not self._pending() and self.lease.holds(now_ms)

    @property
    def changes_at_ms(self) -> int | None:
        """When the clock alone will begin or end ownership."""
        moments = [
            self.lease.ends_at_ms if self.held else None,
            self._begins_at_ms if self._pending() else None,
        ]
        return min((moment for moment in moments if moment is not None), default=None)

    def await_predecessor(self, until_ms: int) -> None:
        """An old holder may act until then (S12); the latest of several such moments counts."""
        self._begins_at_ms = max(self._begins_at_ms, until_ms if self._waits else 0)

    def assigned(self, grant: Grant, partitions: Iterable[TopicPartition], sent_ms: int) -> None:
        """A sync that was sent then has brought an assignment; what is held beyond it must go.

        S11 counts it from its send time, as a heartbeat answered NONE. So one that was parked for
        long brings partitions that the next heartbeat must confirm before they are owned.
        """
        self.lease.confirmed(sent_ms)
        self.granted = frozenset(partitions)
        self._grant = grant
        self._must_confirm = self._announced = False

    def confirmed(self, sent_ms: int, generation: int) -> None:
        """A heartbeat of this member id and generation was answered NONE.

        In a generation whose assignment is still awaited it only keeps the session: the group waits
        for the sync no longer than a rebalance may take, and then gives away what is held here.
        """
        if self._grant is None or self._grant.generation != generation:
            self.lease.accepted(sent_ms)
            return
        self.lease.confirmed(sent_ms)
        self._must_confirm = False

    def update(self, now_ms: int, stalled_ms: int = 0) -> None:
        """Bring ownership in line with the clock. Called around every input.

        `stalled_ms`: for how long nothing ran here before this input.
        """
        if not self.lease.holds(now_ms):
            self._must_confirm = True
            if self.held:
                letting_go = bool(self._letting_go)
                self.lose(by_clock(self.lease, now_ms, stalled_ms, letting_go=letting_go))
        elif self._pending() and now_ms >= self._begins_at_ms and self._grant is not None:
            new = tuple(sorted(self.granted - self.held.keys()))
            self.held |= dict.fromkeys(new, self._grant)
            self._announced = self.untold = True
            self._outputs.append(Assigned(new, self._grant))

    @property
    def surplus(self) -> frozenset[TopicPartition]:
        """What is held although the last assignment gave it to nobody or to others."""
        return frozenset(self.held) - self.granted

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Ask the user to let go; the partitions are owned until `release` or the lease's end.

        Of none: only to learn when the user has heard all that was told before.
        """
        self._letting_go = tuple(sorted(partitions))
        self.granted -= frozenset(self._letting_go)
        self.untold = False
        self._announced = True  # news enough of this assignment, if nothing is added
        self._outputs.append(Revoke(self._letting_go))

    def release(self) -> None:
        """The user has let go of what it was asked for."""
        for partition in self._letting_go:
            self.held.pop(partition, None)
        self._letting_go = ()

    def forget(self) -> None:
        """Nothing is granted any more, and nobody waits for a predecessor."""
        self.granted = frozenset()
        self._grant = None
        self._begins_at_ms = 0

    def forfeit(self, reason: LostReason) -> None:
        """The membership or its generation is gone, and with it every grant and sign of life."""
        if self._must_confirm and self._grant is not None:
            self.loss = reason  # lost by the clock before: now it is known what the group did
        self.lose(reason)
        self.lease.forget()
        self.forget()

    def lose(self, reason: LostReason) -> None:
        """Ownership ended by itself; the grant stays, for a heartbeat may confirm it."""
        if self.held:
            gone = tuple(sorted(self.held))
            self.held = {}
            self.loss, self.untold = reason, True
            self._outputs.append(Lost(gone, reason))

    def _pending(self) -> bool:
        """Whether something is granted that the user does not hold, or has not heard of."""
        idle = self._grant is not None and not self._must_confirm
        return idle and (not self._announced or bool(self.granted - self.held.keys()))
