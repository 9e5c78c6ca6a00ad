"""How a member moves: joining, reconciling, losing, going. One method for each move.

session.py says which input or answer asks for which move; states.py, where it leads. No IO, no
clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.client._session import loss
from holdfast.client._session.calls_in_flight import Kind
from holdfast.client._session.consumer.departure import Goal
from holdfast.client._session.consumer.parts import Parts
from holdfast.client._session.consumer.states import IN_GROUP, RECONCILING, Input, State
from holdfast.client._session.fatal_error import pause_ms
from holdfast.client._session.loss import LostReason
from holdfast.client._session.session_io import (
    GENERATION_NONE,
    Assigned,
    Grant,
    Refused,
    Stopped,
)
from holdfast.client.errors import Fenced

if TYPE_CHECKING:
    from holdfast.client.errors import HoldfastError

JOIN_PAUSE_MS: Final = 1_000
"""Before a join is repeated that was itself answered with a fence: else it would spin."""


class Moves(Parts):
    """The moves of one member."""

    # --- joining -------------------------------------------------------------------------------

    def _join(self, what: Input, now_ms: int, *, in_ms: int = 0) -> None:
        """Ask to be taken, with everything that there is to say (T-9)."""
        self._to(what)
        self.error = None
        self._instance_wait.over()
        if what is Input.SUBSCRIBED:
            self._work.works(now_ms)
        self._beats.at_once(now_ms + in_ms)

    def _release_own_place(self, now_ms: int) -> None:
        """Say goodbye to the place that an earlier life of this very member has, and join anew.

        After a fence the group has that life still, and would keep its place for a session
        (K-N12). Nothing of it is owned here any more, so it can be released.
        """
        self._has_released = True
        self._departure.goal = Goal.UNSUBSCRIBE
        self._to(Input.HOLDS_ITSELF)
        self._say_goodbye(now_ms)

    # --- reconciling -----------------------------------------------------------------------------

    def _reconcile(self, now_ms: int, *, acknowledged: bool) -> None:
        """Go towards the target (T-10). `acknowledged`: the group knows all that is owned now.

        It may wait for a partition that it gave and took back before the user could own it: then,
        too, it must hear that this member has not got it.
        """
        parts, owned = self._reconciliation, self.owned
        parts.lose_regranted()
        running = self.state in RECONCILING
        if running and not parts.is_newer:
            return  # the callbacks under way lead there
        if running:
            self._callbacks.supersede()
            parts.lose_running(all_of_it=False)
        unsaid = acknowledged and not self._beats.believed <= parts.target.keys()
        if parts.going or owned.going or unsaid or self.state is State.REVOKING:
            self._let_go()
        elif (parts.coming and self._is_confirmed) or running:
            self._take_up(Input.GIVES, now_ms)
        elif acknowledged and self._allows(Input.NOTHING_NEW):
            self._nothing_new()

    def _let_go(self) -> None:
        """Have the user let go of what is not to be owned, and hear of what was lost."""
        self._to(Input.TAKES)
        self._callbacks.supersede()
        self._callbacks.await_all(self._reconciliation.let_go())

    def _take_up(self, what: Input, now_ms: int) -> None:
        """Have the user own what is new, and learn when it has heard of it."""
        self._to(what)
        self._callbacks.supersede()
        self._tell_assignors()
        self._reconciliation.take_up(now_ms)
        self._callbacks.await_all()

    def _tell_assignors(self) -> None:
        """Have the assignor hear what it says to this member: all that goes has gone by now."""
        if self.state is not State.REVOKING:
            self._outputs.extend(self._reconciliation.take_told())

    def _nothing_new(self) -> None:
        """Settle; a member that was given nothing at its join is told so."""
        joins = self.state is State.JOINING
        self._to(Input.NOTHING_NEW)
        if joins and not self._reconciliation.target:
            grant = Grant(self.settings.member_id, self._epoch, 0, 0)
            self._outputs.append(Assigned((), grant))

    def _has_let_go(self, now_ms: int) -> None:
        """Others may have it from the next heartbeat on, which goes out at once."""
        self.owned.drop()
        self._beats.at_once(now_ms)
        if self._reconciliation.coming and self._is_confirmed:
            self._take_up(Input.LET_GO_FOR_MORE, now_ms)
        else:
            self._to(Input.LET_GO)
            self._tell_assignors()

    def _has_taken_up(self, now_ms: int) -> None:
        self._reconciliation.taken_up()
        self._beats.at_once(now_ms)
        self._to(Input.TAKEN_UP)

    # --- losing ----------------------------------------------------------------------------------

    def _lease_ended(self, reason: LostReason) -> None:
        """Ownership has ended by the own clock (S11): only an accepted heartbeat gives it back."""
        self._callbacks.supersede()
        self.owned.lose(self.owned.known, reason)
        self._beats.say_all()
        if self.state in IN_GROUP:
            self._to(Input.LEASE_ENDED)
        self._callbacks.await_all(self._reconciliation.let_go())

    def _lose_all(self, reason: LostReason) -> None:
        """End the membership here: nothing is owned, and nothing of it counts any more."""
        self._callbacks.supersede()
        self.owned.lose(self.owned.known, reason)
        self.owned.lease.forget()
        self._is_confirmed = False
        self._reconciliation.forget()
        self._computation.drop()
        self._beats.stop()
        self._epoch = GENERATION_NONE

    def _fence(self, reason: LostReason, now_ms: int) -> None:
        """T-13: the group does not know the member so. It is heard by the user, then it joins."""
        joins = self.state is State.JOINING
        self._lose_all(reason)
        self._may_be_member = False
        self._to(Input.FENCED)
        self._callbacks.await_all()
        if self.state is State.UNSUBSCRIBED:
            self._end_departure(now_ms)
        elif joins:
            self._join_from_ms = now_ms + JOIN_PAUSE_MS

    def _heard_of_the_fence(self, now_ms: int) -> None:
        self._join(Input.HEARD, now_ms, in_ms=max(0, self._join_from_ms - now_ms))

    def _refuse(self, error: HoldfastError, now_ms: int) -> None:
        """T-14: end in FATAL. Only `subscribe` leads out, and nothing whoever is fenced."""
        fenced = isinstance(error, Fenced)
        self._lose_all(_stopped_by(error))
        self._calls.forget(*Kind)
        self._may_be_member = self._may_be_member and not fenced
        self._to(Input.REFUSED)
        if fenced or self._departure.final:
            self._stop(error, now_ms)
            return
        self.error = error
        self._departure.goal = Goal.STAY
        self._callbacks.await_all()
        self._outputs.append(Refused(error))

    # --- going -----------------------------------------------------------------------------------

    @property
    def _end_goal(self) -> Goal:
        """How to end without being told how: a place that can wait for a restart is kept (S12)."""
        return Goal.LEAVE if self.settings.instance_id is None else Goal.RESTART

    def _depart(self, goal: Goal, now_ms: int, error: HoldfastError | None = None) -> None:
        """Let go of everything, then tell the group. `error`: what has failed here."""
        if self._stopped:
            return
        departure = self._departure
        departure.error = departure.error or error
        if departure.final:
            return
        departure.goal = goal
        if departure.final:
            departure.error = self.error or departure.error
        if self.state is State.FATAL and not (departure.final and self._may_be_member):
            self._end_in_fatal(now_ms)
        elif self._allows(Input.DEPARTS):
            self._let_go_of_all(now_ms)
        elif self.state is State.UNSUBSCRIBED:
            self._end_departure(now_ms)

    def _end_in_fatal(self, now_ms: int) -> None:
        """Stop without a word: the group has not the member. To unsubscribe changes nothing."""
        if self._departure.final:
            self._stop(self.error, now_ms)
        else:
            self._departure.goal = Goal.STAY

    def _let_go_of_all(self, now_ms: int) -> None:
        self._computation.drop()
        self._callbacks.supersede()
        self._reconciliation.lose_running(all_of_it=True)
        self._to(Input.DEPARTS)
        self._callbacks.await_all(self._reconciliation.let_go(everything=True))
        if self.state is State.UNSUBSCRIBED:
            self._end_departure(now_ms)

    def _go_idle(self, now_ms: int) -> None:
        """T-17: the program is stuck, so nobody can let go of anything: all is lost."""
        self._may_be_member |= self._beats.joining
        self._lose_all(loss.stuck(self._work.timeout_ms or 0))
        self._departure.goal = Goal.IDLE
        self._to(Input.IDLE)
        self._callbacks.await_all()
        self._say_goodbye(now_ms)

    def _ready_to_leave(self, now_ms: int) -> None:
        """Tell the group only now, when no code of the user acts any more (S12)."""
        self._may_be_member |= self._beats.joining
        self.owned.drop()
        self._to(Input.READY_TO_LEAVE)
        self._say_goodbye(now_ms)

    def _say_goodbye(self, now_ms: int) -> None:
        self._beats.stop()
        self._calls.forget(*Kind)
        if self._may_be_member:
            self._departure.say_goodbye(self._beats.timeout_ms, now_ms)
        else:
            self._left(now_ms)

    def _left(self, now_ms: int) -> None:
        """Go on: the goodbye was answered, or nobody waits for its answer any more."""
        self._calls.forget(Kind.LEAVE)
        self._may_be_member = False
        self._forget_membership()
        idle = self._departure.goal is Goal.IDLE
        self._to(Input.LEFT_IDLE if idle else Input.LEFT)
        self._end_departure(now_ms)

    def _forget_membership(self) -> None:
        self._departure.until_ms = None
        self._reconciliation.forget()
        self.owned.lease.forget()
        self._is_confirmed = False
        self._epoch = GENERATION_NONE

    def _end_departure(self, now_ms: int) -> None:
        """Stop, if that was the goal; else stay out, or join again if that is wanted by now."""
        if self._departure.final:
            self._stop(self._departure.error, now_ms)
            return
        self._departure.goal = Goal.STAY
        if self.state is State.STALE:
            self._work_again(now_ms)
        elif self._is_subscribed:
            self._join(Input.SUBSCRIBED, now_ms)

    def _work_again(self, now_ms: int) -> None:
        """T-17: back into the group, once the program has said that it works."""
        if not self._work.over(now_ms):
            self._join(Input.WORKS, now_ms)

    # --- the end ---------------------------------------------------------------------------------

    def _stop(self, error: HoldfastError | None, now_ms: int) -> None:
        """All is over. What failed first is what the user hears."""
        self.error = error = self._departure.error or error
        self._lose_all(loss.OVER if error is None else _stopped_by(error))
        self._calls.forget(*Kind)
        self._start_timeout.cancel()
        self._departure.until_ms = None
        self._stopped = True
        pause = 0 if self._departure.final else pause_ms(error)
        if pause:
            self._tells_stop_at_ms = now_ms + pause
        else:
            self._tell_stop()

    def _tell_stop(self) -> None:
        self._tells_stop_at_ms = None
        self._outputs.append(Stopped(self.error))


def _stopped_by(error: HoldfastError) -> LostReason:
    return loss.fenced(error) if isinstance(error, Fenced) else LostReason("stopped", str(error))
