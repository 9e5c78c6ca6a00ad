"""Heartbeats: what they are told and renew (F, S9), and the one that announces a restart (S12)."""

from harness.calls import Calls
from holdfast.coordinator.model.commands import DeadlineFired, LeavingMember
from holdfast.coordinator.model.events import InstanceReleased, MemberExpired
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.rejections import (
    FencedInstanceId,
    IllegalGeneration,
    InvalidRequest,
    RebalanceInProgress,
    UnknownMemberId,
)
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey


def test_f_heartbeats_by_state(calls: Calls) -> None:
    calls.join("i1", fresh="i1-1")
    calls.core.advance(0)
    calls.heartbeat("i1-1")
    assert calls.beat().error is None, "F6: while the assignment is awaited"
    calls.heartbeat("i1-1", generation=0)
    assert calls.beat().error == IllegalGeneration(0, 1)
    calls.heartbeat("ghost")
    assert calls.beat().error == UnknownMemberId("ghost")
    calls.sync("i1-1", {})
    calls.join("i2")
    calls.heartbeat("i1-1")
    assert calls.beat().error == RebalanceInProgress(), "F5"


def test_f5_a_heartbeat_in_the_join_phase_renews(calls: Calls) -> None:
    calls.stable("i1")
    calls.join("i2")
    calls.core.advance(9_000)
    calls.heartbeat("i1-1")

    assert calls.core.advance(5_999) == (), "expired at 10 s otherwise; the join phase ends at 15 s"


def test_a_heartbeat_is_never_on_the_log(calls: Calls) -> None:
    calls.stable("i1")
    index = calls.core.state.applied_index

    for _ in range(3):
        assert calls.heartbeat("i1-1", instance_id="i1") == ()
    assert calls.core.state.applied_index == index


def test_a_parked_member_heartbeats_and_its_session_stays_suspended(calls: Calls) -> None:
    """A heartbeat must not put a session under a member that is waiting for us (K-A23)."""
    calls.stable("i1", "i2", session_ms=6_000, rebalance_ms=60_000)
    calls.join("i1", "i1-1", session_ms=6_000, rebalance_ms=60_000)
    calls.heartbeat("i1-1")

    assert DeadlineKey(SESSION, "i1-1") not in calls.volatile.armed


# --- S9 ---


def test_s9_a_heartbeat_beats_an_expiry_that_has_fired_already(calls: Calls) -> None:
    calls.stable("i1")
    calls.heartbeat("i1-1")

    assert calls.fire(SESSION, "i1-1", renewals=0) == ()
    key = DeadlineKey(SESSION, "i1-1")
    assert key in calls.volatile.armed, "dropped, and armed again: else it lives for ever"
    assert calls.core.advance(9_999) == ()
    assert MemberExpired("i1-1", SESSION) in calls.core.advance(1)


def test_s9_an_old_arming_number_counts_for_nothing(calls: Calls) -> None:
    calls.stable("i1")
    key = DeadlineKey(SESSION, "i1-1")
    before = calls.volatile

    assert calls.submit(DeadlineFired("g", key, before.armed[key] - 1, 0)) == ()
    assert calls.volatile == before


# --- S12 ---


def test_s12_a_release_fences_the_id_and_nothing_else(calls: Calls) -> None:
    calls.stable("i1", "i2")

    assert calls.heartbeat("i2-1", instance_id="i2", release=True) == (
        InstanceReleased("i2", "i2-1"),
    )
    assert calls.beat().error is None
    calls.heartbeat("i2-1", instance_id="i2")
    assert isinstance(calls.beat().error, FencedInstanceId)
    calls.heartbeat("i2-1")
    assert calls.beat().error == UnknownMemberId("i2-1")
    calls.sync("i2-1", instance_id="i2")
    assert isinstance(calls.synced().error, FencedInstanceId)
    calls.join("i2", "i2-1")
    assert isinstance(calls.joined().error, FencedInstanceId)
    assert (calls.group.state, calls.group.generation) == ("Stable", 1)


def test_s12_whoever_comes_after_a_release_need_not_wait(calls: Calls) -> None:
    calls.stable("i1")
    calls.heartbeat("i1-1", release=True)
    calls.join("i1", fresh="i1-x")

    assert calls.joined().grant.predecessor_ms == 0
    assert not calls.member("i1-x").released


def test_s12_a_release_does_not_hide_an_earlier_holder(calls: Calls) -> None:
    """First a, replaced by b, which releases after 4 s: 6 s are left of the session of a."""
    calls.stable("i1")
    calls.join("i1", fresh="b")
    calls.core.advance(4_000)
    calls.heartbeat("b", release=True)
    calls.join("i1", fresh="c")

    assert calls.joined().grant.predecessor_ms == 6_000


def test_s12_a_release_does_not_hide_who_was_removed_before(calls: Calls) -> None:
    """Its time runs from its removal, not from when the instance that got its work had joined."""
    calls.stable("i1", "i2")
    calls.core.advance(8_000)
    calls.heartbeat("i1-1", instance_id="i1")
    calls.leave(LeavingMember("i2-1", "i2"), operator=True)
    calls.join("i1", "i1-1")
    calls.sync("i1-1", {"i1-1": b"all"})
    calls.core.advance(1_000)
    calls.heartbeat("i1-1", instance_id="i1", release=True)
    calls.join("i1", fresh="i1-2")

    assert calls.joined().grant.predecessor_ms == 9_000


def test_s12_a_release_needs_no_generation(calls: Calls) -> None:
    """That a process has stopped is true in any generation."""
    calls.stable("i1")

    assert calls.heartbeat("i1-1", generation=7, release=True) != ()


def test_s12_only_a_static_member_can_come_back(calls: Calls) -> None:
    calls.join(fresh="c-1")
    calls.join(member_id="c-1")

    assert calls.heartbeat("c-1", release=True) == ()
    assert isinstance(calls.beat().error, InvalidRequest)


def test_s12_a_release_ends_what_is_parked(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.join("i2", "i2-1", protocols=(Protocol("p", b"x"),))
    parked = calls.last
    calls.heartbeat("i2-1", instance_id="i2", release=True)

    assert isinstance(calls.joined(parked).error, FencedInstanceId)
    assert "i2-1" not in calls.volatile.joins


def test_s12_the_session_of_a_released_member_runs_in_full(calls: Calls) -> None:
    calls.stable("i1")
    calls.core.advance(9_000)
    calls.heartbeat("i1-1", release=True)

    assert calls.core.advance(9_999) == ()
    assert MemberExpired("i1-1", SESSION) in calls.core.advance(1)
