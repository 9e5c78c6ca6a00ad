"""The static swap (KIP-345): exact events, what a retry is told, who may still run (S12, S14)."""

import pytest

from harness.calls import REBALANCE_MS, SESSION_MS, Calls, P
from holdfast.coordinator.classic.evolve import REPLACED_REQUESTS_MAX
from holdfast.coordinator.model.events import (
    MemberExpired,
    RebalanceStarted,
    StaticMemberReplaced,
)
from holdfast.coordinator.model.member_profile import MemberProfile, Protocol
from holdfast.coordinator.model.rejections import FencedInstanceId
from holdfast.coordinator.model.volatile import SESSION, SYNC, DeadlineKey


def test_b3_a_swap_is_one_event_and_nothing_moves(calls: Calls) -> None:
    calls.stable("i1", "i2")

    events = calls.join("i2", fresh="i2-x", request_id="r2", client_id="new")

    assert events == (
        StaticMemberReplaced(
            instance_id="i2",
            old_member_id="i2-1",
            new_member_id="i2-x",
            profile=MemberProfile("new", "127.0.0.1", SESSION_MS, REBALANCE_MS, P),
            request_id="r2",
            predecessor_ms=SESSION_MS,
        ),
    )
    member = calls.member("i2-x")
    assert (member.assignment, member.joined_seq) == (b"i2-1", 4)
    assert member.profile.client_id == "new", "B10 bettered"
    assert calls.group.generation == 1


def test_s14_a_frozen_process_that_repeats_its_join_takes_nothing_back(calls: Calls) -> None:
    """Its join was done once, and another process has replaced what it made: it is fenced."""
    calls.stable("i1", "i2")
    calls.join("i2", fresh="i2-x", request_id="first")
    calls.join("i2", fresh="i2-y", request_id="second")
    calls.join("i2", fresh="i2-z", request_id="third")

    for repeated in ("first", "second"):
        assert calls.join("i2", fresh="i2-again", request_id=repeated) == ()
        error = calls.joined().error
        assert isinstance(error, FencedInstanceId)
        assert error.holder == "i2-z"


def test_s14_what_was_replaced_is_remembered_within_bounds(calls: Calls) -> None:
    """A member that is restarted for ever does not grow."""
    calls.stable("i1", "i2")
    for number in range(100):
        calls.join("i2", fresh=f"i2-{number}-x", request_id=f"r{number}")

    replaced = calls.member("i2-99-x").replaced_requests
    assert replaced == tuple(f"r{number}" for number in range(99))[-REPLACED_REQUESTS_MAX:]


def test_s13_the_token_of_a_swap_is_the_index_of_its_entry(calls: Calls) -> None:
    calls.stable("i1")
    calls.join("i1", fresh="i1-x")

    assert calls.joined().grant.fencing_token == calls.core.state.applied_index
    before = calls.joined().grant.fencing_token
    calls.sync("i1-x")
    assert calls.synced().grant.fencing_token == before, "a sync grants nothing"


def test_b4_a_swapped_leader_leads_on_and_skips_the_assignment(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.join("i1", fresh="i1-x")

    reply = calls.joined()
    assert (reply.leader, reply.skip_assignment) == ("i1-x", True)
    assert {line.member_id for line in reply.members} == {"i1-x", "i2-1"}


def test_b20_bettered_the_sync_timer_forgets_the_old_id(calls: Calls) -> None:
    """The old id owed a sync; the swap takes that away, and nobody is expelled when time is up."""
    for instance_id in ("i1", "i2"):
        calls.join(instance_id, fresh=f"{instance_id}-1", session_ms=60_000)
    calls.core.advance(0)
    calls.sync("i1-1", {"i1-1": b"", "i2-1": b""})
    assert "i2-1" in calls.volatile.awaiting_sync

    calls.join("i2", fresh="i2-x", session_ms=60_000)

    assert not calls.volatile.awaiting_sync
    assert DeadlineKey(SYNC) not in calls.volatile.armed
    assert calls.core.advance(REBALANCE_MS) == ()


def test_b11_the_parked_join_of_the_old_process_is_fenced(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.join("i2", "i2-1", protocols=(Protocol("p", b"x"),))
    old = calls.last
    calls.join("i2", fresh="i2-x")

    assert isinstance(calls.joined(old).error, FencedInstanceId)
    assert calls.joined(old).member_id == "i2-1"
    assert calls.reply() is None, "the new one is parked"


def test_b12_a_swap_while_the_assignment_is_awaited_starts_over(calls: Calls) -> None:
    calls.join("i1", fresh="i1-1")
    calls.join("i2", fresh="i2-1")
    calls.core.advance(0)
    calls.sync("i2-1")
    waiting = calls.last

    events = calls.join("i2", fresh="i2-x")

    assert [type(event).__name__ for event in events] == [
        "StaticMemberReplaced",
        "RebalanceStarted",
    ]
    assert isinstance(calls.synced(waiting).error, FencedInstanceId)


def test_b8_a_swap_that_changes_the_vote_starts_a_rebalance(calls: Calls) -> None:
    both = (Protocol("p", b""), Protocol("q", b""))
    calls.join("i1", fresh="i1-1", protocols=both)
    calls.join("i2", fresh="i2-1", protocols=both)
    calls.core.advance(0)
    calls.sync("i2-1")
    calls.sync("i1-1", {})

    events = calls.join("i2", protocols=(Protocol("q", b""),))

    assert isinstance(events[1], RebalanceStarted)


def test_b6_other_bytes_of_an_opaque_type_change_nothing(calls: Calls) -> None:
    calls.stable("i1", "i2")

    assert len(calls.join("i2", protocols=(Protocol("p", b"other"),))) == 1


@pytest.mark.parametrize(("instance_id", "events"), [("i2", 2), ("i1", 1)])
def test_b6_bettered_a_followers_new_topics_start_a_rebalance(
    calls: Calls, instance_id: str, events: int
) -> None:
    """A leader sees all subscriptions in its answer, and asks for a rebalance itself (KIP-814)."""
    one = (Protocol("p", b"t", ("t",)),)
    for each in ("i1", "i2"):
        calls.join(each, fresh=f"{each}-1", protocol_type="consumer", protocols=one)
    calls.core.advance(0)
    calls.sync("i2-1", protocol_type="consumer")
    calls.sync("i1-1", {}, protocol_type="consumer")

    two = (Protocol("p", b"tu", ("t", "u")),)
    assert len(calls.join(instance_id, protocol_type="consumer", protocols=two)) == events


def test_b9_bettered_the_new_session_counts_from_the_swap(calls: Calls) -> None:
    calls.stable("i1", session_ms=30_000)
    calls.join("i1", fresh="i1-x", session_ms=6_000)

    assert calls.core.advance(5_999) == ()
    assert MemberExpired("i1-x", SESSION) in calls.core.advance(1)


def test_s12_who_was_granted_nothing_leaves_no_predecessor(calls: Calls) -> None:
    calls.join("i1", fresh="i1-1")
    calls.join("i1", fresh="i1-x")

    assert calls.member("i1-x").predecessor_ms == 0


# --- S14 ---


def test_s14_a_retried_swap_finds_its_member_and_starts_nothing(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.join("i2", fresh="i2-x", request_id="r")

    assert calls.join("i2", fresh="i2-y", request_id="r") == ()
    assert calls.joined().member_id == "i2-x"


def test_s14_the_same_id_with_other_protocols_is_no_retry(calls: Calls) -> None:
    """Found by random calls: it changed what a member speaks under a running generation."""
    calls.stable("i1", "i2")
    calls.join("i2", fresh="i2-x", request_id="r")

    both = (Protocol("q", b""), Protocol("p", b""))
    events = calls.join("i2", fresh="i2-y", request_id="r", protocols=both)
    assert [type(event) for event in events] == [StaticMemberReplaced]


def test_s14_a_retried_leader_swap_is_told_the_same(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.join("i1", fresh="i1-x", request_id="r")
    first = calls.joined()
    calls.join("i1", fresh="i1-y", request_id="r")

    assert calls.joined() == first


def test_s14_a_retry_of_a_released_life_is_a_new_life(calls: Calls) -> None:
    """Its id is fenced for ever, so the same request cannot have it back."""
    calls.stable("i1")
    calls.join("i1", fresh="i1-x", request_id="r")
    calls.heartbeat("i1-x", release=True)

    assert len(calls.join("i1", fresh="i1-y", request_id="r")) == 1
    assert calls.joined().member_id == "i1-y"


def test_s14_generations_carry_the_request_ids_they_serve(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.join("i1", "i1-1", request_id="r8")
    calls.join("i2", "i2-1", request_id="r9")

    assert calls.member("i1-1").request_id == "r8"
    assert calls.member("i2-1").request_id == "r9"


def test_s14_a_retried_leader_join_does_not_rebalance_twice(calls: Calls) -> None:
    calls.stable("i1")
    calls.join("i1", "i1-1", request_id="r8")
    calls.sync("i1-1", {"i1-1": b""})

    assert calls.join("i1", "i1-1", request_id="r8") == ()
    assert calls.joined().generation == 2
