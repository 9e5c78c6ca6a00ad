"""The draft of one decision: a state that changes as events are chosen, and the effects.

A `Draft` lives inside one call of `decide`, so that the rules can be written as steps while
`decide` stays pure from outside. Events go through `evolve` at once, so each rule sees what the one
before it did. There are no rules here, only the ways to build a decision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from holdfast.coordinator.groups.group_type import GroupType, Rules
from holdfast.coordinator.model.effects import Answer, Arm, Cancel, Decision, Effect, Renew
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import Cause, Event, LevelRaised, Proposed, Record
from holdfast.coordinator.model.ids import (
    UNCOMMITTED,
    CallId,
    GroupId,
    MemberId,
    Position,
    Principal,
    RequestId,
)
from holdfast.coordinator.model.levels import VARYING, level_of
from holdfast.coordinator.model.replies import Reply
from holdfast.coordinator.model.state import Group, State
from holdfast.coordinator.model.usage import NOTHING, Usage
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey, Volatile
from holdfast.coordinator.structures.pmap import PMap

NOBODY: Final = 0
"""The call id of a call that nobody waits for."""


class Deferred(NamedTuple):
    """The rest of a command, on whose behalf it is done, and of which member."""

    member_id: MemberId
    command: str
    principal: Principal
    request_id: RequestId
    finish: Callable[[], None]


class Mark(NamedTuple):
    """A draft at one moment, to which it can go back."""

    state: State
    volatile: Volatile
    found: Group[Any] | None
    proposed: int
    effects: int
    deferred: tuple[Deferred, ...]


class Draft:
    """One decision under way.

    `state` is the replicated state with the draft's own events in it; their grants have the entry
    index `UNCOMMITTED` until the entry has one. `group_id` is "" for the cluster. `rules`: the
    fold, and the types of groups. `found`: the group as it is now, None if it does not exist.
    `used`: what the whole cluster takes, with what other groups have under way; `grown`: what of
    that this draft has added.
    """

    __slots__ = (
        "_command",
        "_principal",
        "_request_id",
        "deferred",
        "effects",
        "found",
        "group_id",
        "grown",
        "proposed",
        "rules",
        "state",
        "used",
        "volatile",
    )

    def __init__(
        self,
        state: State,
        volatile: Volatile,
        group_id: GroupId,
        rules: Rules,
        used: Usage = NOTHING,
    ) -> None:
        self.rules = rules
        self.used, self.grown = used, NOTHING
        self.state = state
        self.volatile = volatile
        self.group_id = group_id
        self.found = state.groups.get(group_id)
        self.proposed: list[Proposed] = []
        self.effects: list[Effect] = []
        self.deferred: list[Deferred] = []
        """What waits for the batch to close, so that it is done once for all its commands."""
        self.serve("")

    def serve(self, command: str, principal: Principal = "", request_id: RequestId = "") -> None:
        """Set the cause of the events that follow: this command of this caller."""
        self._command, self._principal, self._request_id = command, principal, request_id

    def defer(self, member_id: MemberId, finish: Callable[[], None]) -> None:
        """Have the command that is served, and that a member sent, finished as the batch closes."""
        told = self._command, self._principal, self._request_id
        self.deferred.append(Deferred(member_id, *told, finish))

    def close(self) -> None:
        """Finish what waits for the batch to close, in order."""
        served = self._command, self._principal, self._request_id
        waiting, self.deferred = self.deferred, []
        for _, command, principal, request_id, finish in waiting:
            self.serve(command, principal, request_id)
            finish()
        self.serve(*served)

    def settle(self, member_id: MemberId) -> None:
        """Finish what waits, if something of this member does: what follows comes after it."""
        if any(each.member_id == member_id for each in self.deferred):
            self.close()

    def decision(self) -> Decision:
        """Return what was chosen so far."""
        chosen = tuple(self.proposed)
        return Decision(chosen, self.volatile, tuple(self.effects), self.state, self.grown)

    def mark(self) -> Mark:
        """Remember this moment."""
        counts = len(self.proposed), len(self.effects)
        return Mark(self.state, self.volatile, self.found, *counts, tuple(self.deferred))

    def back_to(self, mark: Mark) -> None:
        """Forget what was chosen since; what waited then, and was finished since, waits again."""
        self.state, self.volatile, self.found = mark.state, mark.volatile, mark.found
        del self.proposed[mark.proposed :]
        del self.effects[mark.effects :]
        self.deferred = list(mark.deferred)

    @property
    def group(self) -> Group[Any]:
        """The group as it is now. Raises KeyError if it does not exist."""
        if self.found is None:
            raise KeyError(self.group_id)
        return self.found

    @property
    def group_type(self) -> GroupType[Draft]:
        """The type of the group. Raises KeyError if there is no group."""
        return self.rules.types[self.group.group_type]

    def emit(self, event: Event, rule: str) -> None:
        """Choose an event and let it take effect; `rule` is the id of the rule that chose it.

        Raises InvariantBroken for an event that the level in force does not hold; its decider must
        refuse the command (`levels.too_low`).
        """
        if type(event) in VARYING:
            self._check_level(event)
        before = self.found
        proposed = Proposed(event, Cause(rule, self._command), self._principal, self._request_id)
        self._fold(proposed, before)
        self.proposed.append(proposed)
        group = before or self.found
        if group is not None:
            follow = self.rules.types[group.group_type].follow
            self.volatile = follow(self.volatile, before, event)

    def _check_level(self, event: Event) -> None:
        """Keep off the log what a node at the level in force could not read (S3)."""
        if type(event) is not LevelRaised and level_of(event) > self.state.level:
            problem = f"{type(event).__name__} needs level {level_of(event)}"
            raise InvariantBroken("S3", f"{problem}, but level {self.state.level} is in force")

    def _fold(self, proposed: Proposed, before: Group[Any] | None) -> None:
        """Fold the event as every replica will, but for the index that is not known yet."""
        state = self.state
        seq = (before.seq if before else 0 if self.group_id else state.cluster_seq) + 1
        record = Record(
            Position(UNCOMMITTED, len(self.proposed)),
            self.group_id,
            seq,
            state.log_time_ms,
            0,
            proposed.cause,
            proposed.principal,
            proposed.request_id,
            proposed.event,
        )
        self.state = self.rules.evolve(state, record)
        if self.group_id:
            self.found = self.state.groups.get(self.group_id)
        else:
            self.state = self.state._replace(cluster_version=UNCOMMITTED, cluster_seq=seq)

    def answer(self, call: CallId, reply: Reply) -> None:
        """Answer a call; do nothing if no caller waits for it any more."""
        if call != NOBODY:
            self.effects.append(Answer(call, reply))

    def arm(self, key: DeadlineKey, after_ms: int) -> None:
        """Start a deadline, or start it over, with an arming number of its own (S9)."""
        volatile = self.volatile
        number = volatile.next_arming
        self.volatile = volatile._replace(
            armed=volatile.armed.set(key, number),
            renewals=_without_count(volatile, key),
            next_arming=number + 1,
        )
        self.effects.append(Arm(key, number, after_ms))

    def cancel(self, key: DeadlineKey) -> None:
        """Stop a deadline; do nothing if it does not run."""
        if key not in self.volatile.armed:
            return
        self.disarm(key)
        self.effects.append(Cancel(key))

    def disarm(self, key: DeadlineKey) -> None:
        """Note that a deadline does not run any more, because it fired."""
        volatile = self.volatile
        self.volatile = volatile._replace(
            armed=volatile.armed.remove(key), renewals=_without_count(volatile, key)
        )

    def renew(self, member_id: MemberId) -> None:
        """Restart a member's session, because it was heard; a suspended one stays so (K-A23)."""
        if DeadlineKey(SESSION, member_id) not in self.volatile.armed:
            return
        count = self.volatile.renewals.get(member_id, 0) + 1
        renewals = self.volatile.renewals.set(member_id, count)
        self.volatile = self.volatile._replace(renewals=renewals)
        self.effects.append(Renew(member_id, self.group_type.session_ms(self, member_id), count))

    def blank(self) -> None:
        """Forget all that was kept of a group that does not exist; arming numbers continue."""
        for key in tuple(self.volatile.armed):
            self.cancel(key)
        self.volatile = Volatile(next_arming=self.volatile.next_arming)

    def arm_session(self, member_id: MemberId) -> None:
        """Start a member's session, in full."""
        self.arm(DeadlineKey(SESSION, member_id), self.group_type.session_ms(self, member_id))


def _without_count(volatile: Volatile, key: DeadlineKey) -> PMap[MemberId, int]:
    if key.kind == SESSION and key.member_id in volatile.renewals:
        return volatile.renewals.remove(key.member_id)
    return volatile.renewals
