"""A desk: one node's core without the node. It decides, keeps the records, and applies them again.

Every test that uses it ends with the same proof: the records replayed from nothing, and from a
stored and restored snapshot at every cut, give the same state, and no state on the way breaks an
invariant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.kernel import invariants
from holdfast.coordinator.kernel.apply import apply_entry, replay
from holdfast.coordinator.kernel.decide import decide_all, new_draft
from holdfast.coordinator.model.commands import Command
from holdfast.coordinator.model.events import (
    Assigned,
    AssignmentStored,
    Cause,
    Event,
    GenerationStarted,
    GroupCreated,
    LogEntry,
    MemberJoined,
    Part,
    Proposed,
    RebalanceStarted,
    Record,
    Rejoin,
    TopicsCreated,
    TopicSize,
)
from holdfast.coordinator.model.member_profile import MemberProfile, Protocol
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey, Volatile
from holdfast.storage.codec.state_image import changes, restore

C = TypeVar("C")
R = TypeVar("R")


def member(
    member_id: str, *topics: str, instance_id: str | None = None, kind: str = "consumer"
) -> MemberJoined:
    """A member with one protocol `p`; its topics are known for the kind `consumer` only."""
    protocol = Protocol("p", b"meta-" + member_id.encode(), topics if kind == "consumer" else None)
    profile = MemberProfile("client", "host", 10_000, 60_000, (protocol,))
    return MemberJoined(member_id, instance_id, profile, kind, "")


class Desk:
    """State, leader-local part and records of a cluster in the hands of a test."""

    def __init__(self) -> None:
        self.state = State()
        self.volatile = Volatile()
        self.records: list[Record] = []
        self.states: list[State] = [self.state]
        self.index = 0

    def happened(self, group_id: str, *events: Event, at_ms: int | None = None) -> None:
        """An entry of these events is on the log."""
        cause = Cause("test", "test")
        self._apply(group_id, tuple(Proposed(event, cause) for event in events), at_ms)

    def topics(self, **sizes: int) -> None:
        """Topics exist."""
        sized = tuple(TopicSize(name, size) for name, size in sizes.items())
        self.happened("", TopicsCreated(sized))

    def stable_group(self, group_id: str, *members: MemberJoined) -> None:
        """A group of these members, in generation 1, with an assignment and armed sessions."""
        self.rebalancing_group(group_id, *members)
        assigned = tuple(Assigned(m.member_id, b"work") for m in members)
        self.completing(group_id)
        self.happened(group_id, AssignmentStored(1, assigned))
        armed = {DeadlineKey(SESSION, m.member_id): at for at, m in enumerate(members, 1)}
        self.volatile = self.volatile._replace(armed=self.volatile.armed.update_all(armed.items()))

    def rebalancing_group(self, group_id: str, *members: MemberJoined) -> None:
        """A group in its first join phase."""
        opened = RebalanceStarted("first", "", initial=True, timeout_ms=3_000)
        self.happened(group_id, GroupCreated(), opened, *members)

    def completing(self, group_id: str) -> None:
        """The join phase closed; everybody rejoined."""
        group = self.state.groups[group_id]
        names = sorted(group.body.members)
        rejoined = tuple(Rejoin(name, "") for name in names)
        started = GenerationStarted(group.generation + 1, "p", names[0], rejoined, (), ())
        self.happened(group_id, started)

    def decide(
        self,
        rule: Callable[[Draft, C], R],
        command: C,
        group_id: str = "",
        principal: str = "",
    ) -> tuple[R, tuple[Event, ...]]:
        """Run one decider; its events go to the log at once. Gives its answer and its events."""
        draft = new_draft(self.state, self.volatile, group_id)
        draft.serve(type(command).__name__, principal)
        answer = rule(draft, command)
        decision = draft.decision()
        self.volatile = decision.volatile
        self._apply(group_id, decision.events, None)
        return answer, tuple(proposed.event for proposed in decision.events)

    def decide_all(self, group_id: str, *commands: Command) -> tuple[Event, ...]:
        """Decide a batch of commands of one group; its events go to the log in one part."""
        decision = decide_all(self.state, self.volatile, group_id, commands)
        self.volatile = decision.volatile
        self._apply(group_id, decision.events, None)
        return tuple(proposed.event for proposed in decision.events)

    def later(self, by_ms: int) -> int:
        """Log time goes on, by an entry that changes nothing else. Gives the new log time."""
        self.happened("", TopicsCreated(()), at_ms=self.state.log_time_ms + by_ms)
        return self.state.log_time_ms

    def _apply(self, group_id: str, events: tuple[Proposed, ...], at_ms: int | None) -> None:
        if not events:
            return
        self.index += 1
        log_time_ms = self.state.log_time_ms if at_ms is None else at_ms
        part = Part(group_id, 1, self.state.version_of(group_id), events)
        applied = apply_entry(self.state, self.index, 1, LogEntry(log_time_ms, 0, (part,)))
        assert applied.skipped == ()
        state = self.state
        for record in applied.records:
            state = replay(state, (record,))
            assert invariants.check(state) == []
            self.records.append(record)
            self.states.append(state)
        assert state == applied.state, "applied and replayed, the state differs"
        self.state = state

    def prove(self) -> None:
        """Replay the records, from scratch and from a restored snapshot at every cut."""
        for cut, snapshot in enumerate(self.states[:-1]):
            stored = (change.content for change in changes(State(), snapshot))
            state = restore(content for content in stored if content is not None)
            state = replay(state, tuple(self.records[cut:]))
            assert state == self.states[-1], f"replayed from record {cut} on, the state differs"
