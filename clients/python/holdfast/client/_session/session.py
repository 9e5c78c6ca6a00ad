"""The session of the classic protocol: one state machine for every shell, without IO or clock.

member_session.py has the interface: what goes in, what comes out, what can be asked. phases.py
draws the states, membership.py has the moves between them; joining.py, leaving.py,
group_leadership.py, ownership.py, call_timing.py and start_timeout.py have the parts, and here is
what each answer and each event means to them.

Rules: T-1 to T-7 of the Kafka client (named where they stand; T-8 has no counterpart, as nothing
has to be polled), S11 ownership, S12 takeover and release, S14 request ids, S17 parked calls. An
eager member lets go of everything before it joins; a cooperative one (KIP-429) keeps what it has,
lets go of what the assignment leaves out, and joins again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from holdfast.client._session.calls_in_flight import Kind
from holdfast.client._session.membership import Membership
from holdfast.client._session.phases import IN_GROUP, Goal, Phase
from holdfast.client._session.protocol import read_assignment
from holdfast.client._session.session_io import FailureKind, Grant, Identity, Missing, Note
from holdfast.client.errors import MEMBERSHIP_CODES, HoldfastError, from_code
from holdfast.v1 import admin_pb2, extras_pb2, group_pb2
from holdfast.v1.errors_pb2 import ErrorCode

if TYPE_CHECKING:
    from holdfast.client._session.calls_in_flight import Sent
    from holdfast.client._session.session_io import Failure, Response

JOIN_AGAIN_MS: Final = 1_000
"""Before a join is repeated that the service would not take during a rebalance (as Kafka's)."""


class Session(Membership):
    """One member of one group, from start to stop: what happens to it, and what that means."""

    # --- inputs --------------------------------------------------------------------------------

    def start(self, now_ms: int) -> None:
        """Begin: the first answer brings the log time that request ids need (S15)."""
        if self.phase is not Phase.NEW:
            return
        self.phase = Phase.FINDING
        self._seen_ms = now_ms
        self._start_timeout.begin(now_ms)
        request = group_pb2.FindCoordinatorRequest(coordinator_keys=[self.settings.group])
        self._calls.send(Kind.FIND, request, self._timing.short_timeout_ms, now_ms)

    def answered(self, call: int, response: Response, now_ms: int) -> None:
        """Take an answer of the protocol to a call. Late answers change nothing."""
        self._advance(now_ms)
        sent = self._calls.take(call)
        self._start_timeout.resume_after(call, now_ms)
        if sent is None or self.phase is Phase.STOPPED:
            return
        if response.holdfast.HasField("log_time_ms"):
            self._ids.observe(response.holdfast.log_time_ms, now_ms)
        if sent.kind is not Kind.FIND:  # which any node answers
            self._start_timeout.cancel()
        try:
            self._dispatch(sent, response, now_ms)
        except HoldfastError as error:  # here, in the assignor: the service has refused nothing
            self._begin_leaving(self._leave_goal, now_ms, error)
        self.ownership.update(now_ms)

    def delivered(self, call: int, now_ms: int) -> None:
        """Note that the call has gone out to a node, which may keep a join or a sync waiting."""
        if self._calls.is_of(call, Kind.JOIN):
            self._start_timeout.pause_for(call, now_ms)

    def failed(self, call: int, failure: Failure, now_ms: int) -> None:
        """Take the end of an unanswered call. Every retry repeats the request id (S14)."""
        self._advance(now_ms)
        sent = self._calls.take(call)
        self._start_timeout.resume_after(call, now_ms)
        if sent is None or self.phase is Phase.STOPPED:
            return
        self._start_timeout.failed(failure.error, changes=sent.kind is Kind.JOIN)
        if failure.kind is FailureKind.SUPERSEDED:
            # Only a node that leads has a call to end in favour of another.
            self._start_timeout.cancel()
        newer = bool(self._calls.in_flight(sent.kind))
        if failure.kind is FailureKind.FATAL:
            self._ended_by(failure.error, now_ms)
        elif newer and sent.kind is not Kind.HEARTBEAT:
            return  # S17: the newer attempt of this call lives on
        elif sent.kind is Kind.HEARTBEAT:
            self._timing.heartbeat_at_ms = now_ms + failure.retry_in_ms
            # S17: the node that a join or sync is parked at may be gone as well, which a call that
            # waits anyway would notice late. Where the next attempt goes, it takes the place.
            self._calls.resend(Kind.JOIN, now_ms)
            self._calls.resend(Kind.SYNC, now_ms)
        else:
            self._calls.repeat_at(sent, now_ms + failure.retry_in_ms)

    def tick(self, now_ms: int) -> None:
        """Time has passed."""
        if self._tells_stop_at_ms is not None and now_ms >= self._tells_stop_at_ms:
            self._tell_stop()
        if self.phase in {Phase.NEW, Phase.STOPPED}:
            return
        self._advance(now_ms)
        if self._leaving.overdue(now_ms):
            session_ms = self.ownership.lease.session_ms
            self._stop(self._leaving.give_up(self.identity, session_ms), now_ms)
            return
        if error := self._start_timeout.expired(now_ms):
            self._stop(error, now_ms)
            return
        self._calls.repeat_due(now_ms)
        self._heartbeat_if_due(now_ms)
        self._joining.resend_if_due(now_ms)
        self._start_timeout.pause_only_for(self._calls.in_flight(Kind.JOIN), now_ms)
        if self.phase is Phase.STABLE and self._group_leadership.refresh_due(now_ms):
            self._ask_for_topics(now_ms)

    def revoked(self, now_ms: int) -> None:
        """Note that the user has let go of the partitions of the last Revoke."""
        if self.phase is not Phase.REVOKING:
            return
        self._advance(now_ms)
        self.ownership.release()
        if self._leaving.goal is Goal.STAY:
            self._join(now_ms)
        else:
            self._revoke_and_leave(now_ms)

    def leave(self, now_ms: int) -> None:
        """Leave the group for good: the partitions go to others at once."""
        self._asked_to_end(Goal.LEAVE, now_ms)

    def restart(self, now_ms: int) -> None:
        """Go for a planned restart: a static member releases its hold and keeps its place (S12).

        A dynamic member has no place that could wait for it: it leaves.
        """
        self._asked_to_end(self._leave_goal, now_ms)

    def _asked_to_end(self, goal: Goal, now_ms: int) -> None:
        if self.pausing:
            self._tell_stop()  # who wants the end is not made to wait for it
        self._advance(now_ms)
        self._begin_leaving(goal, now_ms)

    def fail(self, error: HoldfastError, now_ms: int) -> None:
        """End as `restart` does, and with this error: the shell or the user's code has failed.

        What is owned is let go of first, so nothing of the user's acts any more when the group
        hears of it.
        """
        self._advance(now_ms)
        if self.phase is Phase.LEAVING:
            self._stop(error, now_ms)  # the leave or release itself has failed
        else:
            self._begin_leaving(self._leave_goal, now_ms, error)

    def abort(self, error: HoldfastError) -> None:
        """Stop at once without a word to the group: code of the user may still run."""
        if self.phase is not Phase.STOPPED:
            self._stop(error, 0)

    def pushed(self, push: group_pb2.HeartbeatPush, now_ms: int) -> None:
        """Take a hint that the service sent unasked: it proves nothing and renews nothing."""
        ours = (self.settings.group, self.identity.member_id)
        if (push.group_id, push.member_id) != ours or self.phase not in IN_GROUP:
            return
        self._advance(now_ms)
        rebalance = push.error_code == ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS
        if rebalance and push.generation_id == self.identity.generation:
            self._rebalance("a rebalance was announced", now_ms)
        elif not rebalance or push.generation_id > self.identity.generation:
            self._timing.heartbeat_at_ms = now_ms  # ask whether it is true

    def refused(
        self,
        code: ErrorCode.ValueType,
        identity: Identity,
        extras: extras_pb2.ResponseExtras,
        now_ms: int,
    ) -> None:
        """Another call of this member (a commit) sent under `identity` was refused with `code`.

        REBALANCE_IN_PROGRESS before our sync is answered speaks of the rebalance under way, and
        begins no other: as Kafka's client has it, the sync or a heartbeat tells if there is one.
        """
        current = identity == self.identity and self.phase in IN_GROUP
        if code == ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS and self.phase is Phase.SYNCING:
            return
        if current and code in MEMBERSHIP_CODES:
            self._advance(now_ms)
            self._membership_refused(code, extras, now_ms)

    def _advance(self, now_ms: int) -> None:
        """Around each input: what the clock has ended, and whether nothing ran here meanwhile."""
        due_ms = self.wake_at_ms
        late_ms = 0 if due_ms is None else max(0, now_ms - max(due_ms, self._seen_ms))
        stalled_ms = now_ms - self._seen_ms if late_ms else 0
        self._seen_ms = now_ms
        self._start_timeout.extend(late_ms)
        self.ownership.update(now_ms, stalled_ms)

    # --- answers -------------------------------------------------------------------------------

    def _dispatch(self, sent: Sent, response: Response, now_ms: int) -> None:
        match response:
            case group_pb2.FindCoordinatorResponse():
                self._join(now_ms)
            case group_pb2.JoinGroupResponse():
                self._join_answered(sent, response, now_ms)
            case group_pb2.SyncGroupResponse():
                self._sync_answered(sent, response, now_ms)
            case admin_pb2.ListTopicsResponse():
                self._topics_answered(response, now_ms)
            case group_pb2.HeartbeatResponse() if sent.kind is Kind.HEARTBEAT:
                self._heartbeat_answered(sent, response, now_ms)
            case _:
                # A leave or a release. Whatever it says, nothing is owned here and nothing more
                # can be done: a refused release leaves the instance to its session.
                self._stop(None, now_ms)

    def _join_answered(
        self, sent: Sent, response: group_pb2.JoinGroupResponse, now_ms: int
    ) -> None:
        self._calls.forget(Kind.JOIN)
        self._joining.resend_at_ms = None
        if response.error_code == ErrorCode.ERROR_CODE_MEMBER_ID_REQUIRED:
            # T-1: nothing is revoked, and there is nothing to back off from.
            self._joining.identity = Identity(member_id=response.member_id)
            self._joining.send_join(now_ms)
        elif response.error_code == ErrorCode.ERROR_CODE_NONE:
            self._joined(response, now_ms)
        elif response.error_code == ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS:
            self._calls.repeat_at(sent, now_ms + JOIN_AGAIN_MS)
        elif response.error_code == ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID:
            self._membership_refused(response.error_code, response.holdfast, now_ms)
        else:
            self._refuse(response.error_code, response.holdfast, now_ms)

    def _joined(self, response: group_pb2.JoinGroupResponse, now_ms: int) -> None:
        self._joining.joined(response)
        extras, settings = response.holdfast, self.settings
        self.ownership.lease.set_timeouts(
            extras.session_timeout_ms or settings.session_timeout_ms,
            extras.rebalance_timeout_ms or settings.rebalance_timeout_ms,
        )
        self.phase = Phase.SYNCING
        leads = " and leads it" if response.leader == response.member_id else ""
        self._outputs.append(Note(f"is in generation {response.generation_id}{leads}"))
        self.ownership.await_predecessor(now_ms + extras.predecessor_ms)
        # At once: pushes reach only those whose heartbeat the service has seen on the stream.
        self._timing.heartbeat_at_ms = now_ms
        self._group_leadership.begin(response)
        if self._group_leadership.must_assign:
            self._ask_for_topics(now_ms)
        else:
            self._joining.send_sync((), now_ms)

    def _topics_answered(self, response: admin_pb2.ListTopicsResponse, now_ms: int) -> None:
        if response.error_code != ErrorCode.ERROR_CODE_NONE:
            why = response.holdfast.message
            raise from_code(response.error_code, subject="ListTopics", message=why)
        counts = {topic.name: topic.num_partitions for topic in response.topics}
        self._group_leadership.refresh_from(now_ms + self.settings.topics_refresh_ms)
        changed = self._group_leadership.changed(counts) if self.phase is Phase.STABLE else ""
        if changed:  # what is missing then is told once nobody has partitions of it any more
            self._rebalance(f"topics changed: {changed}", now_ms)
            return
        if missing := self._group_leadership.newly_missing(counts):
            self._outputs.append(Missing(missing))
        if self.phase is Phase.SYNCING and self._group_leadership.must_assign:
            assignments = self._group_leadership.assign(self.identity.protocol, counts)
            self._joining.send_sync(assignments, now_ms)

    def _sync_answered(
        self, sent: Sent, response: group_pb2.SyncGroupResponse, now_ms: int
    ) -> None:
        self._calls.forget(Kind.SYNC)
        if response.error_code != ErrorCode.ERROR_CODE_NONE:
            self._membership_refused(response.error_code, response.holdfast, now_ms)
            return
        assignment = read_assignment(response.assignment)
        extras = response.holdfast
        self.ownership.await_predecessor(now_ms + extras.predecessor_ms)
        identity = self.identity
        grant = Grant(
            identity.member_id, identity.generation, extras.fencing_token, extras.predecessor_ms
        )
        must_rejoin = self._joining.take_assignment(assignment)
        self.ownership.assigned(grant, assignment.partitions, sent.sent_ms)
        self.phase = Phase.STABLE
        if self._joining.is_recalled:
            self._timing.heartbeat_at_ms = now_ms  # ask whether it still is
        self._group_leadership.assignment_received(assignment.counts, now_ms)
        if self.ownership.surplus or must_rejoin:
            self._revoke_and_join(self.ownership.surplus, "others wait for its partitions", now_ms)

    def _heartbeat_answered(
        self, sent: Sent, response: group_pb2.HeartbeatResponse, now_ms: int
    ) -> None:
        self._timing.answered(sent.sent_ms, now_ms)
        request = cast("group_pb2.HeartbeatRequest", sent.request)
        identity = self.identity
        if (request.member_id, request.generation_id) != (identity.member_id, identity.generation):
            return  # T-4: it speaks about an older life of this member
        if response.error_code == ErrorCode.ERROR_CODE_NONE:
            self.ownership.confirmed(sent.sent_ms, identity.generation)
        elif response.error_code == ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS:
            self.ownership.lease.accepted(sent.sent_ms)
            self._told_to_join(now_ms)
        else:
            self._membership_refused(response.error_code, response.holdfast, now_ms)

    def _told_to_join(self, now_ms: int) -> None:
        """T-6: join again, unless the answer to a sync may only have been overtaken.

        A heartbeat is sent with each sync. If its answer is the first, that of the sync says what
        to do: join, too, or what to give up before that. Who joins instead claims all of it.
        """
        if self._calls.pending(Kind.SYNC) and not self._joining.is_recalled:
            self._joining.is_recalled = True
        else:
            self._rebalance("the group rebalances", now_ms)
