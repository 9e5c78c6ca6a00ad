"""Retries and parked calls: S14 (the same request id), S15 (its time), S17 (signs of life)."""

from __future__ import annotations

from uuid import UUID

from holdfast.client._session.session_io import Assigned, Failure, FailureKind
from holdfast.client.errors import IncompatibleServer
from holdfast.v1 import group_pb2
from unit.client._session.driver import (
    ILLEGAL_GENERATION,
    LOG_TIME_MS,
    NONE,
    REBALANCE_IN_PROGRESS,
    Driver,
    make_settings,
)

HEARTBEAT, JOIN, SYNC = (
    group_pb2.HeartbeatRequest,
    group_pb2.JoinGroupRequest,
    group_pb2.SyncGroupRequest,
)


def rejoining() -> Driver:
    """A member of generation 1 whose rejoin is parked."""
    driver = Driver()
    driver.stable(0)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.session.revoked(driver.now)
    driver.take()
    return driver


def test_s15_request_ids_are_uuid7_on_the_log_time_advanced_by_the_boot_clock() -> None:
    driver = Driver()
    driver.found()
    driver.advance(1_234)
    driver.joined()
    made = UUID(driver.waiting(SYNC)[1].holdfast.request_id)
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert made.int >> 80 == LOG_TIME_MS + 1_234


def test_s14_a_failed_join_or_sync_is_repeated_unchanged_after_its_delay() -> None:
    driver = Driver()
    driver.found()
    _, first = driver.waiting(JOIN)
    driver.fail(JOIN, retry_in_ms=300)
    driver.advance(299)
    assert not driver.is_waiting(JOIN)
    driver.advance(1)
    assert driver.waiting(JOIN)[1] == first
    driver.joined()
    _, sync = driver.waiting(SYNC)
    driver.fail(SYNC, retry_in_ms=0)
    driver.advance(0)
    assert driver.waiting(SYNC)[1] == sync


def test_s17_a_first_join_is_repeated_each_quarter_of_the_session() -> None:
    driver = Driver(make_settings(session_timeout_ms=10_000))
    driver.found()
    first, request = driver.waiting(JOIN)
    driver.advance(2_499)
    assert list(driver.open) == [first.call]
    driver.advance(1)
    second, again = driver.waiting(JOIN)
    assert second.call != first.call
    assert again == request
    assert not second.elsewhere
    assert not driver.is_waiting(HEARTBEAT)


def test_s17_a_node_that_ends_the_first_attempt_is_alive_so_the_call_stays_there() -> None:
    driver = Driver()
    driver.found()
    for _ in range(4):
        old, _ = driver.waiting(JOIN)
        driver.advance(2_500)
        new, _ = driver.waiting(JOIN)
        assert not new.elsewhere
        driver.fail_call(old, FailureKind.SUPERSEDED)
        assert list(driver.open) == [new.call]
    driver.joined()
    driver.synced(0)
    assert isinstance(driver.told_last, Assigned)


def test_s17_a_silent_node_is_left_and_its_calls_are_given_up() -> None:
    driver = Driver()
    driver.found()
    first, request = driver.waiting(JOIN)
    driver.advance(2_500)
    second, _ = driver.waiting(JOIN)
    driver.advance(2_500)
    third, again = driver.waiting(JOIN)
    assert third.elsewhere
    assert again == request
    assert driver.cancelled == [first.call, second.call]
    assert list(driver.open) == [third.call]


def test_s17_a_rejoining_member_sends_heartbeats_and_does_not_repeat_its_join() -> None:
    driver = rejoining()
    joins = [send for send in driver.sent if isinstance(send.request, JOIN)]
    for _ in range(12):
        driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    assert [send for send in driver.sent if isinstance(send.request, JOIN)] == joins
    driver.joined(generation=2)
    driver.synced(1)
    assert isinstance(driver.told_last, Assigned)


def test_s17_a_generation_that_passed_while_parked_keeps_the_join_and_repeats_it() -> None:
    """The join's answer may be on its way: a new join would open another rebalance for nothing."""
    driver = rejoining()
    join, request = driver.waiting(JOIN)
    driver.next_heartbeat(ILLEGAL_GENERATION)
    assert list(driver.open) == [join.call]
    driver.advance(2_500)
    assert driver.waiting(JOIN)[1] == request
    driver.joined(generation=2)
    assert driver.is_waiting(SYNC)


def test_s17_a_parked_call_is_repeated_where_a_failed_heartbeat_goes_next() -> None:
    """A frozen leader holds the join for a minute; heartbeats find out in a second."""
    driver = rejoining()
    _, request = driver.waiting(JOIN)
    driver.advance(1_000)
    driver.fail(HEARTBEAT, retry_in_ms=50)
    joins = [send for send in driver.open.values() if isinstance(send.request, JOIN)]
    assert [send.request for send in joins] == [request, request]
    driver.joined(generation=2)
    assert driver.is_waiting(SYNC)


def test_s17_heartbeats_go_on_while_a_sync_is_parked() -> None:
    driver = Driver()
    driver.found()
    driver.joined()
    for _ in range(20):
        driver.next_heartbeat(NONE)
    driver.synced(0)
    assert driver.owns()  # the heartbeats were answered NONE at this generation


def test_a_failed_heartbeat_is_sent_again_soon_and_one_at_a_time() -> None:
    driver = Driver()
    driver.stable(0)
    driver.advance(5_000)
    assert len([send for send in driver.open.values() if isinstance(send.request, HEARTBEAT)]) == 1
    driver.fail(HEARTBEAT, retry_in_ms=40)
    driver.advance(39)
    assert not driver.is_waiting(HEARTBEAT)
    driver.advance(1)
    assert driver.is_waiting(HEARTBEAT)


def test_there_are_at_least_three_heartbeats_in_a_session() -> None:
    driver = Driver(make_settings(session_timeout_ms=3_000, heartbeat_interval_ms=60_000))
    driver.stable(0)
    driver.advance(1_000)
    assert driver.is_waiting(HEARTBEAT)


def test_a_failure_that_cannot_heal_stops_the_member() -> None:
    driver = Driver()
    driver.found()
    send, _ = driver.waiting(JOIN)
    error = IncompatibleServer("no such call")
    driver.session.failed(send.call, Failure(FailureKind.FATAL, error), driver.now)
    driver.take()
    assert driver.stopped.error is error
