"""What answers and failures mean to a member of the heartbeat protocol.

The moves that follow from them stand in moves.py, and all other inputs in session.py. No IO, no
clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.client._session import loss
from holdfast.client._session.calls_in_flight import Kind
from holdfast.client._session.consumer.computation import CALLS
from holdfast.client._session.consumer.moves import Moves
from holdfast.client._session.consumer.requests import (
    EPOCH_JOIN,
    read_assignment,
    read_metadata,
)
from holdfast.client._session.consumer.states import IN_GROUP, State
from holdfast.client._session.fatal_error import fatal_error
from holdfast.client._session.session_io import FailureKind
from holdfast.client.errors import HoldfastError, IncompatibleServer, OutcomeUnknown
from holdfast.v1 import group_pb2
from holdfast.v1.errors_pb2 import ErrorCode

if TYPE_CHECKING:
    from holdfast.client._session.consumer.heartbeats import Beat
    from holdfast.client._session.session_io import Failure, Response
    from holdfast.v1 import extras_pb2

_UNKNOWN: Final = ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID
FENCES: Final = frozenset({_UNKNOWN, ErrorCode.ERROR_CODE_FENCED_MEMBER_EPOCH})
"""Codes by which the group does not know the member, or not at its epoch."""
_NO_GROUP: Final = ErrorCode.ERROR_CODE_GROUP_ID_NOT_FOUND
_UNRELEASED: Final = ErrorCode.ERROR_CODE_UNRELEASED_INSTANCE_ID
_FENCED_INSTANCE: Final = ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID


class Answers(Moves):
    """What the group says to one member, or nobody says."""

    # --- around each input -----------------------------------------------------------------------

    def _beat_if_due(self, now_ms: int) -> None:
        due_at_ms = self._beats.due_at_ms
        if self._stopped or due_at_ms is None or now_ms < due_at_ms or not self._may_beat:
            return
        epoch = EPOCH_JOIN if self.state is State.JOINING else self._epoch
        self._beats.send(epoch, self._subscription, now_ms)

    def _advance(self, now_ms: int) -> None:
        """Around each input: what the clock has ended, and whether nothing ran here meanwhile."""
        due_ms = self.wake_at_ms
        late_ms = 0 if due_ms is None else max(0, now_ms - max(due_ms, self._seen_ms))
        stalled_ms = now_ms - self._seen_ms if late_ms else 0
        self._seen_ms = now_ms
        self._start_timeout.extend(late_ms)
        self._follow_the_clock(now_ms, stalled_ms)

    def _follow_the_clock(self, now_ms: int, stalled_ms: int = 0) -> None:
        """Bring ownership in line with the clock."""
        owned = self.owned
        if owned.lease.holds(now_ms):
            if self._is_confirmed:
                owned.begin(now_ms)
            return
        self._is_confirmed = False
        if owned.ends_at_ms is not None:
            letting_go = bool(owned.going)
            self._lease_ended(loss.by_clock(owned.lease, now_ms, stalled_ms, letting_go=letting_go))

    # --- answers -------------------------------------------------------------------------------

    def answered(self, call: int, response: Response, now_ms: int) -> None:
        """Take an answer of the protocol to a call. Late answers change nothing."""
        self._advance(now_ms)
        sent = self._calls.take(call)
        if sent is None or self._stopped:
            return
        if response.holdfast.HasField("log_time_ms"):
            self._ids.observe(response.holdfast.log_time_ms, now_ms)
        self._start_timeout.cancel()
        if sent.kind is Kind.LEAVE:
            # Whatever it says, nothing is owned here and nothing more can be done.
            self._left(now_ms)
        elif isinstance(response, group_pb2.ConsumerGroupHeartbeatResponse):
            try:
                self._beat_answered(self._beats.take(), response, now_ms)
            except IncompatibleServer as error:
                self._refuse(error, now_ms)
        elif self._computes_on(response, now_ms):
            self._beats.at_once(now_ms)
        self._follow_the_clock(now_ms)
        self._beat_if_due(now_ms)

    def _computes_on(self, response: Response, now_ms: int) -> bool:
        """Take an answer on the way to a target; return whether to beat at once."""
        if isinstance(response, group_pb2.PrepareAssignmentResponse):
            return self._computation.prepared(response, now_ms)
        if isinstance(response, group_pb2.InstallAssignmentResponse):
            return self._computation.installed(response, now_ms)
        return False

    def _beat_answered(
        self, beat: Beat, response: group_pb2.ConsumerGroupHeartbeatResponse, now_ms: int
    ) -> None:
        if response.error_code == ErrorCode.ERROR_CODE_NONE:
            self._instance_wait.over()
            self._accepted(beat, response, now_ms)
        else:
            self._beats.failed(now_ms)
            self._beat_refused(beat, response.error_code, response.holdfast, now_ms)

    def _accepted(
        self, beat: Beat, response: group_pb2.ConsumerGroupHeartbeatResponse, now_ms: int
    ) -> None:
        """Take the epoch, the timeouts and the target; then go towards the target."""
        granted = read_assignment(response, self.settings.member_id)
        self._life.accepted()
        self._take_timeouts(response.holdfast, joins=beat.epoch == EPOCH_JOIN)
        self._may_be_member, self._has_released = True, False
        self._epoch = response.member_epoch
        if granted is not None:
            self._reconciliation.aim(granted, now_ms)
        if (told := read_metadata(response)) is not None:
            self._reconciliation.hear(told, self._epoch)
        self._confirm(beat, now_ms)
        self._beats.accepted(beat, granted or (), response.heartbeat_interval_ms, now_ms)
        if self.state is not State.PREPARE_LEAVING:
            acknowledged = beat.owned_version == self.owned.version
            self._reconcile(now_ms, acknowledged=acknowledged)
            self._tell_assignors()
        if response.holdfast.should_compute and self.state in IN_GROUP:
            self._computation.asked(self._epoch, now_ms)
        else:
            self._computation.drop()

    def _take_timeouts(self, extras: extras_pb2.ResponseExtras, *, joins: bool) -> None:
        """Reckon only with the timeouts in force (S11), which at the latest a join is told."""
        if joins and not extras.session_timeout_ms:
            raise IncompatibleServer(
                "The service did not tell the session timeout in force, so nobody could know when "
                "ownership ends."
            )
        lease = self.owned.lease
        lease.set_timeouts(
            extras.session_timeout_ms or lease.session_ms,
            extras.rebalance_timeout_ms or lease.rebalance_ms,
        )

    def _confirm(self, beat: Beat, now_ms: int) -> None:
        """Run the lease on from when this heartbeat was sent (S11).

        The group waits for this member's rebalance timeout from when it first wants something
        back. So that half runs on only with an answer by which it wants nothing of all that it
        may have taken for owned when it heard this heartbeat.
        """
        lease = self.owned.lease
        lease.accepted(beat.sent_ms)
        if beat.believed <= self._reconciliation.target.keys():
            lease.confirmed(beat.sent_ms)
            self._is_confirmed = lease.holds(now_ms)

    def _beat_refused(
        self,
        beat: Beat,
        code: ErrorCode.ValueType,
        extras: extras_pb2.ResponseExtras,
        now_ms: int,
    ) -> None:
        """T-13, T-14: a fence heals by joining again, a place that is taken by waiting.

        A group that is gone, or classic by now, has not this member either. A join makes it anew,
        or converts it; only if that is refused, too, nothing heals it.
        """
        if code in FENCES or (code == _NO_GROUP and beat.epoch != EPOCH_JOIN):
            self._fence(self._reason_of(code, now_ms), now_ms)
            return
        if code == _FENCED_INSTANCE and self._rises_above(beat, extras):
            self._beats.failed(now_ms)
            return
        if code == _UNRELEASED and self.state is State.JOINING:
            if extras.holder == self.settings.member_id and not self._has_released:
                self._may_be_member = True
                self._release_own_place(now_ms)
                return
            session_ms = extras.session_timeout_ms or self.owned.lease.session_ms
            if extras.wait_for_session:
                self._instance_wait.begins_anew()
            pause_ms = self._instance_wait.pause_ms(session_ms, now_ms)
            if pause_ms is not None:
                self._beats.failed(now_ms + pause_ms)
                return
        self._refuse(self._fatal(code, extras, now_ms), now_ms)

    def _rises_above(self, beat: Beat, extras: extras_pb2.ResponseExtras) -> bool:
        """Whether it was taken for an older process than the holder, and now is not any more."""
        return beat.epoch == EPOCH_JOIN and self._life.rise_above(extras.holder_life)

    def _reason_of(self, code: ErrorCode.ValueType, now_ms: int) -> loss.LostReason:
        if code in {_UNKNOWN, _NO_GROUP}:
            return loss.unknown_member(self.owned.lease, now_ms)
        return loss.EPOCH_PASSED

    def _fatal(
        self, code: ErrorCode.ValueType, extras: extras_pb2.ResponseExtras, now_ms: int
    ) -> HoldfastError:
        log_time_ms = self._ids.log_time_ms(now_ms)
        return fatal_error(code, extras, self.settings, self.identity, log_time_ms)

    # --- calls without an answer ---------------------------------------------------------------

    def delivered(self, call: int, now_ms: int) -> None:
        """Nothing to note: no call of this protocol is kept waiting by a node."""

    def failed(self, call: int, failure: Failure, now_ms: int) -> None:
        """Take the end of an unanswered call (T-15, T-16, T-18)."""
        self._advance(now_ms)
        sent = self._calls.take(call)
        if sent is None or self._stopped:
            return
        if sent.kind is Kind.LEAVE:
            is_over = failure.kind is FailureKind.FATAL
            if is_over or not self._departure.repeats(sent, failure, now_ms):
                self._left(now_ms)
        elif sent.kind in CALLS:
            self._computation.call_failed(sent, failure, now_ms)
        else:
            self._beat_failed(self._beats.take(), failure, now_ms)
        self._beat_if_due(now_ms)

    def _beat_failed(self, beat: Beat, failure: Failure, now_ms: int) -> None:
        joins = beat.epoch == EPOCH_JOIN
        self._start_timeout.failed(failure.error, changes=joins)
        if isinstance(failure.error, OutcomeUnknown):
            self._may_be_member |= joins  # the group may have taken it all the same (S5)
            self._life.accepted()  # and a newer process may have come since
        self._beats.failed(now_ms + failure.retry_in_ms)
        if failure.kind is FailureKind.FATAL:
            self._refuse(failure.error, now_ms)
