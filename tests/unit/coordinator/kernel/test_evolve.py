"""Evolve is total over what can be true, and says so when an event cannot be (S6)."""

from dataclasses import replace
from typing import get_args

import pytest

from harness.calls import Calls, P
from holdfast.coordinator.classic.transitions import TRANSITIONS
from holdfast.coordinator.consumer.transitions import ALLOWED
from holdfast.coordinator.kernel.evolve import evolve
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    Assigned,
    AssignmentStored,
    Cause,
    GenerationStarted,
    GroupEmptied,
    GroupEvent,
    MemberExpired,
    MemberJoined,
    MembersLeft,
    RebalanceStarted,
    Record,
    Rejoin,
    StaticMemberReplaced,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.member_profile import MemberProfile
from holdfast.coordinator.model.state import State

PROFILE = MemberProfile("c", "h", 1, 1, P)
JOINED = MemberJoined("m", "i9", PROFILE, "app", "")
REPLACED = StaticMemberReplaced("i1", "i1-1", "i1-x", PROFILE, "", 0)


def put(calls: Calls, event: GroupEvent, seq: int | None = None) -> State:
    """The state after an event that nobody decided."""
    state = calls.core.state
    record = Record(
        position=Position(state.applied_index + 1, 0),
        group_id="g",
        group_seq=calls.group.seq + 1 if seq is None else seq,
        log_time_ms=0,
        wall_time_ms=0,
        cause=Cause("", ""),
        principal="",
        request_id="",
        event=event,
    )
    return evolve(state, record)


@pytest.fixture
def preparing(calls: Calls) -> Calls:
    """Two static members, one of which has rejoined."""
    calls.stable("i1", "i2")
    calls.join("i1", "i1-1")
    return calls


@pytest.mark.parametrize(
    "event",
    [
        MemberExpired("ghost", "session"),
        MembersLeft(("i1-1", "i1-1"), ""),
        replace(JOINED, member_id="i1-1"),
        replace(JOINED, instance_id="i1"),
        replace(REPLACED, old_member_id="ghost"),
        replace(REPLACED, instance_id="i2"),
        replace(REPLACED, new_member_id="i2-1"),
        GroupEmptied(2),
        GenerationStarted(3, "p", "i1-1", (Rejoin("i1-1", ""),), ("i2-1",), ()),
        GenerationStarted(2, "p", "ghost", (Rejoin("i1-1", ""),), ("i2-1",), ()),
        GenerationStarted(2, "p", "i1-1", (Rejoin("i1-1", ""),), (), ()),
        GenerationStarted(2, "p", "i1-1", (Rejoin("i1-1", ""),), (), ("ghost",)),
        GenerationStarted(2, "p", "i2-1", (Rejoin("i1-1", ""),), (), ("i2-1",)),
        AssignmentStored(1, ()),
    ],
)
def test_what_cannot_be_true_is_refused(preparing: Calls, event: GroupEvent) -> None:
    with pytest.raises(InvariantBroken):
        put(preparing, event)


@pytest.mark.parametrize(
    "event", [AssignmentStored(2, ()), AssignmentStored(1, (Assigned("ghost", b""),))]
)
def test_an_assignment_is_for_this_generation_and_for_members(
    calls: Calls, event: GroupEvent
) -> None:
    calls.join("i1", fresh="i1-1")
    calls.core.advance(0)

    with pytest.raises(InvariantBroken, match="E5"):
        put(calls, event)


def test_s3_a_gap_in_the_sequence_is_seen(preparing: Calls) -> None:
    with pytest.raises(InvariantBroken, match="S3"):
        put(preparing, JOINED, seq=preparing.group.seq + 2)


def test_d10_an_abandoned_round_takes_the_assignments_with_it(calls: Calls) -> None:
    """While the join phase is open the last assignment shows; abandoned, it is gone (K-K2)."""
    calls.stable("i1", "i2")
    calls.join("i1", "i1-1")
    assert calls.member("i1-1").assignment == b"i1-1"
    calls.join("i2", "i2-1")
    assert calls.member("i1-1").assignment == b"i1-1", "while the new one is awaited"
    calls.join("i3")

    assert {member.assignment for member in calls.group.body.members.values()} == {b""}


def test_members_change_in_the_join_phase_only() -> None:
    """The table is literal, so that the diagrams tell what the code does."""
    states = {state for (state, event) in TRANSITIONS if event in {"MemberJoined", "MembersLeft"}}

    assert states == {"PreparingRebalance"}


def test_every_event_of_a_group_stands_in_the_table() -> None:
    named = {event for (_, event) in (*TRANSITIONS, *ALLOWED)}

    assert named == {each.__name__ for each in get_args(GroupEvent)}


@pytest.mark.parametrize("state", ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"])
def test_the_table_is_asserted(calls: Calls, state: str) -> None:
    """Each state refuses an event that the table does not have for it."""
    calls.join("i1", fresh="i1-1")
    if state != "PreparingRebalance":
        calls.core.advance(0)
    if state == "Stable":
        calls.sync("i1-1", {})
    if state == "Empty":
        calls.core.advance(100_000)
    assert calls.group.state == state
    wrong: GroupEvent = RebalanceStarted("", "", initial=False, timeout_ms=1)
    if state != "PreparingRebalance":
        wrong = MembersLeft((), "")

    with pytest.raises(InvariantBroken, match=state):
        put(calls, wrong)
