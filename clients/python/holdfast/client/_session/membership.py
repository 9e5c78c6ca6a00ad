"""What a member session is and how it moves: joining, letting go, starting over, ending.

session.py says what each input and each answer means; the moves that follow from it are here, one
method each. phases.py draws them. No IO, no clock, no randomness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.client._session import loss, requests
from holdfast.client._session.call_timing import CallTiming
from holdfast.client._session.calls_in_flight import CallsInFlight, Kind
from holdfast.client._session.fatal_error import fatal_error, pause_ms
from holdfast.client._session.group_leadership import GroupLeadership
from holdfast.client._session.joining import Joining
from holdfast.client._session.leaving import Leaving
from holdfast.client._session.loss import LostReason
from holdfast.client._session.ownership import Ownership
from holdfast.client._session.phases import IN_GROUP, Goal, Phase
from holdfast.client._session.requests import RequestIdSource
from holdfast.client._session.session_io import (
    GENERATION_NONE,
    Identity,
    Note,
    Output,
    Settings,
    Stage,
    Stopped,
)
from holdfast.client._session.start_timeout import StartTimeout
from holdfast.client.errors import Fenced, HoldfastError
from holdfast.v1.errors_pb2 import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from holdfast.client._session.session_io import Grant, TopicPartition
    from holdfast.v1 import extras_pb2


_STAGES: Final = {
    Phase.NEW: Stage.NEW,
    Phase.LEAVING: Stage.LEAVING,
    Phase.STOPPED: Stage.STOPPED,
}
LEASE_CHECKS: Final = 8
"""How often within a lease a member that owns something looks at the clock, at least."""


class Membership:
    """One member of one group: its parts, and the moves between its phases."""

    def __init__(self, settings: Settings, request_ids: RequestIdSource) -> None:
        self.settings = settings
        self.phase = Phase.NEW
        self.error: HoldfastError | None = None
        self._ids = request_ids
        self._outputs: list[Output] = []
        self.ownership = Ownership(settings, self._outputs)
        self._calls = CallsInFlight(self._outputs)
        self._timing = CallTiming(settings, self.ownership.lease)
        self._joining = Joining(settings, request_ids, self._calls, self._timing)
        self._leaving = Leaving(settings, request_ids, self._calls, self._timing)
        self._group_leadership = GroupLeadership(settings)
        self._start_timeout = StartTimeout(settings.start_timeout_ms)
        self._tells_stop_at_ms: int | None = None
        self._seen_ms = 0

    # --- what the shell asks -------------------------------------------------------------------

    @property
    def identity(self) -> Identity:
        """Who the member is to the group at the moment."""
        return self._joining.identity

    @property
    def stage(self) -> Stage:
        """How far it has come, for programs."""
        return _STAGES.get(self.phase, Stage.RUNNING)

    @property
    def phase_name(self) -> str:
        """Where it stands, for people."""
        return self.phase.name.lower()

    @property
    def unconfirmed(self) -> HoldfastError | None:
        """Set when the group has not confirmed the leave: the session timeout ends it, too."""
        return self._leaving.unconfirmed

    @property
    def pausing(self) -> bool:
        """Whether all is over, and only the program is not told yet (fatal_error.pause_ms)."""
        return self._tells_stop_at_ms is not None

    def outputs(self) -> list[Output]:
        """Take what is to be done, in this order."""
        taken = self._outputs[:]
        self._outputs.clear()
        return taken

    @property
    def held(self) -> Mapping[TopicPartition, Grant]:
        """What the user was told to own, each under its grant; the lease may have ended."""
        return self.ownership.held

    def may_act(self, partition: TopicPartition, grant: Grant, now_ms: int) -> bool:
        """Return whether the user holds it under this very grant and may act on it now (S11)."""
        return self.ownership.may_act(partition, grant, now_ms)

    def lets_go_of(self, partition: TopicPartition) -> bool:
        """Return whether the user has been asked to let go of it, and has not done so yet."""
        return self.ownership.lets_go_of(partition)

    def owns(self, now_ms: int) -> bool:
        """Whether the member may act on its partitions now: by the clock, not by the last tick."""
        return self.ownership.holds(now_ms)

    def ready(self, now_ms: int) -> bool:
        """Return whether it is in a generation and may act on all that it was given there."""
        return self.phase is Phase.STABLE and self.ownership.complete(now_ms)

    @property
    def lease_ends_at_ms(self) -> int | None:
        """From when on nothing may be acted on if nothing is heard any more; None: no lease."""
        return self.ownership.lease.ends_at_ms

    @property
    def loss(self) -> LostReason | None:
        """Why something was lost last; None: nothing ever was."""
        return self.ownership.loss

    @property
    def wake_at_ms(self) -> int | None:
        """When to call `tick` next; None: only an input can change anything."""
        if self.phase in {Phase.NEW, Phase.STOPPED}:
            return self._tells_stop_at_ms
        moments = [
            self._start_timeout.ends_at_ms,
            self._calls.wake_at_ms,
            self._timing.heartbeat_at_ms if self._can_heartbeat() else None,
            self._joining.resend_at_ms if self.phase is Phase.JOINING else None,
            self._leaving.until_ms,
            self.ownership.changes_at_ms,
            self._lease_check_at_ms,
            self._group_leadership.refresh_at_ms if self.phase is Phase.STABLE else None,
        ]
        return min((moment for moment in moments if moment is not None), default=None)

    @property
    def _lease_check_at_ms(self) -> int | None:
        """While something is owned, a stall must show as one: be woken often, whatever is due."""
        if not self.ownership.held:
            return None
        return self._seen_ms + max(1, self.ownership.lease.length_ms // LEASE_CHECKS)

    # --- refusals of the membership ---------------------------------------------------------------

    def _membership_refused(
        self, code: ErrorCode.ValueType, extras: extras_pb2.ResponseExtras, now_ms: int
    ) -> None:
        """Go by what the group has us as, not by what we think: T-2, T-3, T-6; all else ends it."""
        if code == ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID:
            self._joining.identity = Identity()
            self._start_over(loss.unknown_member(self.ownership.lease, now_ms), now_ms)
        elif code == ErrorCode.ERROR_CODE_ILLEGAL_GENERATION:
            self._generation_passed(now_ms)
        elif code == ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS:
            self._rebalance("the group rebalances", now_ms)
        else:
            # FENCED_INSTANCE_ID (T-5) is here on purpose: two twins that rejoin fence each other
            # for ever.
            self._refuse(code, extras, now_ms)

    def _refuse(
        self, code: ErrorCode.ValueType, extras: extras_pb2.ResponseExtras, now_ms: int
    ) -> None:
        """End the member with a refusal that cannot heal."""
        log_time_ms = self._ids.log_time_ms(now_ms)
        self._ended_by(fatal_error(code, extras, self.settings, self.identity, log_time_ms), now_ms)

    def _ended_by(self, error: HoldfastError, now_ms: int) -> None:
        """End the member as the service asks. Nothing is owned now; the group may still know it.

        Whoever is fenced has nothing to tell: the place in the group is another's.
        """
        if isinstance(error, Fenced) or self.phase is Phase.LEAVING:
            self._stop(error, now_ms)
        else:
            self.ownership.forfeit(LostReason("stopped", str(error)))
            self._begin_leaving(self._leave_goal, now_ms, error)

    def _generation_passed(self, now_ms: int) -> None:
        """T-3: keep the member id, drop the generation; what is owned is lost, or, here, bounded.

        Heartbeats and joins travel on streams of their own. When a join phase closes, the answer to
        a heartbeat of the old generation can come before the answer to the join that is parked: the
        same words to a member that is in the new generation and to one that the group has left
        behind. While a join is parked, they end the heartbeats (so nothing renews the lease), and
        not the ownership. Nobody else can be given anything before S11's clock has ended it:

        - The group has our join. Then it is as if the heartbeat's answer had been lost: a
          cooperative assignor gives to nobody what a join claims, and an eager member holds nothing
          while it joins. Should the join's answer never come, the group gives up a member that is
          silent for a session since the join phase (we stop 0.8 of one after a heartbeat accepted
          before it) or has not synced for a rebalance timeout (0.8 of one, since a NONE before it).
        - The group has not our join. It went on without us, so it has waited for our rebalance
          timeout, at least, since a moment after the last heartbeat answered NONE was sent: here
          ownership had ended at 0.8 of it. Only a static member is kept like that; another one is
          removed, and told UNKNOWN_MEMBER_ID, as whoever an operator removes (S12).

        In any other phase no join is under way that could be the new generation's.
        """
        self._joining.identity = Identity(member_id=self.identity.member_id)
        if self.phase is Phase.JOINING:
            self._joining.generation_passed(now_ms)
        else:
            self._start_over(loss.GENERATION_PASSED, now_ms)

    # --- joining -------------------------------------------------------------------------------

    def _rebalance(self, reason: str, now_ms: int) -> None:
        """T-6: eager, let go of everything and join again; cooperative, keep it and join again.

        Ignored while that is under way.
        """
        if self.phase not in {Phase.SYNCING, Phase.STABLE}:
            return
        self._calls.forget(Kind.SYNC, Kind.TOPICS)
        self._revoke_and_join((), reason, now_ms)

    def _revoke_and_join(
        self, partitions: Collection[TopicPartition], reason: str, now_ms: int
    ) -> None:
        self._joining.reason = reason
        if not self._joining.cooperative:
            partitions = tuple(self.ownership.held)
        if partitions:
            self.phase = Phase.REVOKING
            self.ownership.revoke(partitions)
        else:
            self._join(now_ms)

    def _start_over(self, reason: LostReason, now_ms: int) -> None:
        """T-2, T-3: the partitions are lost without a last commit; join as what we still are."""
        self._joining.reason = reason.words
        self.ownership.forfeit(reason)
        self._timing.heartbeat_at_ms = None
        self._calls.forget(Kind.SYNC, Kind.HEARTBEAT, Kind.TOPICS, Kind.JOIN)
        if self.phase is not Phase.REVOKING:  # else the running on_revoked ends first
            self._join(now_ms)

    def _join(self, now_ms: int) -> None:
        if not self._joining.cooperative:
            self.ownership.forget()
        self.phase = Phase.JOINING
        self._group_leadership.end()
        self._calls.forget(Kind.JOIN, Kind.SYNC, Kind.TOPICS)
        self._outputs.append(Note(f"joins: {self._joining.reason}"))
        self._joining.send_join(now_ms)

    # --- signs of life and the group leader's watch ----------------------------------------------

    def _heartbeat_if_due(self, now_ms: int) -> None:
        if not self._timing.due(now_ms) or not self._can_heartbeat():
            return
        self._timing.heartbeat_at_ms = None  # the answer or the failure sets the next one
        request = requests.heartbeat(self.settings, self.identity)
        self._calls.send(Kind.HEARTBEAT, request, self._timing.short_timeout_ms, now_ms)

    def _can_heartbeat(self) -> bool:
        return self.phase in IN_GROUP and self.identity.can_heartbeat

    def _ask_for_topics(self, now_ms: int) -> None:
        self._group_leadership.refresh_from(None)
        request = requests.list_topics(self._group_leadership.topics)
        self._calls.send(Kind.TOPICS, request, self._timing.short_timeout_ms, now_ms)

    # --- the end -------------------------------------------------------------------------------

    @property
    def _leave_goal(self) -> Goal:
        """How to end without being told how: a place that can wait for a restart is kept (S12)."""
        return Goal.LEAVE if self.settings.instance_id is None else Goal.RESTART

    def _begin_leaving(self, goal: Goal, now_ms: int, error: HoldfastError | None = None) -> None:
        """Let go of everything, then tell the group. `error`: what has failed here."""
        if self.phase is Phase.STOPPED:
            return
        self._leaving.error = self._leaving.error or error
        if self.phase is Phase.LEAVING or self._leaving.goal is not Goal.STAY:
            return
        self._leaving.goal = goal
        if self.phase is Phase.REVOKING:
            return  # on_revoked is running; `revoked` goes on from there
        self._calls.forget(Kind.JOIN, Kind.SYNC, Kind.TOPICS)
        self._revoke_and_leave(now_ms)

    def _revoke_and_leave(self, now_ms: int) -> None:
        """Tell the group only when no code of the user acts any more (S12)."""
        if self.ownership.held or self.ownership.untold:
            self.phase = Phase.REVOKING
            self.ownership.revoke(self.ownership.held)
            return
        self.ownership.forget()
        self._calls.forget(*Kind)
        self._timing.heartbeat_at_ms = self._joining.resend_at_ms = None
        self.phase = Phase.LEAVING
        if not self._leaving.send(self.identity, now_ms):
            self._stop(None, now_ms)

    def _stop(self, error: HoldfastError | None, now_ms: int) -> None:
        """All is over. What failed first is what the user hears."""
        self.error = error = self._leaving.error or error
        if isinstance(error, Fenced):
            self.ownership.forfeit(loss.fenced(error))
        else:
            ended = loss.OVER if error is None else LostReason("stopped", str(error))
            self.ownership.forfeit(ended)
        self._calls.forget(*Kind)
        self._joining.identity = Identity(self.identity.member_id, GENERATION_NONE)
        self._start_timeout.cancel()
        self.phase = Phase.STOPPED
        pause = pause_ms(error) if self._leaving.goal is Goal.STAY else 0
        if pause:
            self._tells_stop_at_ms = now_ms + pause
        else:
            self._tell_stop()

    def _tell_stop(self) -> None:
        self._tells_stop_at_ms = None
        self._outputs.append(Stopped(self.error))
