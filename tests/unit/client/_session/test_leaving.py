"""How a session ends by itself, and says goodbye when nobody acts any more; why things are lost."""

from __future__ import annotations

import pytest

from holdfast.client._session.fatal_error import PAUSE_MAX_MS
from holdfast.client._session.session_io import Assigned, FailureKind, Lost, Revoke, Stopped
from holdfast.client.errors import Fenced, HoldfastError, InvalidArgument, OutcomeUnknown
from holdfast.coordinator.assignors import CooperativeAssignor
from holdfast.v1 import extras_pb2, group_pb2
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client._session.driver import (
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    Driver,
    make_settings,
    partitions,
    sync_answer,
)

HEARTBEAT, LEAVE = group_pb2.HeartbeatRequest, group_pb2.LeaveGroupRequest
SYNC, JOIN = group_pb2.SyncGroupRequest, group_pb2.JoinGroupRequest
BROKEN = HoldfastError("the user's code has failed")


def fail(driver: Driver) -> None:
    driver.session.fail(BROKEN, driver.now)
    driver.take()


def release_sent(driver: Driver) -> bool:
    return any(
        isinstance(send.request, HEARTBEAT) and send.request.holdfast.release
        for send in driver.open.values()
    )


# --- a local end says goodbye ---


@pytest.mark.parametrize("instance_id", [None, "i-1"])
def test_s12_what_fails_here_leaves_or_releases_once_the_user_has_let_go(
    instance_id: str | None,
) -> None:
    driver = Driver(make_settings(instance_id=instance_id))
    driver.stable(0, 1)
    fail(driver)
    assert driver.told_last == Revoke(partitions(0, 1))
    assert driver.owns(), "on_revoked may still commit"
    assert not driver.is_waiting(LEAVE)
    assert not release_sent(driver)
    driver.heard()
    assert not driver.owns()
    if instance_id is None:
        driver.answer(LEAVE, group_pb2.LeaveGroupResponse())
    else:
        assert release_sent(driver)
        driver.heartbeat()
    assert driver.stopped == Stopped(BROKEN)


def test_s12_nothing_is_said_while_the_user_still_hears_of_a_loss() -> None:
    """on_lost runs: for all that the group can know this member id still acts."""
    driver = Driver()
    driver.hears_at_once = False
    driver.stable(0)
    driver.freeze(8_000)
    driver.advance(0)
    assert [type(told) for told in driver.told] == [Assigned, Lost]
    driver.session.restart(driver.now)
    driver.take()
    assert driver.told_last == Revoke(())
    assert not driver.is_waiting(LEAVE)
    driver.heard()
    assert driver.is_waiting(LEAVE)


def test_a_goodbye_after_a_failure_is_given_up_in_a_bounded_time() -> None:
    driver = Driver()
    driver.stable(0)
    fail(driver)
    driver.heard()
    began = driver.now
    while not isinstance(driver.told_last, Stopped):
        if driver.is_waiting(LEAVE):
            driver.fail(LEAVE, retry_in_ms=500)
        driver.advance(100)
        assert driver.now <= began + driver.settings.leave_timeout_ms
    assert driver.stopped.error is BROKEN, "the reason, and not what became of the goodbye"
    assert isinstance(driver.session.unconfirmed, OutcomeUnknown)


def test_a_failure_while_the_member_leaves_does_not_take_back_the_goodbye() -> None:
    driver = Driver()
    driver.stable(0)
    driver.session.leave(driver.now)
    driver.take()
    fail(driver)  # on_revoked raised
    driver.heard()
    driver.answer(LEAVE, group_pb2.LeaveGroupResponse())
    assert driver.stopped == Stopped(BROKEN)


def test_a_cooperative_member_that_fails_in_a_revocation_lets_go_of_the_rest_as_well() -> None:
    driver = Driver(make_settings(assignors=(CooperativeAssignor(),)))
    driver.stable(0, 1)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.joined(generation=2, protocol="cooperative-sticky")
    driver.answer(SYNC, sync_answer(0))
    assert driver.told_last == Revoke(partitions(1))
    fail(driver)
    driver.heard()
    assert driver.told_last == Revoke(partitions(0))
    assert not driver.is_waiting(LEAVE)
    driver.heard()
    assert driver.is_waiting(LEAVE)


def test_a_refusal_that_cannot_heal_takes_everything_at_once_and_then_leaves() -> None:
    driver = Driver()
    driver.hears_at_once = False
    driver.stable(0)
    driver.advance(1_000)
    driver.heartbeat(ErrorCode.ERROR_CODE_INVALID_GROUP_ID)
    assert not driver.owns()
    lost = driver.told[-2]
    assert isinstance(lost, Lost)
    assert lost.reason.kind == "stopped"
    assert driver.told_last == Revoke(())
    driver.heard()
    driver.answer(LEAVE, group_pb2.LeaveGroupResponse())
    assert isinstance(driver.stopped.error, InvalidArgument)


def test_a_failure_without_a_place_in_the_group_ends_at_once() -> None:
    driver = Driver()
    driver.found()
    fail(driver)
    assert driver.stopped == Stopped(BROKEN)


def test_t5_a_fenced_member_says_nothing_more() -> None:
    """Its place is another's: a release by it would let go of what that one holds."""
    driver = Driver(make_settings(instance_id="i-1"))
    driver.stable(0)
    driver.next_heartbeat(FENCED_INSTANCE_ID)
    assert driver.open == {}
    assert isinstance(driver.stopped.error, Fenced)


# --- the pause of a fenced member ---


def fence(driver: Driver, takeovers: int) -> None:
    driver.advance(driver.settings.heartbeat_interval_ms)
    extras = extras_pb2.ResponseExtras(holder="i-1-other", takeovers=takeovers)
    answer = group_pb2.HeartbeatResponse(error_code=FENCED_INSTANCE_ID, holdfast=extras)
    driver.answer(HEARTBEAT, answer)


def fenced(takeovers: int) -> Driver:
    driver = Driver(make_settings(instance_id="i-1"))
    driver.stable(0)
    fence(driver, takeovers)
    return driver


@pytest.mark.parametrize(
    ("takeovers", "pause_ms"),
    [(0, 0), (1, 0), (2, 1_000), (3, 2_000), (4, 4_000), (6, 16_000), (7, 30_000), (9**9, 30_000)],
)
def test_t5_fenced_is_told_after_a_pause_that_grows_with_the_takeovers(
    takeovers: int, pause_ms: int
) -> None:
    """Two that a supervisor starts again must not swap the place many times a second."""
    driver = fenced(takeovers)
    assert not driver.owns(), "what acts stops at once"
    assert any(isinstance(told, Lost) for told in driver.told)
    assert isinstance(driver.session.error, Fenced), "and so a probe tells it at once"
    if pause_ms:
        driver.advance(pause_ms - 1)
        assert not isinstance(driver.told_last, Stopped)
        driver.advance(1)
    assert isinstance(driver.stopped.error, Fenced)
    assert driver.stopped.error.takeovers == takeovers
    assert pause_ms <= PAUSE_MAX_MS == 30_000


@pytest.mark.parametrize("how", ["leave", "restart"])
def test_the_pause_ends_when_the_program_wants_to_end(how: str) -> None:
    driver = fenced(9)
    getattr(driver.session, how)(driver.now)
    driver.take()
    assert isinstance(driver.stopped.error, Fenced)
    driver.advance(PAUSE_MAX_MS)
    assert sum(isinstance(told, Stopped) for told in driver.told) == 1


def test_who_was_asked_to_end_before_it_was_fenced_is_not_kept() -> None:
    driver = Driver(make_settings(instance_id="i-1"))
    driver.stable(0)
    driver.session.restart(driver.now)
    driver.take()
    fence(driver, 9)
    assert isinstance(driver.stopped.error, Fenced)


# --- why something was lost ---


def why(driver: Driver) -> tuple[str, str]:
    lost = next(told for told in reversed(driver.told) if isinstance(told, Lost))
    assert driver.session.ownership.loss is lost.reason
    return lost.reason.kind, str(lost.reason)


def test_s11_a_loss_by_the_clock_tells_that_nothing_ran() -> None:
    driver = Driver()  # a lease of 8 s; a heartbeat is due after 1 s
    driver.stable(0)
    driver.freeze(9_000)
    driver.advance(0)
    kind, words = why(driver)
    assert kind == "clock"
    assert "did not run for 9.0 s" in words
    assert "asyncio.to_thread" in words


def test_s11_a_loss_by_the_clock_tells_so_when_an_answer_is_read_first() -> None:
    driver = Driver()
    driver.stable(0)
    driver.advance(1_000)
    driver.freeze(9_000)
    driver.heartbeat()
    assert "did not run for 9.0 s" in why(driver)[1]


def test_s11_a_loss_by_the_clock_tells_that_the_service_was_not_reached() -> None:
    driver = Driver()
    driver.stable(0)
    while not any(isinstance(told, Lost) for told in driver.told):
        driver.advance(100)
        if driver.is_waiting(HEARTBEAT):
            driver.fail(HEARTBEAT, retry_in_ms=300)
    kind, words = why(driver)
    assert kind == "clock"
    assert "no heartbeat was accepted for 8.0 s" in words


def test_s11_a_loss_by_the_clock_tells_that_letting_go_took_too_long() -> None:
    driver = Driver(make_settings(session_timeout_ms=10_000, rebalance_timeout_ms=20_000))
    driver.stable(0)
    for _ in range(16):
        driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.advance(1_000)
    kind, words = why(driver)
    assert kind == "clock"
    assert "letting go has taken 16.0 s" in words


def test_t2_a_member_that_was_heard_of_lately_was_removed() -> None:
    driver = Driver()
    driver.stable(0)
    driver.next_heartbeat(UNKNOWN_MEMBER_ID)
    kind, words = why(driver)
    assert kind == "removed"
    assert "an operator" in words


def test_t2_who_wakes_up_after_its_session_learns_that_it_has_expired() -> None:
    driver = Driver()
    driver.stable(0)
    driver.freeze(30_000)
    driver.advance(0)
    driver.heartbeat(UNKNOWN_MEMBER_ID)
    assert why_of_probe(driver) == "expired"
    assert "ended this member's session" in driver.notes[-1]


def why_of_probe(driver: Driver) -> str:
    loss = driver.session.ownership.loss
    assert loss is not None
    return loss.kind


def test_t3_a_generation_that_passed_means_that_the_group_did_not_wait() -> None:
    driver = Driver()
    driver.stable(0)
    driver.next_heartbeat(ILLEGAL_GENERATION)
    assert why(driver)[0] == "expired"


def test_t5_a_fenced_member_tells_by_whom() -> None:
    kind, words = why(fenced(1))
    assert kind == "fenced"
    assert "i-1-other" in words


def test_what_a_member_does_is_noted_for_people() -> None:
    driver = Driver()
    driver.stable(0)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.heard()
    driver.joined(generation=2, leader="m-1")
    assert driver.notes == [
        "joins: a new process",
        "is in generation 1",
        "joins: the group rebalances",
        "is in generation 2 and leads it",
    ]
    assert not any(isinstance(told, Assigned) and not told.partitions for told in driver.told)


def test_a_call_that_cannot_be_made_ends_the_member_and_its_goodbye_is_tried() -> None:
    driver = Driver()
    driver.stable(0)
    driver.advance(1_000)
    send, _ = driver.waiting(HEARTBEAT)
    driver.fail_call(send, FailureKind.FATAL)
    assert not driver.owns()
    leave, _ = driver.waiting(LEAVE)
    driver.fail_call(leave, FailureKind.FATAL)
    assert isinstance(driver.stopped.error, OutcomeUnknown)
