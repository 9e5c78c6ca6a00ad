"""What the member was granted, and what it may act on: a table with a row for each partition.

A row says where its partition stands and which grant gave it. A partition comes to be held after
the old holder's time, if asked to wait for that (S12); it stops by a revoke, by the loss of the
membership, or by the clock alone (S11). What is kept from one assignment to the next keeps the
grant, and so the token, under which the user holds it: nobody else can have been given it in
between (S13). All times are boot-clock milliseconds that come in as arguments; what the user must
hear goes into the session's outputs. Rows are values and are replaced, never changed, so threads of
the user can look while the loop's thread works.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.client._session.lease import Lease
from holdfast.client._session.loss import by_clock
from holdfast.client._session.session_io import Assigned, Lost, Revoke

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.client._session.loss import LostReason
    from holdfast.client._session.session_io import Grant, Output, Settings, TopicPartition


class State(enum.Enum):
    """Where one partition stands between the group and the user."""

    GRANTED = enum.auto()
    """Given, and not held: an old holder may still act, or the clock has ended ownership."""
    HELD = enum.auto()
    """The user has been told to own it."""
    LETTING_GO = enum.auto()
    """The user has been asked to let go of it and owns it until it has."""
    LOST = enum.auto()
    """Ownership ended while the user was letting go of it, and it has not done so yet."""


_HOLDING = frozenset({State.HELD, State.LETTING_GO})
_ASKED = frozenset({State.LETTING_GO, State.LOST})


@dataclass(frozen=True, slots=True)
class Row:
    """One partition."""

    state: State
    grant: Grant
    """The grant under which the user holds it, or will."""
    assigned: bool
    """The last assignment gives it, and it was not taken back since."""
    begins_at_ms: int
    """Before this moment an old holder may act, so that it is not held (S12)."""

    @property
    def held(self) -> bool:
        """Whether the user owns it, as far as the lease allows."""
        return self.state in _HOLDING


class Ownership:
    """The table of partitions, and the lease that limits acting on any of them."""

    def __init__(self, settings: Settings, outputs: list[Output]) -> None:
        self.lease = Lease(settings.session_timeout_ms, settings.rebalance_timeout_ms)
        self.loss: LostReason | None = None
        """Why something was lost last."""
        self.untold = False
        """Whether the user was told of something after the last Revoke."""
        self._rows: dict[TopicPartition, Row] = {}
        self._grant: Grant | None = None
        """Of the assignment in force, which may be empty; None: none is."""
        self._outputs = outputs
        self._waits = settings.takeover == "wait"
        self._begins_at_ms = 0
        # S11: after self-fencing only a heartbeat answered NONE gives ownership back.
        self._must_confirm = False
        self._announced = False

    # --- looks at the table, from any thread -----------------------------------------------------

    @property
    def held(self) -> dict[TopicPartition, Grant]:
        """What the user was told to own, each under its grant."""
        return {name: row.grant for name, row in self._table() if row.held}

    def may_act(self, partition: TopicPartition, grant: Grant, now_ms: int) -> bool:
        """Whether the user holds it under this very grant and may act on it at `now_ms` (S11)."""
        row = self._rows.get(partition)
        under_it = row is not None and row.held and row.grant is grant
        return under_it and self.lease.holds(now_ms)

    def lets_go_of(self, partition: TopicPartition) -> bool:
        """Return whether the user has been asked to let go of it, and has not done so yet."""
        row = self._rows.get(partition)
        return row is not None and row.state in _ASKED

    def holds(self, now_ms: int) -> bool:
        """Return whether the member may act on anything: by the clock, not by the last update."""
        return self.lease.holds(now_ms) and any(row.held for _, row in self._table())

    def complete(self, now_ms: int) -> bool:
        """Whether the user holds all that was granted, be it nothing, and may act on it now."""
        granted = self._grant is not None and not self._must_confirm
        return granted and self._next_begin_ms is None and self.lease.holds(now_ms)

    @property
    def surplus(self) -> frozenset[TopicPartition]:
        """What is held although the last assignment gave it to nobody or to others."""
        return frozenset(name for name, row in self._table() if row.held and not row.assigned)

    @property
    def changes_at_ms(self) -> int | None:
        """When the clock alone will begin or end ownership."""
        held = any(row.held for _, row in self._table())
        moments = [self.lease.ends_at_ms if held else None, self._next_begin_ms]
        return min((moment for moment in moments if moment is not None), default=None)

    @property
    def _next_begin_ms(self) -> int | None:
        """From when there is something to hold, or to hear of; None: there is nothing."""
        if self._grant is None or self._must_confirm:
            return None
        moments = [row.begins_at_ms for _, row in self._table() if row.state is State.GRANTED]
        if not moments and not self._announced:
            return self._begins_at_ms  # an assignment of nothing new is told as well
        return min(moments, default=None)

    def _table(self) -> tuple[tuple[TopicPartition, Row], ...]:
        return tuple(self._rows.items())  # in one step: the loop's thread may change it meanwhile

    # --- what the group says ---------------------------------------------------------------------

    def await_predecessor(self, until_ms: int) -> None:
        """Hold nothing new before then: an old holder may act (S12). The latest moment counts."""
        self._begins_at_ms = max(self._begins_at_ms, until_ms if self._waits else 0)
        for name, row in self._table():
            if row.state is State.GRANTED:
                begins_at_ms = max(row.begins_at_ms, self._begins_at_ms)
                self._rows[name] = replace(row, begins_at_ms=begins_at_ms)

    def assigned(self, grant: Grant, partitions: Iterable[TopicPartition], sent_ms: int) -> None:
        """Take an assignment from the answer to a sync that was sent then.

        What is held beyond it is surplus and must go.

        S11 counts it from its send time, as a heartbeat answered NONE. So one that was parked for
        long brings partitions that the next heartbeat must confirm before they are owned.
        """
        self.lease.confirmed(sent_ms)
        self._grant = grant
        self._must_confirm = self._announced = False
        self._withdraw()
        for name in partitions:
            known = self._rows.get(name)
            if known is None:
                self._rows[name] = self._granted(grant)
            else:
                self._rows[name] = replace(known, assigned=True)

    def confirmed(self, sent_ms: int, generation: int) -> None:
        """Take the answer NONE to a heartbeat of this member id and generation.

        In a generation whose assignment is still awaited it only keeps the session: the group waits
        for the sync no longer than a rebalance may take, and then gives away what is held here.
        """
        if self._grant is None or self._grant.generation != generation:
            self.lease.accepted(sent_ms)
            return
        self.lease.confirmed(sent_ms)
        self._must_confirm = False

    def forget(self) -> None:
        """Drop every grant, and wait for no predecessor any more."""
        self._withdraw()
        self._grant = None
        self._begins_at_ms = 0

    def forfeit(self, reason: LostReason) -> None:
        """End every grant and sign of life: the membership or its generation is gone."""
        if self._must_confirm and self._grant is not None:
            self.loss = reason  # lost by the clock before: now it is known what the group did
        self.lose(reason)
        self.lease.forget()
        self.forget()

    def _withdraw(self) -> None:
        """Count nothing as assigned; what the user does not hold goes at once."""
        for name, row in self._table():
            if row.state is State.GRANTED:
                del self._rows[name]
            else:
                self._rows[name] = replace(row, assigned=False)

    def _granted(self, grant: Grant) -> Row:
        return Row(State.GRANTED, grant, assigned=True, begins_at_ms=self._begins_at_ms)

    # --- what the user holds ---------------------------------------------------------------------

    def update(self, now_ms: int, stalled_ms: int = 0) -> None:
        """Bring ownership in line with the clock. Called around every input.

        `stalled_ms`: for how long nothing ran here before this input.
        """
        if not self.lease.holds(now_ms):
            self._must_confirm = True
            letting_go = any(row.state in _ASKED for _, row in self._table())
            self.lose(by_clock(self.lease, now_ms, stalled_ms, letting_go=letting_go))
        elif self._next_begin_ms is not None and now_ms >= self._next_begin_ms:
            self._begin(now_ms)

    def _begin(self, now_ms: int) -> None:
        """Have the user own what was granted and may be held by now: an output for each grant."""
        begun: dict[Grant, list[TopicPartition]] = {}
        for name, row in self._table():
            if row.state is State.GRANTED and now_ms >= row.begins_at_ms:
                self._rows[name] = replace(row, state=State.HELD)
                begun.setdefault(row.grant, []).append(name)
        if not begun and self._grant is not None:
            begun[self._grant] = []
        self._announced = self.untold = True
        for grant, names in begun.items():
            self._outputs.append(Assigned(tuple(sorted(names)), grant))

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Ask the user to let go; the partitions are owned until `release` or the lease's end.

        Of none: only to learn when the user has heard all that was told before.
        """
        going = tuple(sorted(partitions))
        for name in going:
            self._rows[name] = replace(self._rows[name], state=State.LETTING_GO, assigned=False)
        self.untold = False
        self._announced = True  # news enough of this assignment, if nothing is added
        self._outputs.append(Revoke(going))

    def release(self) -> None:
        """End what the user was asked to let go of, and has let go of now."""
        self._drop(_ASKED)

    def lose(self, reason: LostReason) -> None:
        """End ownership by itself; the grant stays, for a heartbeat may confirm it."""
        gone = tuple(sorted(name for name, row in self._table() if row.held))
        if not gone:
            return
        for name, row in self._table():
            if row.state is State.LETTING_GO:
                self._rows[name] = replace(row, state=State.LOST)
        self._drop({State.HELD})
        self.loss, self.untold = reason, True
        self._outputs.append(Lost(gone, reason))

    def _drop(self, states: Iterable[State]) -> None:
        """End rows in these states; what is still assigned can be held again, by the last grant."""
        for name, row in self._table():
            if row.state not in states:
                continue
            if row.assigned and self._grant is not None:
                self._rows[name] = self._granted(self._grant)
            else:
                del self._rows[name]
