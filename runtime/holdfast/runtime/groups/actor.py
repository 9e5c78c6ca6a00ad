"""One group's actor on the leader: commands in, one batch at a time out to the log.

A decision without events is carried out at once while no batch is under way. The first decision
with events opens a batch; other commands of the same turn of the loop join it; then it is proposed
as one part. Of these, heartbeats that may share a target are decided together. Later commands wait,
except heartbeats of members that the batch does not touch (S9). Effects are carried out when the
batch is committed. Knows no gRPC.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat, Heartbeat
from holdfast.coordinator.model.effects import (
    Answer,
    InstallRegexes,
    Renew,
    ResolveRegexes,
    settled,
)
from holdfast.coordinator.model.ids import fencing_token
from holdfast.coordinator.model.state import RequestKey
from holdfast.coordinator.model.usage import NOTHING, Usage
from holdfast.coordinator.model.volatile import Volatile
from holdfast.runtime.errors import NotCoordinator, RuleBroken
from holdfast.runtime.groups import fates
from holdfast.runtime.groups.batch import Batch, call_of, shares, told, waits
from holdfast.runtime.groups.decider import Decider
from holdfast.runtime.groups.heartbeat_cache import HeartbeatCache
from holdfast.runtime.groups.moments import APPLIED, COMMITTED, PROPOSED, SENT
from holdfast.runtime.groups.pending_calls import Answered

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from holdfast.coordinator.model.commands import Caller, Command
    from holdfast.coordinator.model.effects import Decision, Effect
    from holdfast.coordinator.model.ids import CallId, GroupId, MemberId, Position
    from holdfast.runtime.groups.desk import Desk
    from holdfast.runtime.groups.heartbeat_cache import CachedAnswer, Key, RememberedBeat
    from holdfast.runtime.ports import Committed

logger = logging.getLogger(__name__)

REFUSED_RETRY_S: Final = 1.0
"""Seconds until an overloaded node proposes commands again that no caller would repeat."""
BROKEN_RETRY_S: Final = 60.0
"""The same after a broken invariant: rarely, since each try raises the alarm again."""


class Actor:
    """Decides for one group; "" is the cluster itself."""

    def __init__(self, group_id: GroupId, desk: Desk) -> None:
        self.group_id = group_id
        self.volatile = Volatile()
        self._desk = desk
        self._batch: Batch | None = None
        self._proposed = False
        self._inbox: list[Command] = []
        self._heartbeats = HeartbeatCache()
        self._decider = Decider(group_id, desk)
        self._dropped = False
        self._retries = 0

    def take_over(self, decision: Decision) -> None:
        """Start to lead this group: adopt what `on_leading` decided and arm its deadlines (S9)."""
        self.volatile = decision.volatile
        self._carry_out(decision.effects)

    def heartbeat(self, key: Key) -> CachedAnswer | None:
        """Answer a plain heartbeat of the classic protocol from the cache: only renew the session.

        Returns None if something has changed, so that the heartbeat has to be decided.
        """
        member_id, cached = key[1], self._heartbeats.recall(key)
        if cached is None or (self._batch is not None and member_id in self._batch.touched):
            return None
        if cached.session_timeout_ms is not None:
            count = self._heartbeats.renewed(self.volatile, member_id)
            self._desk.renew(self.group_id, Renew(member_id, cached.session_timeout_ms, count))
        return cached

    def last_beat(self, member_id: MemberId) -> RememberedBeat | None:
        """Return a member's last heartbeat in the heartbeat protocol, if nothing has changed."""
        if self._batch is not None and member_id in self._batch.touched:
            return None
        return self._heartbeats.last_beat(member_id)

    def beat_again(self, last: RememberedBeat, number: int) -> CachedAnswer:
        """Answer a heartbeat as the last one: renew the session, and note the number (S26)."""
        if number:
            self._heartbeats.hear(last, number)
        answer, member_id = last.answer, last.member_id
        if answer.session_timeout_ms is not None:
            count = self._heartbeats.renewed(self.volatile, member_id)
            self._desk.renew(self.group_id, Renew(member_id, answer.session_timeout_ms, count))
        return answer

    def submit(self, command: Command) -> None:
        """Decide a command now, or as soon as it may be."""
        self._take(command)
        if self._batch is None:
            self._desk.idle(self.group_id)

    def _take(self, command: Command) -> None:
        self.volatile = self._heartbeats.folded(self.volatile)
        batch = self._batch
        if batch is None:
            self._begin(command)
        elif not waits(batch, command):
            self._answer_aside(batch, command)
        elif self._proposed or not batch.takes(command):
            self._inbox.append(command)
        elif shares(command):
            batch.put_off(command)
        else:
            self._decide_undecided(batch)
            self._join(batch, command)

    def _join(self, batch: Batch, command: Command) -> None:
        """Decide a command on what the batch has decided, or later if it does not fit in."""
        if batch.closed:
            self._inbox.append(command)
            return
        self._renew(batch)
        decision = self._decider.alone(batch.state, batch.volatile, command)
        if decision is not None and not batch.fits(decision):
            batch.give_back(0)
            self._inbox.append(command)
        elif decision is not None:
            batch.add(command, decision)
            self._claim()

    def _renew(self, batch: Batch) -> None:
        """Have renewals by heartbeats outside the batch count for commands that join it (S9)."""
        batch.volatile = self._heartbeats.merged(self.volatile, batch.volatile)

    def forget_beats(self) -> None:
        """Take note that topics, settings or rights have changed, on which answers depend."""
        self._heartbeats.forget_all_beats()

    def _forget(self) -> None:
        self._heartbeats.forget()
        self._heartbeats.forget_all_beats()

    def _claim(self) -> None:
        """Report the growth that this group has decided and not on the log yet.

        A batch is applied whole or not at all, so what it frees offsets what it adds; but a net
        decrease is not counted before it is applied.
        """
        batch = self._batch
        volatile = self.volatile if batch is None else batch.volatile
        growth = NOTHING if batch is None else batch.growth
        if min(growth) < 0:
            growth = Usage(*(max(each, 0) for each in growth))
        self._desk.claim(self.group_id, growth, len(volatile.pending))

    @property
    def unsettled(self) -> set[CallId]:
        """Calls whose outcome depends on a proposed batch (S5)."""
        return self._batch.calls if self._batch is not None and self._proposed else set()

    @property
    def keeps_something(self) -> bool:
        """Whether anything is parked, pending, armed, under way or to be retried."""
        v = self.volatile
        parked = v.joins or v.syncs or v.pending or v.armed
        return bool(parked or self._batch or self._inbox or self._retries)

    def drop(self) -> None:
        """Decide nothing more: the leadership is lost, or the node stops.

        Only a proposed batch is still settled; one that was not proposed yet never will be.
        """
        self._dropped = True
        self._inbox.clear()

    # --- deciding ---

    def _begin(self, command: Command) -> None:
        state = self._desk.state
        decision = self._decider.alone(state, self.volatile, command)
        if decision is None:
            return
        if not decision.events:
            self.volatile = decision.volatile
            self._note(command, decision)
            self._carry_out(decision.effects, commands=(command,))
            self._claim()
            return
        self._heartbeats.batch_begins()
        self._batch = Batch(self.group_id, state, self.volatile)
        if shares(command):
            self._batch.put_off(command, decision)
        else:
            self._batch.add(command, decision)
            self._claim()
        asyncio.get_running_loop().call_soon(self._propose)

    def _answer_aside(self, batch: Batch, command: Command) -> None:
        """Decide a heartbeat that the batch does not touch, on the committed state.

        One that records, starts or stops something waits: of what is changed in the volatile part
        meanwhile, only renewals outlast the batch (S11).
        """
        decision = self._decider.alone(batch.base, self.volatile, command)
        if decision is None:
            return
        if decision.events or decision.volatile.armed is not self.volatile.armed:
            self._inbox.append(command)
            return
        self.volatile = decision.volatile
        if isinstance(command, Heartbeat):
            self._heartbeats.note(command.member_id)
        self._note(command, decision)
        self._carry_out(decision.effects)

    def _note(self, command: Command, decision: Decision) -> None:
        """Cache a heartbeat's answer; any other decision clears the classic ones."""
        if isinstance(command, Heartbeat):
            self._heartbeats.remember(command, decision)
        elif isinstance(command, ConsumerGroupHeartbeat):
            self._heartbeats.remember_beat(command, decision)
        else:
            self._heartbeats.forget()

    def _decide_undecided(self, batch: Batch) -> None:
        """Decide what was put off, in one go; a defect in a rule fails one command alone (S6)."""
        commands, decision = batch.undecided()
        if not commands:
            return
        before = batch.volatile
        self._renew(batch)
        if batch.volatile is not before:
            decision = None  # it was made before these renewals, and would undo them (S9)
        decision = decision or self._decider.together(batch, commands)
        while decision is not None and not batch.fits(decision) and len(batch.commands) > 1:
            commands = self._halved(batch, commands)
            decision = self._decider.together(batch, commands) if commands else None
        if decision is not None:
            batch.adopt(decision)
        else:
            self._adopt_one_by_one(batch, commands)
        self._claim()

    def _halved(self, batch: Batch, commands: Sequence[Command]) -> Sequence[Command]:
        """Put the latter half of commands that do not fit into an entry off to the next."""
        kept = len(commands) // 2
        self._inbox[:0] = batch.give_back(len(commands) - kept)
        return commands[:kept]

    def _adopt_one_by_one(self, batch: Batch, commands: Sequence[Command]) -> None:
        """Decide each command by itself; from one that does not fit on, later."""
        for place, command in enumerate(commands):
            decision = self._decider.alone(batch.state, batch.volatile, command)
            if decision is None:
                continue
            if batch.events and not batch.fits(decision):
                self._inbox[:0] = batch.give_back(len(commands) - place)
                return
            batch.adopt(decision)

    # --- proposing ---

    def _propose(self) -> None:
        """Check the group as it would be after the batch (S6), then propose the batch."""
        batch = self._batch
        if batch is None or self._dropped:
            return
        self._decide_undecided(batch)
        if not batch.events:
            self._settle_unrecorded(batch)
            return
        problems = batch.problems()
        if problems:
            self._refuse_broken(batch, problems)
            return
        self._proposed = True
        self._desk.propose(batch.part(self._desk.term)).add_done_callback(self._settled)
        if self._desk.calls.traced:
            self._desk.calls.note(batch.calls, PROPOSED)

    def _refuse_broken(self, batch: Batch, problems: Iterable[object]) -> None:
        self._forget()  # if no node can apply it, the group is no longer served
        text = "; ".join(map(str, problems))
        logger.critical(
            "alarm: a batch of group %r would break an invariant and was not proposed: %s; "
            "commands: %s",
            self.group_id,
            text,
            [type(command).__name__ for command in batch.commands],
            extra=told(batch.commands),
        )
        self._fail(batch, lambda: RuleBroken(text))
        self._try_later(batch, BROKEN_RETRY_S)
        self._go_on()

    def _settled(self, future: asyncio.Future[Committed]) -> None:
        batch = self._batch
        if batch is None or future.cancelled():
            return
        error = future.exception()
        if error is not None:
            fates.note(batch, error)
            self._fail(batch, lambda: fates.fault(error, self._desk))
            self._try_later(batch, REFUSED_RETRY_S)
            self._go_on()
        elif (committed := future.result()).impossible:
            self._refuse_broken(batch, ["every node found that it cannot be applied"])
        elif committed.applied:
            if self._desk.calls.traced:
                self._note_commit(batch, committed)
            self._adopt(batch, committed.first)
            self._go_on()
        else:
            self._decide_again(batch)

    def _settle_unrecorded(self, batch: Batch) -> None:
        """Carry out a batch that records nothing: what opened it failed with those beside it."""
        self.volatile = self._heartbeats.merged(self.volatile, batch.volatile)
        self._heartbeats.forget()
        self._carry_out(batch.effects, commands=batch.commands)
        self._go_on()

    def _note_commit(self, batch: Batch, committed: Committed) -> None:
        """Note the way of the batch's entry for the calls that are traced."""
        passage = committed.passage
        for call in batch.calls & self._desk.calls.traced.keys():
            moments = self._desk.calls.traced[call]
            moments.index = committed.first.index
            if passage is not None:
                moments.note(SENT, passage.sent)
                moments.note(COMMITTED, passage.committed)
                moments.note(APPLIED, passage.applied)

    def _adopt(self, batch: Batch, first: Position) -> None:
        """Adopt a committed batch: its volatile part, and its effects (S16).

        `first`: the position of its first record, for the answers.
        """
        before = self._heartbeats.folded(self.volatile)
        self.volatile = self._heartbeats.merged(before, batch.volatile)
        self._heartbeats.forget()
        self._heartbeats.forget_beats(proposed.event for proposed in batch.events)
        token = fencing_token(self._desk.state.recovery_number, first.index)
        effects = settled(batch.effects, token)
        self._carry_out(effects, first, batch.commands, batch.unrecorded)
        if self._dropped:  # what was to be parked would never be answered
            self._fail(batch, lambda: NotCoordinator(self._desk.leader_address))

    def _decide_again(self, batch: Batch) -> None:
        """Decide a batch again that every replica skipped, since the group had changed (S2).

        While this node leads, only this actor changes its group, so such a change is a defect.
        """
        if self._dropped:
            self._fail(batch, lambda: NotCoordinator(self._desk.leader_address))
            return
        logger.critical(
            "alarm: group %r changed while a batch of it was on its way, so every node skipped the "
            "batch, and it is decided again: nothing is lost, but please report it",
            self.group_id,
            extra=told(batch.commands),
        )
        self._inbox[:0] = batch.commands
        self._go_on()

    def _go_on(self) -> None:
        """End the batch, and decide all waiting commands before the actor may be dropped.

        If it were dropped in between, a second actor could have a batch of the same group.
        """
        self._batch, self._proposed = None, False
        waiting, self._inbox = self._inbox, []
        if self._dropped:
            return
        self._claim()
        for command in waiting:
            self._take(command)
        if self._batch is None:
            self._desk.idle(self.group_id)

    # --- settling ---

    def _carry_out(
        self,
        effects: Iterable[Effect],
        position: Position | None = None,
        commands: Iterable[Command] = (),
        unrecorded: Container[CallId] = (),
    ) -> None:
        served = self._served(commands)
        for effect in effects:
            if isinstance(effect, Answer):
                own = None if effect.call in unrecorded else position
                place = served.get(effect.call, own)
                self._desk.calls.answer(effect.call, Answered(effect.reply, place))
            elif not self._dropped:
                self._desk.carry_out(self.group_id, effect)
        self._desk.calls.decided(map(call_of, commands))

    def _served(self, commands: Iterable[Command]) -> dict[CallId, Position]:
        """Return where the log has the requests of these calls, by this or an earlier try (S14)."""
        places: dict[CallId, Position] = {}
        for command in commands:
            caller: Caller | None = getattr(command, "caller", None)
            if caller is None or not caller.call or not caller.request_id:
                continue
            key = RequestKey(caller.principal, self.group_id, caller.request_id)
            record = self._desk.state.requests.get(key)
            if record is not None:
                places[caller.call] = record.position
        return places

    def _fail(self, batch: Batch, error: Callable[[], Exception]) -> None:
        for command in batch.commands:
            self._desk.calls.fail(call_of(command), error())

    def _try_later(self, batch: Batch, seconds: float) -> None:
        """Retry later the commands that no caller repeats: deadlines, broken calls (S9)."""
        ours = [command for command in batch.commands if not call_of(command)]
        if ours and not self._dropped:
            self._retries += 1
            asyncio.get_running_loop().call_later(seconds, self._try_again, ours)

    def _try_again(self, commands: Iterable[Command]) -> None:
        self._retries -= 1
        for command in commands:
            if self._dropped:
                return
            if isinstance(command, InstallRegexes):  # other topics may match by now
                asked = (*command.in_vain, *(each.regex for each in command.resolved))
                self._desk.carry_out(self.group_id, ResolveRegexes(asked))
                self._desk.idle(self.group_id)
            else:
                self.submit(command)
