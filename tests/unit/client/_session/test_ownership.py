"""When ownership begins and ends: S11 (self-fencing), S12 (takeover, release, leave)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.client._session.lease import Lease
from holdfast.client._session.session_io import Assigned, Lost, Revoke, Stopped
from holdfast.client.errors import OutcomeUnknown
from holdfast.v1 import group_pb2

if TYPE_CHECKING:
    from holdfast.v1.errors_pb2 import ErrorCode
from unit.client._session.driver import (
    ILLEGAL_GENERATION,
    NONE,
    REBALANCE_IN_PROGRESS,
    Driver,
    join_answer,
    make_settings,
    partitions,
)

HEARTBEAT, LEAVE = group_pb2.HeartbeatRequest, group_pb2.LeaveGroupRequest
JOIN, SYNC = group_pb2.JoinGroupRequest, group_pb2.SyncGroupRequest


def cut_off(driver: Driver, ms: int) -> None:
    """Time passes, and every heartbeat fails at once."""
    end = driver.now + ms
    while driver.now < end:
        driver.advance(min(100, end - driver.now))
        while driver.is_waiting(HEARTBEAT):
            driver.fail(HEARTBEAT, retry_in_ms=500)


def lost(driver: Driver) -> bool:
    return any(isinstance(told, Lost) for told in driver.told)


def test_s11_a_cut_off_member_with_a_30_minute_session_stops_at_its_rebalance_timeout() -> None:
    """Without the second half of S11 it would act on for 24 minutes after it was passed over."""
    minute = 60_000
    settings = make_settings(session_timeout_ms=30 * minute, rebalance_timeout_ms=5 * minute)
    driver = Driver(settings)
    driver.stable(0)  # the sync was sent, and answered, now
    cut_off(driver, 4 * minute - 1)
    assert driver.owns()
    cut_off(driver, 1)
    assert not driver.owns()
    assert isinstance(driver.told_last, Lost)


def test_s11_ownership_ends_at_four_fifths_of_the_session_after_the_last_one_sent() -> None:
    driver = Driver()  # session 10 s
    driver.stable(0)
    driver.advance(1_000)  # a heartbeat is sent now ...
    driver.advance(900)
    driver.heartbeat(NONE)  # ... and answered 0.9 s later: only when it was sent counts
    cut_off(driver, 8_000 - 900 - 1)
    assert driver.owns()
    cut_off(driver, 1)
    assert not driver.owns()


def test_s11_the_check_is_by_the_clock_and_needs_no_tick() -> None:
    driver = Driver()
    driver.stable(0)
    driver.freeze(8_000)
    assert not driver.owns()
    assert not lost(driver)


def test_s11_rebalance_in_progress_renews_the_session_but_not_the_rebalance_half() -> None:
    driver = Driver(make_settings(session_timeout_ms=10_000, rebalance_timeout_ms=20_000))
    driver.stable(0)
    driver.next_heartbeat(NONE)  # sent at 1 s: the rebalance half ends at 17 s
    for _ in range(15):
        driver.next_heartbeat(REBALANCE_IN_PROGRESS)  # on_revoked is taking its time
    assert driver.told_last == Revoke(partitions(0))
    assert driver.owns()  # 16 s: the session half alone would have ended at 9 s
    driver.advance(999)
    assert driver.owns()
    driver.advance(1)
    assert not driver.owns()
    assert isinstance(driver.told_last, Lost)


def test_s11_the_timeouts_in_force_count_and_not_those_asked_for() -> None:
    driver = Driver(make_settings(session_timeout_ms=10_000))
    driver.found()
    driver.answer(JOIN, join_answer(session_ms=6_000, rebalance_ms=60_000))
    driver.synced(0)
    driver.freeze(4_799)
    assert driver.owns()
    driver.freeze(1)
    assert not driver.owns()


def test_s11_a_sync_counts_from_when_it_was_sent() -> None:
    driver = Driver()
    driver.found()
    driver.joined()
    driver.advance(500)
    driver.synced(0)
    driver.freeze(7_499)
    assert driver.owns()
    driver.freeze(1)
    assert not driver.owns()


def test_s11_what_a_long_parked_sync_brings_is_owned_only_after_a_heartbeat() -> None:
    driver = Driver()
    driver.found()
    driver.joined()
    driver.advance(8_000)  # neither the sync nor the heartbeat sent with it is answered
    driver.synced(0)
    driver.heartbeat(NONE)  # accepted, but sent too long ago
    assert driver.told == []
    assert not driver.owns()
    driver.advance(0)
    driver.heartbeat(NONE)
    assert isinstance(driver.told_last, Assigned)
    assert driver.owns()


def test_s11_after_self_fencing_a_heartbeat_answered_none_gives_ownership_back() -> None:
    driver = Driver()
    driver.stable(0)
    cut_off(driver, 9_000)
    assert isinstance(driver.told_last, Lost)
    driver.advance(1_000)
    driver.heartbeat(NONE)
    assert isinstance(driver.told_last, Assigned)
    assert driver.owns()


@pytest.mark.parametrize("code", [REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION])
def test_s11_after_self_fencing_nothing_else_gives_it_back(code: ErrorCode.ValueType) -> None:
    driver = Driver()
    driver.stable(0)
    cut_off(driver, 9_000)
    driver.advance(1_000)
    driver.heartbeat(code)
    assert isinstance(driver.told_last, Lost)
    assert not driver.owns()
    assert driver.is_waiting(JOIN)  # nothing is left to revoke


def test_s11_an_answer_read_after_a_long_freeze_proves_nothing() -> None:
    """The heartbeat was accepted in time, but the process slept through what it bought."""
    driver = Driver()
    driver.stable(0)
    driver.advance(1_000)
    driver.freeze(20_000)
    driver.heartbeat(NONE)
    assert isinstance(driver.told_last, Lost)
    assert not driver.owns()


def test_s11_a_gap_is_told_even_when_the_answer_that_closes_it_comes_first() -> None:
    """Frozen from 7.9 s to 11.9 s: the lease ends at 8 s, and an answer waits to be read."""
    driver = Driver()
    driver.stable(0)
    driver.advance(1_000)
    driver.fail(HEARTBEAT, retry_in_ms=6_900)
    driver.advance(6_900)
    driver.freeze(4_000)
    driver.heartbeat(NONE)
    assert [type(told) for told in driver.told] == [Assigned, Lost, Assigned]
    assert driver.owns()


def test_s11_ownership_lost_while_leaving_does_not_come_back() -> None:
    driver = Driver()
    driver.stable(0)
    driver.session.leave(driver.now)
    cut_off(driver, 9_000)  # on_revoked is still running
    assert isinstance(driver.told_last, Lost)
    driver.advance(1_000)
    driver.heartbeat(NONE)
    assert isinstance(driver.told_last, Lost)
    assert not driver.owns()


def test_s11_the_lease_ends_at_the_earlier_half() -> None:
    lease = Lease(session_ms=1_000, rebalance_ms=10_000)
    assert lease.ends_at_ms is None
    lease.confirmed(100)
    assert lease.ends_at_ms == 900
    lease.accepted(9_000)
    assert lease.ends_at_ms == 8_100
    lease.confirmed(50)  # an older answer read later takes nothing away and gives nothing
    assert lease.ends_at_ms == 8_100
    assert lease.holds(8_099)
    assert not lease.holds(8_100)
    lease.forget()
    assert not lease.holds(0)


def test_s12_takeover_now_owns_at_once_and_says_how_long_another_may_act() -> None:
    driver = Driver(make_settings(instance_id="i-1", takeover="now"))
    driver.found()
    driver.joined()
    driver.synced(0, predecessor_ms=5_000)
    assigned = driver.told_last
    assert isinstance(assigned, Assigned)
    assert assigned.grant.predecessor_ms == 5_000


@pytest.mark.parametrize("where", ["join", "sync"])
def test_s12_takeover_wait_owns_when_the_predecessor_must_have_stopped(where: str) -> None:
    driver = Driver(make_settings(instance_id="i-1", takeover="wait"))
    driver.found()
    driver.joined(predecessor_ms=5_500 if where == "join" else 0)
    driver.synced(0, predecessor_ms=5_500 if where == "sync" else 0)
    for _ in range(5):
        driver.next_heartbeat(NONE)
    assert not driver.owns()
    driver.advance(499)
    assert driver.told == []
    driver.advance(1)
    assert isinstance(driver.told_last, Assigned)


def test_s12_restart_of_a_static_member_releases_after_it_owns_nothing() -> None:
    driver = Driver(make_settings(instance_id="i-1"))
    driver.stable(0)
    driver.session.restart(driver.now)
    driver.take()
    assert isinstance(driver.told_last, Revoke)
    assert not driver.is_waiting(HEARTBEAT)
    driver.session.revoked(driver.now)
    driver.take()
    assert not driver.owns()
    _, release = driver.waiting(HEARTBEAT)
    assert release.holdfast.release
    assert release.holdfast.request_id
    assert not driver.is_waiting(LEAVE)
    driver.heartbeat(NONE)
    assert driver.stopped == Stopped(None)


@pytest.mark.parametrize(
    ("instance_id", "method"), [(None, "restart"), (None, "leave"), ("i-1", "leave")]
)
def test_s12_everything_else_leaves_the_group(instance_id: str | None, method: str) -> None:
    driver = Driver(make_settings(instance_id=instance_id))
    driver.stable(0)
    getattr(driver.session, method)(driver.now)
    driver.session.revoked(driver.now)
    driver.take()
    _, leave = driver.waiting(LEAVE)
    assert [member.member_id for member in leave.members] == ["m-1"]
    assert leave.holdfast.request_id
    driver.answer(LEAVE, group_pb2.LeaveGroupResponse())
    assert driver.stopped == Stopped(None)


def test_a_leave_is_repeated_with_its_id_and_its_unknown_outcome_is_told() -> None:
    driver = Driver(make_settings(leave_timeout_ms=5_000))
    driver.stable(0)
    driver.session.leave(driver.now)
    driver.session.revoked(driver.now)
    driver.take()
    ids = set()
    for _ in range(3):
        ids.add(driver.waiting(LEAVE)[1].holdfast.request_id)
        driver.fail(LEAVE, retry_in_ms=100)
        driver.advance(100)
    assert len(ids) == 1
    driver.advance(5_000)
    assert isinstance(driver.stopped.error, OutcomeUnknown)
    assert driver.open == {}


def test_leaving_during_a_join_that_has_no_id_yet_just_cancels_it() -> None:
    driver = Driver()
    driver.found()
    join, _ = driver.waiting(JOIN)
    driver.session.leave(driver.now)
    driver.take()
    assert driver.cancelled == [join.call]
    assert driver.stopped == Stopped(None)
