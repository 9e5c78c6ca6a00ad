"""One member's session in the heartbeat protocol (KIP-848): what happens to it, and what follows.

Rules: T-9 to T-19 (docs/rules/client.md), S11 ownership, S12 takeover and release. Heartbeats go
out while callbacks run, so the group never has to guess; a callback that has lost its purpose
changes nothing when it ends (callback_order.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.client._session.consumer.answers import FENCES, Answers
from holdfast.client._session.consumer.departure import Goal
from holdfast.client._session.consumer.parts import WATCHED
from holdfast.client._session.consumer.states import BEATING, IN_GROUP, Input, State
from holdfast.client._session.session_io import GENERATION_NONE, Identity
from holdfast.v1.errors_pb2 import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holdfast.client._session.session_io import (
        SaidByAssignor,
        Subscription,
        TopicPartition,
    )
    from holdfast.client.errors import AssignmentFailed, HoldfastError
    from holdfast.v1 import extras_pb2, group_pb2

_STALE: Final = ErrorCode.ERROR_CODE_STALE_MEMBER_EPOCH


class ConsumerSession(Answers):
    """One member of one group, from start to stop."""

    # --- what the user wants -------------------------------------------------------------------

    def start(self, now_ms: int) -> None:
        """Begin to join: at once, for no request id is needed."""
        if self._started:
            return
        self._started = True
        self._seen_ms = now_ms
        self._start_timeout.begin(now_ms)
        if self._is_subscribed:
            self._join(Input.SUBSCRIBED, now_ms)
        self._beat_if_due(now_ms)

    def subscribe(self, subscription: Subscription, now_ms: int) -> None:
        """Want these topics from now on: the group hears it at once.

        It also leads out of FATAL, the same topics as well: what was refused may pass now (T-14).
        """
        self._advance(now_ms)
        out = self.state is State.FATAL or not self._is_subscribed
        if self._stopped or not (out or subscription != self._subscription):
            return
        self._subscription, self._is_subscribed = subscription, True
        if self._started and self._allows(Input.SUBSCRIBED):
            self._join(Input.SUBSCRIBED, now_ms)
        elif self.state in BEATING:
            self._beats.at_once(now_ms)
        self._beat_if_due(now_ms)

    def say_of_assignors(self, said: tuple[SaidByAssignor, ...], now_ms: int) -> None:
        """Say this of the assignors from now on: the group hears it at once (T-20)."""
        self._advance(now_ms)
        if self._stopped or said == self._beats.client_assignors:
            return
        self._beats.client_assignors = said
        if self.state in BEATING:
            self._beats.at_once(now_ms)
        self._beat_if_due(now_ms)

    def unsubscribe(self, now_ms: int) -> None:
        """Go out of the group until `subscribe`; a static member's place is kept for a session."""
        self._advance(now_ms)
        self._is_subscribed = False
        self._start_timeout.cancel()  # who goes out waits for no node
        self._depart(Goal.UNSUBSCRIBE, now_ms)

    def working(self, now_ms: int) -> None:
        """Note that the program works: it is not stuck (T-17)."""
        self._advance(now_ms)
        self._work.works(now_ms)
        if self.state is State.STALE:
            self._work_again(now_ms)
            self._beat_if_due(now_ms)

    def leave(self, now_ms: int) -> None:
        """Leave the group for good: the partitions go to others at once."""
        self._asked_to_end(Goal.LEAVE, now_ms)

    def restart(self, now_ms: int) -> None:
        """Go for a planned restart: a static member keeps its place, a dynamic one leaves (S12)."""
        self._asked_to_end(self._end_goal, now_ms)

    def _asked_to_end(self, goal: Goal, now_ms: int) -> None:
        if self.pausing:
            self._tell_stop()  # who wants the end is not made to wait for it
        self._advance(now_ms)
        self._depart(goal, now_ms)

    def fail(self, error: HoldfastError, now_ms: int) -> None:
        """End as `restart` does, and with this error: the shell or the user's code has failed.

        What is owned is let go of first, so nothing of the user's acts any more when the group
        hears of it.
        """
        self._advance(now_ms)
        if self._says_goodbye:
            self._stop(error, now_ms)  # the goodbye itself has failed
        else:
            self._depart(self._end_goal, now_ms, error)

    def abort(self, error: HoldfastError) -> None:
        """Stop at once without a word to the group: code of the user may still run."""
        if not self._stopped:
            self._stop(error, 0)

    # --- the target of the group -----------------------------------------------------------------

    def computed(
        self,
        number: int,
        members: Sequence[group_pb2.InstallAssignmentRequestMember],
        now_ms: int,
    ) -> None:
        """Hand in the target that the assignor has made for the Compute of this number."""
        self._advance(now_ms)
        self._computation.computed(number, members, self._epoch, now_ms)

    def not_computed(self, number: int, error: AssignmentFailed, now_ms: int) -> None:
        """Note that the assignor has failed: heartbeats go on, and the group may choose another."""
        self._advance(now_ms)
        self._computation.not_computed(number, error, now_ms)

    # --- callbacks and time --------------------------------------------------------------------

    def revoked(self, now_ms: int) -> None:
        """Note that the user has heard all up to the last Revoke that had not returned."""
        self._advance(now_ms)
        if self._callbacks.ended() and not self._stopped:
            self._callbacks_returned(now_ms)
        self._beat_if_due(now_ms)

    def _callbacks_returned(self, now_ms: int) -> None:
        """Go on with what the callbacks of the present reconciliation were awaited for."""
        match self.state:
            case State.REVOKING:
                self._has_let_go(now_ms)
            case State.ASSIGNING:
                self._has_taken_up(now_ms)
            case State.PREPARE_LEAVING:
                self._ready_to_leave(now_ms)
            case State.FENCED:
                self.owned.drop()
                self._heard_of_the_fence(now_ms)
            case _:  # lost before: nobody waits for it
                self.owned.drop()

    def tick(self, now_ms: int) -> None:
        """Time has passed."""
        if self._tells_stop_at_ms is not None and now_ms >= self._tells_stop_at_ms:
            self._tell_stop()
        if self._stopped or not self._started:
            return
        self._advance(now_ms)
        if self._departure.overdue(now_ms):
            self._goodbye_overdue(now_ms)
        elif self.state in BEATING and (error := self._start_timeout.expired(now_ms)):
            self._stop(error, now_ms)
        elif self.state in WATCHED and self._work.over(now_ms):
            self._go_idle(now_ms)
        self._calls.repeat_due(now_ms)
        self._beat_if_due(now_ms)

    def _goodbye_overdue(self, now_ms: int) -> None:
        if self._departure.final:
            session_ms = self.owned.lease.session_ms
            self._stop(self._departure.give_up(session_ms), now_ms)
        else:
            self._left(now_ms)

    # --- hints and commits ---------------------------------------------------------------------

    def pushed(self, push: group_pb2.HeartbeatPush, now_ms: int) -> None:
        """Take a hint that the service sent unasked: ask whether there is something new.

        It proves nothing, so it changes nothing else. One about an epoch that the member has passed
        was overtaken by an answer. While a join is open, its answer may be older than the hint.
        """
        ours = (self.settings.group, self.settings.member_id)
        if (push.group_id, push.member_id) != ours:
            return
        says_beat = push.error_code == ErrorCode.ERROR_CODE_NONE
        overtaken = says_beat and push.generation_id < self._epoch
        if not overtaken and (self.state in IN_GROUP or self._beats.joining):
            self._advance(now_ms)
            self._beats.at_once(now_ms)
            self._beat_if_due(now_ms)

    def refused(
        self,
        code: ErrorCode.ValueType,
        identity: Identity,
        extras: extras_pb2.ResponseExtras,
        now_ms: int,
    ) -> None:
        """Note that a commit of this member, sent under `identity`, was refused with `code`."""
        if identity != self.identity or self.state not in {*IN_GROUP, State.PREPARE_LEAVING}:
            return
        self._advance(now_ms)
        if code in FENCES:
            self._fence(self._reason_of(code, now_ms), now_ms)
        elif code == ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID:
            self._refuse(self._fatal(code, extras, now_ms), now_ms)
        elif code == _STALE:
            self._beats.at_once(now_ms)  # its answer brings the newest epoch (T-19)
        self._beat_if_due(now_ms)

    def commit_again(
        self,
        code: ErrorCode.ValueType,
        identity: Identity,
        partitions: Collection[TopicPartition],
    ) -> Identity | None:
        """Return as whom a refused commit may be sent again (T-19); None: the refusal stands.

        Only for what was owned when the commit was made, and ever since: sent under a newer epoch,
        the commit of a partition that another member had in between would pass the fence.
        """
        if code != _STALE or self._epoch == GENERATION_NONE:
            return None
        held = self.owned.held
        ever_since = all(
            name in held and held[name].generation <= identity.generation for name in partitions
        )
        return self.identity if ever_since and self.state in BEATING else None
