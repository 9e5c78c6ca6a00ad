"""The parts of a member's session, and what the shell asks of it (member_session.py).

How it moves stands in moves.py, and what makes it move in session.py. No IO, no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.client._session.calls_in_flight import CallsInFlight
from holdfast.client._session.consumer.callback_order import CallbackOrder
from holdfast.client._session.consumer.computation import Computation
from holdfast.client._session.consumer.departure import Departure
from holdfast.client._session.consumer.heartbeats import Heartbeats
from holdfast.client._session.consumer.life import Life
from holdfast.client._session.consumer.owned import Owned
from holdfast.client._session.consumer.reconciliation import Reconciliation
from holdfast.client._session.consumer.states import BEATING, IN_GROUP, TABLE, Input, State
from holdfast.client._session.consumer.time_limits import InstanceWait, WorkTimer
from holdfast.client._session.session_io import (
    GENERATION_NONE,
    Identity,
    Note,
    Output,
    Settings,
    Stage,
    Subscription,
)
from holdfast.client._session.start_timeout import StartTimeout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.client._session.loss import LostReason
    from holdfast.client._session.requests import RequestIdSource
    from holdfast.client._session.session_io import Grant, TopicPartition
    from holdfast.client.errors import HoldfastError


LEASE_CHECKS: Final = 8
"""How often within a lease a member that owns something looks at the clock, at least."""
WATCHED: Final = frozenset({State.JOINING, *IN_GROUP})
"""States in which the program must say that it works, if it is to."""


class Parts:
    """One member of one group: its state, and all that it consists of."""

    def __init__(self, settings: Settings, request_ids: RequestIdSource) -> None:
        self.settings = settings
        self.state = State.UNSUBSCRIBED
        self.error: HoldfastError | None = None
        self._ids = request_ids
        self._outputs: list[Output] = []
        self.owned = Owned(settings, self._outputs)
        self._calls = CallsInFlight(self._outputs)
        self._life = Life(request_ids)
        self._beats = Heartbeats(settings, self._calls, self.owned, self._life)
        self._callbacks = CallbackOrder(self._outputs)
        self._reconciliation = Reconciliation(settings, self.owned)
        self._computation = Computation(settings, self._calls, request_ids, self._outputs)
        self._departure = Departure(settings, self._calls, self._life)
        self._instance_wait = InstanceWait()
        self._work = WorkTimer(settings.work_timeout_ms)
        self._start_timeout = StartTimeout(settings.start_timeout_ms)
        self._subscription = Subscription(settings.topics, settings.topic_regex)
        self._is_subscribed = True
        self._has_released = False
        """Whether the place of an earlier life was released since the group took this member."""
        self._join_from_ms = 0
        """Before this moment a fenced member does not join."""
        self._epoch = GENERATION_NONE
        self._is_confirmed = False
        """Whether a heartbeat was accepted since ownership last ended by the clock (S11)."""
        self._may_be_member = False
        """Whether the group may have this member, so that a goodbye makes sense."""
        self._started = self._stopped = False
        self._tells_stop_at_ms: int | None = None
        self._seen_ms = 0

    def _allows(self, what: Input) -> bool:
        return (self.state, what) in TABLE

    def _to(self, what: Input) -> None:
        """Move by the table, which has this input in this state."""
        before, self.state = self.state, TABLE[self.state, what]
        if self.state is State.JOINING:
            self._outputs.append(Note(f"joins: {what.value}"))
        elif self.state is State.STABLE and before is State.JOINING:
            self._outputs.append(Note(f"is in the group at epoch {self._epoch}"))

    # --- who it is, and how far it has come ------------------------------------------------------

    @property
    def identity(self) -> Identity:
        """Who the member is to the group at the moment; its epoch stands for a generation."""
        return Identity(self.settings.member_id, self._epoch)

    @property
    def stage(self) -> Stage:
        """How far it has come, for programs."""
        if self._stopped:
            return Stage.STOPPED
        if not self._started:
            return Stage.NEW
        if self.state is State.FATAL:
            return Stage.FAILED
        return Stage.LEAVING if self._says_goodbye else Stage.RUNNING

    @property
    def _says_goodbye(self) -> bool:
        return self.state is State.LEAVING and self._departure.final

    @property
    def phase_name(self) -> str:
        """Where it stands, for people."""
        told = self.stage if self.stage in {Stage.NEW, Stage.STOPPED} else self.state
        return told.name.lower()

    @property
    def unconfirmed(self) -> HoldfastError | None:
        """Set when the group has not confirmed the goodbye: the session timeout ends it, too."""
        return self._departure.unconfirmed

    @property
    def pausing(self) -> bool:
        """Whether all is over, and only the program is not told yet (fatal_error.pause_ms)."""
        return self._tells_stop_at_ms is not None

    def outputs(self) -> list[Output]:
        """Take what is to be done, in this order."""
        taken = self._outputs[:]
        self._outputs.clear()
        return taken

    # --- what it owns ----------------------------------------------------------------------------

    @property
    def held(self) -> Mapping[TopicPartition, Grant]:
        """What the user was told to own, each under its grant; the lease may have ended."""
        return self.owned.held

    def may_act(self, partition: TopicPartition, grant: Grant, now_ms: int) -> bool:
        """Return whether the user holds it under this very grant and may act on it now (S11)."""
        return self.owned.may_act(partition, grant, now_ms)

    def lets_go_of(self, partition: TopicPartition) -> bool:
        """Return whether the user has been asked to let go of it, and has not done so yet."""
        return self.owned.lets_go_of(partition)

    def owns(self, now_ms: int) -> bool:
        """Whether the member may act on its partitions now: by the clock, not by the last tick."""
        return self.owned.holds(now_ms)

    def ready(self, now_ms: int) -> bool:
        """Return whether it owns all that it is to own, and may act on it now."""
        complete = self._is_confirmed and self.owned.begins_at_ms is None
        return self.state is State.STABLE and complete and self.owned.lease.holds(now_ms)

    @property
    def lease_ends_at_ms(self) -> int | None:
        """From when on nothing may be acted on if nothing is heard any more; None: no lease."""
        return self.owned.lease.ends_at_ms

    @property
    def loss(self) -> LostReason | None:
        """Why something was lost last; None: nothing ever was."""
        return self.owned.loss

    # --- when to look again ----------------------------------------------------------------------

    @property
    def wake_at_ms(self) -> int | None:
        """When to call `tick` next; None: only an input can change anything."""
        if not self._started or self._stopped:
            return self._tells_stop_at_ms
        moments = [
            self._start_timeout.ends_at_ms if self.state in BEATING else None,
            self._calls.wake_at_ms,
            self._beats.due_at_ms if self._may_beat else None,
            self._departure.until_ms,
            self.owned.begins_at_ms if self._is_confirmed else None,
            self.owned.ends_at_ms,
            self._lease_check_at_ms,
            self._work.ends_at_ms if self.state in WATCHED else None,
        ]
        return min((moment for moment in moments if moment is not None), default=None)

    @property
    def _may_beat(self) -> bool:
        """A join waits until the user has heard the end of what was before it.

        Who leaves before the group has taken it has nothing to keep alive.
        """
        if self.state is State.JOINING:
            return self._callbacks.idle
        return self.state in BEATING and self._epoch != GENERATION_NONE

    @property
    def _lease_check_at_ms(self) -> int | None:
        """While something is owned, a stall must show as one: be woken often, whatever is due."""
        if self.owned.ends_at_ms is None:
            return None
        return self._seen_ms + max(1, self.owned.lease.length_ms // LEASE_CHECKS)
