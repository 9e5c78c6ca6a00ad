"""The member session: one state machine for every shell, without IO, clock or randomness.

A shell tells it what happened and when (`start`, `answered`, `failed`, `tick`, `revoked`, `leave`,
`restart`, `pushed`), performs the outputs it takes with `outputs()`, and calls `tick` at
`wake_at_ms`. All times are boot-clock milliseconds (CLOCK_BOOTTIME) that come in as arguments.
phases.py draws the states; joining.py, departure.py, leadership.py, ownership.py and pace.py have
the parts, and here is what each answer and each event means to them.

Rules: T1-T7 of the Kafka client (named where they stand; T8 has no counterpart, as nothing has to
be polled), S11 ownership, S12 takeover and release, S14 request ids, S17 parked calls. An eager
member lets go of everything before it joins; a cooperative one (KIP-429) keeps what it has, lets go
of what the assignment leaves out, and joins again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from holdfast.client import requests
from holdfast.client.calls import Calls, Kind
from holdfast.client.departure import Departure
from holdfast.client.errors import OF_THE_MEMBERSHIP, HoldfastError, from_code
from holdfast.client.final import final_error
from holdfast.client.joining import Joining
from holdfast.client.leadership import Leadership
from holdfast.client.ownership import Ownership
from holdfast.client.pace import Pace
from holdfast.client.phases import IN_GROUP, Goal, Phase
from holdfast.client.protocol import read_share
from holdfast.client.requests import GENERATION_NONE, Identity
from holdfast.client.signals import FailureKind, Grant, Missing, Output, Settings, Stopped
from holdfast.v1 import admin_pb2, extras_pb2, group_pb2
from holdfast.v1.errors_pb2 import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection

    from holdfast.client.calls import Sent
    from holdfast.client.protocol import TopicPartition
    from holdfast.client.request_ids import RequestIds
    from holdfast.client.signals import Failure, Response

JOIN_AGAIN_MS: Final = 1_000
"""Before a join is repeated that the service would not take during a rebalance (as Kafka's)."""


class Session:
    """One member of one group, from start to stop."""

    def __init__(self, settings: Settings, request_ids: RequestIds) -> None:
        self.settings = settings
        self.phase = Phase.NEW
        self.error: HoldfastError | None = None
        self._ids = request_ids
        self._outputs: list[Output] = []
        self.ownership = Ownership(settings, self._outputs)
        self._calls = Calls(self._outputs)
        self._pace = Pace(settings, self.ownership.lease)
        self._joining = Joining(settings, request_ids, self._calls, self._pace)
        self._departure = Departure(settings, request_ids, self._calls, self._pace)
        self._leadership = Leadership(settings)

    # --- what the shell asks -------------------------------------------------------------------

    @property
    def identity(self) -> Identity:
        """Who the member is to the group at the moment."""
        return self._joining.identity

    @property
    def departing(self) -> bool:
        """Whether the user has asked for the end."""
        return self._departure.goal is not Goal.STAY

    def outputs(self) -> list[Output]:
        """Take what is to be done, in this order."""
        taken = self._outputs[:]
        self._outputs.clear()
        return taken

    def owns(self, now_ms: int) -> bool:
        """Whether the member may act on its partitions now: by the clock, not by the last tick."""
        return self.ownership.holds(now_ms)

    @property
    def wake_at_ms(self) -> int | None:
        """When to call `tick` next; None: only an input can change anything."""
        if self.phase in {Phase.NEW, Phase.STOPPED}:
            return None
        moments = [
            self._calls.wake_at_ms,
            self._pace.heartbeat_at_ms if self._can_heartbeat() else None,
            self._joining.resend_at_ms if self.phase is Phase.JOINING else None,
            self._departure.until_ms,
            self.ownership.changes_at_ms,
            self._leadership.refresh_at_ms if self.phase is Phase.STABLE else None,
        ]
        return min((moment for moment in moments if moment is not None), default=None)

    # --- inputs --------------------------------------------------------------------------------

    def start(self, now_ms: int) -> None:
        """Begin: the first answer brings the log time that request ids need (S15)."""
        if self.phase is not Phase.NEW:
            return
        self.phase = Phase.FINDING
        request = group_pb2.FindCoordinatorRequest(coordinator_keys=[self.settings.group])
        self._calls.send(Kind.FIND, request, self._pace.short_timeout_ms, now_ms)

    def answered(self, call: int, response: Response, now_ms: int) -> None:
        """An answer of the protocol has come for a call. Late answers change nothing."""
        sent = self._calls.take(call)
        if sent is None or self.phase is Phase.STOPPED:
            return
        if response.holdfast.HasField("log_time_ms"):
            self._ids.observe(response.holdfast.log_time_ms, now_ms)
        self.ownership.settle(now_ms)
        try:
            self._dispatch(sent, response, now_ms)
        except HoldfastError as error:
            self._stop(error)
        self.ownership.settle(now_ms)

    def failed(self, call: int, failure: Failure, now_ms: int) -> None:
        """A call has ended without an answer. Every retry repeats the request id (S14)."""
        sent = self._calls.take(call)
        if sent is None or self.phase is Phase.STOPPED:
            return
        self.ownership.settle(now_ms)
        newer = bool(self._calls.in_flight(sent.kind))
        if failure.kind is FailureKind.FATAL:
            self._stop(failure.error)
        elif newer and sent.kind is not Kind.HEARTBEAT:
            return  # S17: the newer attempt of this round lives on
        elif sent.kind is Kind.HEARTBEAT:
            self._pace.heartbeat_at_ms = now_ms + failure.retry_in_ms
            # S17: the node that a join or sync is parked at may be gone as well, which a call that
            # waits anyway would notice late. Where the next attempt goes, it takes the place.
            self._calls.resend(Kind.JOIN, now_ms)
            self._calls.resend(Kind.SYNC, now_ms)
        else:
            self._calls.repeat_at(sent, now_ms + failure.retry_in_ms)

    def tick(self, now_ms: int) -> None:
        """Time has passed."""
        if self.phase in {Phase.NEW, Phase.STOPPED}:
            return
        self.ownership.settle(now_ms)
        if self._departure.overdue(now_ms):
            session_ms = self.ownership.lease.session_ms
            self._stop(self._departure.unconfirmed(self.identity, session_ms))
            return
        self._calls.repeat_due(now_ms)
        self._heartbeat_if_due(now_ms)
        self._joining.resend_if_due(now_ms)
        if self.phase is Phase.STABLE and self._leadership.refresh_due(now_ms):
            self._ask_for_topics(now_ms)

    def revoked(self, now_ms: int) -> None:
        """The user has let go of the partitions of the last Revoke."""
        if self.phase is not Phase.REVOKING:
            return
        self.ownership.settle(now_ms)
        self.ownership.release()
        if self._departure.goal is Goal.STAY:
            self._join(now_ms)
        else:
            self._let_go_and_say_goodbye(now_ms)

    def leave(self, now_ms: int) -> None:
        """Leave the group for good: the partitions go to others at once."""
        self._depart(Goal.LEAVE, now_ms)

    def restart(self, now_ms: int) -> None:
        """Go for a planned restart: a static member releases its hold and keeps its place (S12).

        A dynamic member has no place that could wait for it: it leaves.
        """
        static = self.settings.instance_id is not None
        self._depart(Goal.RESTART if static else Goal.LEAVE, now_ms)

    def abort(self, error: HoldfastError) -> None:
        """Stop at once without a word to the group: the shell or the user's code has failed."""
        if self.phase is not Phase.STOPPED:
            self._stop(error)

    def pushed(self, push: group_pb2.HeartbeatPush, now_ms: int) -> None:
        """The service has told something unasked. A hint: it proves nothing and renews nothing."""
        ours = (self.settings.group, self.identity.member_id)
        if (push.group_id, push.member_id) != ours or self.phase not in IN_GROUP:
            return
        self.ownership.settle(now_ms)
        rebalance = push.error_code == ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS
        if rebalance and push.generation_id == self.identity.generation:
            self._rebalance("a rebalance was announced", now_ms)
        elif not rebalance or push.generation_id > self.identity.generation:
            self._pace.heartbeat_at_ms = now_ms  # ask whether it is true

    def refused(
        self,
        code: ErrorCode.ValueType,
        identity: Identity,
        extras: extras_pb2.ResponseExtras,
        now_ms: int,
    ) -> None:
        """Another call of this member (a commit) sent under `identity` was refused with `code`."""
        current = identity == self.identity and self.phase in IN_GROUP
        if current and code in OF_THE_MEMBERSHIP:
            self.ownership.settle(now_ms)
            self._membership_refused(code, extras, now_ms)

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
                self._stop(None)

    def _join_answered(
        self, sent: Sent, response: group_pb2.JoinGroupResponse, now_ms: int
    ) -> None:
        self._calls.forget(Kind.JOIN)
        self._joining.resend_at_ms = None
        if response.error_code == ErrorCode.ERROR_CODE_MEMBER_ID_REQUIRED:
            # T1: nothing is revoked, and there is nothing to back off from.
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
        self.ownership.await_predecessor(now_ms + extras.predecessor_ms)
        # At once: pushes reach only those whose heartbeat the service has seen on the stream.
        self._pace.heartbeat_at_ms = now_ms
        self._leadership.begin(response)
        if self._leadership.must_assign:
            self._ask_for_topics(now_ms)
        else:
            self._joining.send_sync((), now_ms)

    def _topics_answered(self, response: admin_pb2.ListTopicsResponse, now_ms: int) -> None:
        if response.error_code != ErrorCode.ERROR_CODE_NONE:
            raise from_code(response.error_code, subject="ListTopics")
        counts = {topic.name: topic.num_partitions for topic in response.topics}
        self._leadership.refresh_from(now_ms + self.settings.topics_refresh_ms)
        changed = self._leadership.changed(counts) if self.phase is Phase.STABLE else ""
        if changed:  # what is missing then is told once nobody has partitions of it any more
            self._rebalance(f"topics changed: {changed}", now_ms)
            return
        if missing := self._leadership.newly_missing(counts):
            self._outputs.append(Missing(missing))
        if self.phase is Phase.SYNCING and self._leadership.must_assign:
            assignments = self._leadership.assign(self.identity.protocol, counts)
            self._joining.send_sync(assignments, now_ms)

    def _sync_answered(
        self, sent: Sent, response: group_pb2.SyncGroupResponse, now_ms: int
    ) -> None:
        self._calls.forget(Kind.SYNC)
        if response.error_code != ErrorCode.ERROR_CODE_NONE:
            self._membership_refused(response.error_code, response.holdfast, now_ms)
            return
        share = read_share(response.assignment)
        extras = response.holdfast
        self.ownership.await_predecessor(now_ms + extras.predecessor_ms)
        identity = self.identity
        grant = Grant(
            identity.member_id, identity.generation, extras.fencing_token, extras.predecessor_ms
        )
        owes_a_round = self._joining.owes_a_round(share)
        self.ownership.assigned(grant, share.partitions, sent.sent_ms)
        self.phase = Phase.STABLE
        self._leadership.settled(share.counts, now_ms)
        if self.ownership.surplus or owes_a_round:
            self._let_go_and_join(self.ownership.surplus, "others wait for its partitions", now_ms)

    def _heartbeat_answered(
        self, sent: Sent, response: group_pb2.HeartbeatResponse, now_ms: int
    ) -> None:
        self._pace.answered(sent.sent_ms, now_ms)
        request = cast("group_pb2.HeartbeatRequest", sent.request)
        identity = self.identity
        if (request.member_id, request.generation_id) != (identity.member_id, identity.generation):
            return  # T4: it speaks about an older life of this member
        if response.error_code == ErrorCode.ERROR_CODE_NONE:
            self.ownership.confirmed(sent.sent_ms, identity.generation)
        elif response.error_code == ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS:
            self.ownership.lease.accepted(sent.sent_ms)
            self._rebalance("the group rebalances", now_ms)
        else:
            self._membership_refused(response.error_code, response.holdfast, now_ms)

    def _membership_refused(
        self, code: ErrorCode.ValueType, extras: extras_pb2.ResponseExtras, now_ms: int
    ) -> None:
        """The group does not have us as we think: T2, T3, T6; everything else ends the session."""
        if code == ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID:
            self._joining.identity = Identity()
            self._start_over("the group does not know this member any more", now_ms)
        elif code == ErrorCode.ERROR_CODE_ILLEGAL_GENERATION:
            self._generation_passed(now_ms)
        elif code == ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS:
            self._rebalance("the group rebalances", now_ms)
        else:
            # FENCED_INSTANCE_ID (T5) is here on purpose: two twins that rejoin fence each other
            # for ever.
            self._refuse(code, extras, now_ms)

    def _refuse(
        self, code: ErrorCode.ValueType, extras: extras_pb2.ResponseExtras, now_ms: int
    ) -> None:
        """The refusal cannot heal: the member ends with it."""
        log_time_ms = self._ids.log_time_ms(now_ms)
        self._stop(final_error(code, extras, self.settings, self.identity, log_time_ms))

    def _generation_passed(self, now_ms: int) -> None:
        """T3: keep the member id, drop the generation."""
        self._joining.identity = Identity(member_id=self.identity.member_id)
        reason = "the group has moved on without this member"
        if self.phase is Phase.JOINING:
            self.ownership.forfeit(reason)
            self._joining.generation_passed(now_ms)
        else:
            self._start_over(reason, now_ms)

    # --- joining -------------------------------------------------------------------------------

    def _rebalance(self, reason: str, now_ms: int) -> None:
        """T6: eager, let go of everything and join again; cooperative, keep it and join again.

        Ignored while that is under way.
        """
        if self.phase not in {Phase.SYNCING, Phase.STABLE}:
            return
        self._calls.forget(Kind.SYNC, Kind.TOPICS)
        self._let_go_and_join((), reason, now_ms)

    def _let_go_and_join(
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

    def _start_over(self, reason: str, now_ms: int) -> None:
        """T2, T3: the partitions are lost without a chance to commit; join as what we still are."""
        self._joining.reason = reason
        self.ownership.forfeit(reason)
        self._pace.heartbeat_at_ms = None
        self._calls.forget(Kind.SYNC, Kind.HEARTBEAT, Kind.TOPICS, Kind.JOIN)
        if self.phase is not Phase.REVOKING:  # else the running on_revoked ends first
            self._join(now_ms)

    def _join(self, now_ms: int) -> None:
        if not self._joining.cooperative:
            self.ownership.forget()
        self.phase = Phase.JOINING
        self._leadership.end()
        self._calls.forget(Kind.JOIN, Kind.SYNC, Kind.TOPICS)
        self._joining.send_join(now_ms)

    # --- signs of life and the group leader's watch ----------------------------------------------

    def _heartbeat_if_due(self, now_ms: int) -> None:
        if not self._pace.due(now_ms) or not self._can_heartbeat():
            return
        self._pace.heartbeat_at_ms = None  # the answer or the failure sets the next one
        request = requests.heartbeat(self.settings, self.identity)
        self._calls.send(Kind.HEARTBEAT, request, self._pace.short_timeout_ms, now_ms)

    def _can_heartbeat(self) -> bool:
        return self.phase in IN_GROUP and self.identity.can_heartbeat

    def _ask_for_topics(self, now_ms: int) -> None:
        self._leadership.refresh_from(None)
        request = requests.list_topics(self._leadership.topics)
        self._calls.send(Kind.TOPICS, request, self._pace.short_timeout_ms, now_ms)

    # --- the end -------------------------------------------------------------------------------

    def _depart(self, goal: Goal, now_ms: int) -> None:
        ending = self.phase in {Phase.LEAVING, Phase.STOPPED}
        if ending or self._departure.goal is not Goal.STAY:
            return
        self.ownership.settle(now_ms)
        self._departure.goal = goal
        if self.phase is Phase.REVOKING:
            return  # on_revoked is running; `revoked` goes on from there
        self._calls.forget(Kind.JOIN, Kind.SYNC, Kind.TOPICS)
        self._let_go_and_say_goodbye(now_ms)

    def _let_go_and_say_goodbye(self, now_ms: int) -> None:
        if self.ownership.held:
            self.phase = Phase.REVOKING
            self.ownership.revoke(self.ownership.held)
            return
        self.ownership.forget()
        self._calls.forget(*Kind)
        self._pace.heartbeat_at_ms = self._joining.resend_at_ms = None
        self.phase = Phase.LEAVING
        if not self._departure.say_goodbye(self.identity, now_ms):
            self._stop(None)

    def _stop(self, error: HoldfastError | None) -> None:
        self.ownership.forfeit("the session is over" if error is None else str(error))
        self._calls.forget(*Kind)
        self._joining.identity = Identity(self.identity.member_id, GENERATION_NONE)
        self.phase = Phase.STOPPED
        self.error = error
        self._outputs.append(Stopped(error))
