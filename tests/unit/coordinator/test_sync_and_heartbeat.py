"""Syncs and heartbeats: the order of the checks, and what they renew (E, F, S9, S17)."""

import pytest

from harness.calls import REBALANCE_MS, Calls
from holdfast.coordinator.model.commands import CallBroken, DeadlineFired
from holdfast.coordinator.model.events import Assigned, AssignmentStored, MemberExpired
from holdfast.coordinator.model.rejections import (
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidRequest,
    RebalanceInProgress,
    Superseded,
    UnknownMemberId,
)
from holdfast.coordinator.model.volatile import SESSION, SYNC, DeadlineKey


@pytest.fixture
def completing(calls: Calls) -> Calls:
    """Two static members, answered, and no sync yet."""
    calls.join("i1", fresh="i1-1")
    calls.join("i2", fresh="i2-1")
    calls.core.advance(0)
    return calls


def test_e5_strangers_are_dropped_and_the_forgotten_get_nothing(completing: Calls) -> None:
    completing.sync("i2-1")
    waiting = completing.last

    events = completing.sync("i1-1", {"i1-1": b"x", "stranger": b"y"})

    assert events == (AssignmentStored(1, (Assigned("i1-1", b"x"),)),)
    assert completing.synced(waiting).assignment == b""
    assert completing.synced().assignment == b"x"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"protocol_type": None}, InconsistentGroupProtocol),
        ({"protocol_name": None}, InconsistentGroupProtocol),
        ({"protocol_type": "other"}, InconsistentGroupProtocol),
        ({"protocol_name": "q"}, InconsistentGroupProtocol),
        ({"generation": 7, "protocol_name": "q"}, IllegalGeneration),  # K-E2 before K-E9
        ({"generation": 7, "protocol_name": None}, InconsistentGroupProtocol),  # K-E8 before all
        ({"instance_id": "i9", "generation": 7}, UnknownMemberId),  # identity before K-E2
    ],
)
def test_e8_the_order_of_the_checks(
    completing: Calls, given: dict[str, object], error: type
) -> None:
    assert completing.sync("i1-1", **given) == ()  # type: ignore[arg-type]  # one option each
    assert isinstance(completing.synced().error, error)


def test_e3_a_sync_in_the_join_phase_says_so(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.join("i1", "i1-1")
    calls.sync("i2-1")

    assert calls.synced().error == RebalanceInProgress()


def test_e7_bettered_a_repeated_sync_renews_the_session(calls: Calls) -> None:
    calls.stable("i1")
    calls.core.advance(9_000)
    calls.sync("i1-1")

    assert calls.core.advance(9_999) == ()


def test_e10_a_follower_that_never_syncs_goes_though_it_heartbeats(completing: Calls) -> None:
    completing.sync("i1-1", {})
    completing.core.advance(8_000)
    completing.heartbeat("i2-1")
    completing.heartbeat("i1-1")

    events = completing.core.advance(REBALANCE_MS - 8_000)

    assert MemberExpired("i2-1", SYNC) in events


def test_e12_nobody_syncs_and_the_group_is_empty(calls: Calls) -> None:
    calls.join("i1", session_ms=60_000)
    calls.join("i2", session_ms=60_000)
    calls.core.advance(0)
    calls.core.advance(REBALANCE_MS)

    assert (calls.group.state, calls.group.generation) == ("Empty", 2)


def test_s17_the_second_sync_takes_the_place_of_the_first(completing: Calls) -> None:
    completing.sync("i2-1")
    first = completing.last
    completing.sync("i2-1")

    assert completing.synced(first).error == Superseded()
    completing.sync("i1-1", {"i2-1": b"y"})
    assert completing.synced(first + 1).assignment == b"y"


def test_s17_a_broken_sync_lets_the_session_run(completing: Calls) -> None:
    completing.sync("i2-1")
    key = DeadlineKey(SESSION, "i2-1")
    assert key not in completing.volatile.armed, "suspended while parked (A23)"

    completing.submit(CallBroken("g", completing.last))
    completing.core.parked.discard(completing.last)

    assert key in completing.volatile.armed
    assert completing.sync("i1-1", {}) != ()
    assert completing.reply(completing.last - 1) is None, "nobody is there to be answered"


def test_s17_a_break_that_comes_too_late_is_nothing(calls: Calls) -> None:
    calls.stable("i1")
    before = calls.volatile

    assert calls.submit(CallBroken("g", 1)) == ()
    assert calls.volatile == before


def test_s7_assignments_that_can_never_fit_are_refused(completing: Calls) -> None:
    assert completing.sync("i1-1", {"i1-1": b"x" * (8 << 20)}) == ()
    error = completing.synced().error
    assert isinstance(error, InvalidRequest)
    assert error.field == "assignments"
    assert completing.sync("i1-1", {"i1-1": b"x"}) != (), "the group is not stuck"


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

    assert calls.core.advance(5_999) == (), "expired at 10 s otherwise; the round ends at 15 s"


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
