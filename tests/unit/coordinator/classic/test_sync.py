"""Syncs: the order of the checks, who is waited for, and what they renew (E, S7, S17)."""

import pytest

from harness.calls import REBALANCE_MS, Calls
from holdfast.coordinator.model.commands import CallBroken
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
