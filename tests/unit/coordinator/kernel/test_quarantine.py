"""One bad event must not stop all three nodes (S6)."""

from __future__ import annotations

import pytest

from holdfast.coordinator.kernel.apply import apply_entry, replay
from holdfast.coordinator.kernel.decide import decide, on_leading
from holdfast.coordinator.model.commands import Caller, DeleteGroup, Heartbeat
from holdfast.coordinator.model.effects import Answer
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    Cause,
    ClusterFormed,
    Event,
    GroupCreated,
    GroupDeleted,
    GroupEmptied,
    LogEntry,
    MemberJoined,
    Part,
    Proposed,
    RebalanceStarted,
    Record,
)
from holdfast.coordinator.model.member_profile import MemberProfile
from holdfast.coordinator.model.rejections import UnknownServerError
from holdfast.coordinator.model.replies import HeartbeatReply
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.volatile import Volatile


def entry(*parts: tuple[str, int, Event]) -> LogEntry:
    cause = Cause("test", "test")
    made = [Part(group, 1, version, (Proposed(event, cause),)) for group, version, event in parts]
    return LogEntry(1, 1, tuple(made))


def formed() -> State:
    return apply_entry(State(), 1, 1, entry(("", 0, ClusterFormed("c", ())))).state


def with_bad_event() -> State:
    """Group g is empty already, so it cannot become so again; h shares the entry."""
    state = apply_entry(formed(), 2, 1, entry(("g", 0, GroupCreated()))).state
    applied = apply_entry(state, 3, 1, entry(("g", 2, GroupEmptied(1)), ("h", 0, GroupCreated())))
    assert [(skip.group_id, skip.rule) for skip in applied.skipped] == [("g", "S6")]
    return applied.state


def test_s6_the_group_is_quarantined_and_its_neighbours_go_on() -> None:
    state = with_bad_event()

    assert "entry 3" in state.groups["g"].quarantined
    assert not state.groups["h"].quarantined
    assert state.applied_index == 3


def test_a_bad_event_for_a_group_that_is_not_there_quarantines_it_too() -> None:
    state = apply_entry(formed(), 2, 1, entry(("g", 0, GroupEmptied(1)))).state

    assert state.groups["g"].quarantined


def test_members_of_a_quarantined_group_are_told_and_nothing_is_decided() -> None:
    state = with_bad_event()
    beat = Heartbeat(Caller(7), "g", 0, "m", None)
    decision = decide(state, Volatile(), beat)

    (effect,) = decision.effects
    assert isinstance(effect, Answer)
    assert isinstance(effect.reply, HeartbeatReply)
    assert isinstance(effect.reply.error, UnknownServerError)
    assert "delete it" in effect.reply.error.problem
    assert decision.events == ()
    assert on_leading(state, "g").effects == ()


def test_an_operator_ends_it_by_deleting_the_group() -> None:
    state = with_bad_event()
    decision = decide(state, Volatile(), DeleteGroup(Caller(7), "g"))
    part = Part("g", 1, state.version_of("g"), decision.events)
    after = apply_entry(state, 4, 1, LogEntry(1, 1, (part,)))

    assert after.skipped == ()
    assert "g" not in after.state.groups


def deleted(state: State, group_id: str = "g") -> tuple[Cause, ...]:
    """The causes of what deletes a group."""
    events = decide(state, Volatile(), DeleteGroup(Caller(7), group_id)).events
    return tuple(each.cause for each in events if isinstance(each.event, GroupDeleted))


def test_s6_a_deletion_that_ends_a_quarantine_says_so_in_its_cause() -> None:
    assert deleted(with_bad_event()) == (Cause("S6", "DeleteGroup"),)
    assert deleted(with_bad_event(), "h") == (Cause("K10", "DeleteGroup"),)


JOINING = (
    GroupCreated(),
    RebalanceStarted("first join", "", initial=True, timeout_ms=15_000),
    MemberJoined("m", None, MemberProfile("", "", 10_000, 15_000, ()), "consumer", "r"),
)


def with_members() -> tuple[State, list[Record]]:
    """Group g, with a member in its join phase, is quarantined and then deleted; its records."""
    cause = Cause("test", "test")
    part = Part("g", 1, 0, tuple(Proposed(event, cause) for event in JOINING))
    joined = apply_entry(formed(), 2, 1, LogEntry(1, 1, (part,)))
    bad = apply_entry(joined.state, 3, 1, entry(("g", 2, GroupCreated()))).state
    assert bad.groups["g"].quarantined
    events = decide(bad, Volatile(), DeleteGroup(Caller(7), "g")).events
    ended = apply_entry(bad, 4, 1, LogEntry(1, 1, (Part("g", 1, 3, events),)))
    assert ended.skipped == ()
    return ended.state, [*joined.records, *ended.records]


def test_s24_records_behind_the_end_of_a_quarantine_are_folded() -> None:
    """No record tells of the quarantine: by its cause a fold knows why a member did not matter."""
    state, records = with_members()
    assert replay(formed(), records) == state

    unsaid = [record._replace(cause=Cause("K10", "DeleteGroup")) for record in records]
    with pytest.raises(InvariantBroken):
        replay(formed(), unsaid)


def test_s24_so_are_those_of_a_group_whose_first_event_was_bad() -> None:
    state = apply_entry(formed(), 2, 1, entry(("g", 0, GroupEmptied(1)))).state
    events = decide(state, Volatile(), DeleteGroup(Caller(7), "g")).events
    ended = apply_entry(state, 3, 1, LogEntry(1, 1, (Part("g", 1, 2, events),)))

    assert ended.records
    assert replay(formed(), ended.records) == ended.state
