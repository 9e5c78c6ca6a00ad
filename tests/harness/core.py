"""A whole coordinator in one object: the core, a log that always commits, and a virtual clock.

What a node does with the core is here in its simplest form: decide, put the events into an entry,
apply it, adopt the leader-local part, carry out the effects. After every entry the invariants of
the state are checked, and what the table of members tells of it; the log is kept, so that a test
can replay it from any cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness import regexes
from harness.members import contradictions
from holdfast.coordinator.consumer.assignors import ASSIGNORS
from holdfast.coordinator.groups import usage
from holdfast.coordinator.groups.draft import NOBODY
from holdfast.coordinator.kernel import invariants
from holdfast.coordinator.kernel.apply import apply_entry, replay
from holdfast.coordinator.kernel.decide import decide, group_of, on_leading
from holdfast.coordinator.kernel.group_types import TYPES
from holdfast.coordinator.kernel.queries import newest_topic
from holdfast.coordinator.model.commands import Command, DeadlineFired
from holdfast.coordinator.model.consumer_events import MemberTarget, ResolvedRegex
from holdfast.coordinator.model.effects import (
    Answer,
    ComputeTarget,
    Decision,
    InstallRegexes,
    InstallTarget,
    ResolveRegexes,
    settled,
)
from holdfast.coordinator.model.events import Event, LogEntry, Part, Record
from holdfast.coordinator.model.ids import CallId, GroupId, fencing_token
from holdfast.coordinator.model.rejections import NotCoordinator
from holdfast.coordinator.model.replies import JoinReply, Reply, SyncReply
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.usage import NOTHING, Usage
from holdfast.coordinator.model.volatile import Volatile
from holdfast.coordinator.projections.history import Histories
from holdfast.coordinator.projections.rebalances import followed
from holdfast.coordinator.structures.pmap import PMap
from holdfast.runtime.groups.tally import Tally
from holdfast.runtime.time.deadline_table import DeadlineTable

REPLAYS_MAX = 80
"""Cuts that a replay check tries at most; a longer log is cut at equal distances."""


@dataclass
class Applied:
    """An entry as it was applied: what a replay has to bring about again."""

    index: int
    term: int
    entry: LogEntry
    before: State
    after: State
    records: tuple[Record, ...]
    told: Histories
    """The rebalance histories before it."""


@dataclass
class Core:
    """One leader that never loses a proposal."""

    state: State = field(default_factory=State)
    histories: Histories = field(default_factory=PMap)
    volatile: dict[GroupId, Volatile] = field(default_factory=dict)
    deadlines: DeadlineTable = field(default_factory=DeadlineTable)
    log: list[Applied] = field(default_factory=list)
    answers: dict[CallId, Reply] = field(default_factory=dict)
    parked: set[CallId] = field(default_factory=set)
    tally: Tally = field(default_factory=Tally)
    unresolved: deque[tuple[GroupId, ResolveRegexes]] = field(default_factory=deque)
    """Regular expressions that are looked up as soon as time passes: in the background (K-P1)."""
    uncomputed: deque[tuple[int, GroupId, ComputeTarget]] = field(default_factory=deque)
    """Targets that are computed beside the groups' work, each with the time when it will be."""
    compute_ms: int = 7
    """How long that takes."""
    now_ms: int = 0
    term: int = 1

    def submit(self, command: Command) -> tuple[Event, ...]:
        """Decide a command, commit and apply what came of it; the events, for the test to see."""
        group_id = group_of(command)
        volatile = self.volatile.get(group_id, Volatile())
        caller = getattr(command, "caller", None)
        if caller is not None:
            self.parked.add(caller.call)
        used = self.used()
        decision = decide(self.state, volatile, command, self.now_ms, used)
        again = decide(self.state, volatile, command, self.now_ms, used)
        assert again == decision, "decide is not a function"
        events = self._adopt(group_id, decision)
        self._check_deadlines()
        return events

    def used(self) -> Usage:
        """What the state takes up, as a leader keeps it; equal to a count of the whole state."""
        used = self.tally.used(self.state)
        handed_out = sum(len(each.pending) for each in self.volatile.values())
        pending = Usage(members=handed_out, state_bytes=handed_out * usage.PENDING_BYTES)
        assert used == usage.of(self.state, TYPES).plus(pending), "the tally has gone astray"
        return used

    def _adopt(self, group_id: GroupId, decision: Decision) -> tuple[Event, ...]:
        if decision.events:
            self._commit(group_id, decision)
        self.volatile[group_id] = decision.volatile
        self.tally.claim(group_id, NOTHING, len(decision.volatile.pending))
        token = fencing_token(self.state.recovery_number, self.state.applied_index)
        for effect in settled(decision.effects, token):
            if isinstance(effect, Answer):
                self._answer(effect)
            elif isinstance(effect, ResolveRegexes):
                self.unresolved.append((group_id, effect))
            elif isinstance(effect, ComputeTarget):
                others = [each for each in self.uncomputed if each[1] != group_id]
                made = (self.now_ms + self.compute_ms, group_id, effect)
                self.uncomputed = deque([*others, made])
            else:
                self.deadlines.carry_out(group_id, effect, self.now_ms)
        self._check_leader_local(group_id)
        return tuple(proposed.event for proposed in decision.events)

    def _commit(self, group_id: GroupId, decision: Decision) -> None:
        part = Part(group_id, self.term, self.state.version_of(group_id), decision.events)
        entry = LogEntry(self.now_ms, self.now_ms, (part,))
        index = self.state.applied_index + 1
        applied = apply_entry(self.state, index, self.term, entry)
        assert not applied.skipped
        made = Applied(
            index, self.term, entry, self.state, applied.state, applied.records, self.histories
        )
        self.log.append(made)
        self.histories = followed(self.histories, TYPES, applied.steps)
        assert contradictions(self.state, applied.records) == []
        self.state = applied.state
        assert invariants.check(self.state) == []

    def _answer(self, answer: Answer) -> None:
        assert answer.call in self.parked, f"call {answer.call} is answered twice or unasked"
        self.parked.remove(answer.call)
        self.answers[answer.call] = answer.reply

    def _check_leader_local(self, group_id: GroupId) -> None:
        """What is kept beside the state speaks of members that are there (S16)."""
        volatile, group = self.volatile[group_id], self.state.groups.get(group_id)
        members = group.body.members if group else {}
        of_classic = (volatile.joins, volatile.syncs, volatile.awaiting_sync)
        of_consumer = (volatile.confirmed, volatile.beats, volatile.lowered)
        for kept in (*of_classic, volatile.renewals, *of_consumer):
            assert set(kept) <= set(members)
        sessions = {key.member_id for key in volatile.armed if key.kind == "session"}
        waiting = {m for m, join in volatile.joins.items() if join.call} | set(volatile.syncs)
        assert sessions == set(members) - waiting, "a session runs just if nothing is parked (A23)"

    def _check_deadlines(self) -> None:
        """The table holds as many deadlines as are armed (S9)."""
        assert len(self.deadlines) == sum(len(each.armed) for each in self.volatile.values())

    def advance(self, by_ms: int) -> tuple[Event, ...]:
        """Let time pass; what falls due fires at its moment."""
        events: list[Event] = []
        while self.unresolved:
            events.extend(self._resolve(*self.unresolved.popleft()))
        end_ms = self.now_ms + by_ms
        while self.uncomputed and self.uncomputed[0][0] <= end_ms:
            at_ms, group_id, asked = self.uncomputed.popleft()
            events.extend(self._pass_to(at_ms))
            events.extend(self._compute(group_id, asked))
        events.extend(self._pass_to(end_ms))
        return tuple(events)

    def _pass_to(self, end_ms: int) -> list[Event]:
        """Let time pass up to a moment, but for the work beside the groups'."""
        events: list[Event] = []
        while (at_ms := self.deadlines.next_due_ms()) is not None and at_ms <= end_ms:
            self.now_ms = max(self.now_ms, at_ms)
            due = deque(self.deadlines.due(self.now_ms))
            while due:
                fired = due.popleft()
                command = DeadlineFired(fired.group_id, fired.key, fired.arming, fired.renewals)
                events.extend(self._fire(command))
            self._check_deadlines()
        self.now_ms = end_ms
        return events

    def _compute(self, group_id: GroupId, asked: ComputeTarget) -> tuple[Event, ...]:
        """Do as a node does: compute a target, and tell the group what it is."""
        found = ASSIGNORS[asked.assignor](asked.spec, asked.sizes)
        targets = tuple(MemberTarget(*each) for each in sorted(found.items()) if each[1])
        return self.submit(InstallTarget(group_id, asked.epoch, asked.assignor, targets))

    def _resolve(self, group_id: GroupId, asked: ResolveRegexes) -> tuple[Event, ...]:
        """Do as a node does: look the topics up, and tell the group what was found."""
        topics = tuple(self.state.topics)
        found = (ResolvedRegex(each, regexes.matched(each, topics)) for each in asked.regexes)
        seen = (newest_topic(self.state), self.state.applied_index)
        return self.submit(InstallRegexes(group_id, tuple(found), *seen))

    def _fire(self, command: DeadlineFired) -> tuple[Event, ...]:
        group_id = command.group_id
        decision = decide(self.state, self.volatile[group_id], command, self.now_ms)
        return self._adopt(group_id, decision)

    def fail_over(self) -> None:
        """Another leader: what is not on the log is gone, parked calls end (K-L16, S16)."""
        for volatile in self.volatile.values():
            for answer in _dismissed(volatile):
                self._answer(answer)
        self.volatile.clear()
        self.tally.clear()
        self.deadlines.clear()
        self.unresolved.clear()
        self.uncomputed.clear()
        self.term += 1
        for group_id in self.state.groups:
            self._adopt(group_id, on_leading(self.state, group_id))

    def check_replays(self) -> None:
        """The log, replayed from scratch and from each cut, gives the same states and histories.

        A replay from a cut comes to what was there at the next; from then on it is the replay from
        that one, which would make the checks of a long log quadratic. From scratch, and from the
        middle, it goes on to the end: a state that a replay has made bears all that follows.
        """
        step = max(1, len(self.log) // REPLAYS_MAX)
        cuts = range(0, len(self.log), step)
        for cut in cuts:
            self._check_replay(cut, min(cut + step, len(self.log)))
        for cut in {*cuts[:1], *cuts[len(cuts) // 2 :][:1]}:
            self._check_replay(cut, len(self.log))

    def _check_replay(self, cut: int, end: int) -> None:
        state = by_records = self.log[cut].before
        told = self.log[cut].told
        for applied in self.log[cut:end]:
            again = apply_entry(state, applied.index, applied.term, applied.entry)
            assert (again.records, again.skipped) == (applied.records, ())
            state = again.state
            told = followed(told, TYPES, again.steps)
            by_records = replay(by_records, applied.records)
        last = end == len(self.log)
        assert state == by_records == (self.state if last else self.log[end].before)
        assert told == (self.histories if last else self.log[end].told)


def _dismissed(volatile: Volatile) -> Iterator[Answer]:
    """What a node tells the parked calls of a group when it leads no more (K-L16, S5)."""
    for member_id, join in volatile.joins.items():
        if join.call != NOBODY:
            yield Answer(join.call, JoinReply(NotCoordinator(), member_id=member_id))
    for sync in volatile.syncs.values():
        yield Answer(sync.call, SyncReply(NotCoordinator()))
