"""How a member of the heartbeat protocol goes: for a while, for a restart, for good, or stuck."""

from __future__ import annotations

import pytest

from holdfast.client._session.consumer.states import State
from holdfast.client._session.session_io import Lost, Revoke, Stage, Stopped, Subscription
from holdfast.client.errors import Fenced, HoldfastError, OutcomeUnknown
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client._session.consumer.driver import (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    SESSION_MS,
    UNKNOWN_MEMBER_ID,
    Driver,
    answer,
    make_settings,
    owned_in,
    partitions,
)

WORK_MS = 3_000
UNSUPPORTED_ASSIGNOR = ErrorCode.ERROR_CODE_UNSUPPORTED_ASSIGNOR


@pytest.mark.parametrize(
    ("how", "instance_id", "epoch"),
    [
        *[("leave", None, -1), ("restart", None, -1), ("unsubscribe", None, -1)],
        *[("leave", "i-1", -1), ("restart", "i-1", -2), ("unsubscribe", "i-1", -2)],
    ],
)
def test_who_leaves_lets_go_of_everything_and_then_says_goodbye(
    how: str, instance_id: str | None, epoch: int
) -> None:
    """S12, KIP-345: a static member keeps its place unless it leaves for good."""
    driver = Driver(make_settings(instance_id=instance_id))
    driver.joined(0, 1)
    driver.do(how)
    assert (driver.state, driver.told_last) == (State.PREPARE_LEAVING, Revoke(partitions(0, 1)))
    assert driver.owns() == [0, 1], "while on_revoked runs, for the last work and its commit"
    assert driver.session.identity.can_heartbeat
    driver.returns()
    assert (driver.state, driver.owns()) == (State.LEAVING, [])
    assert (driver.beat.member_epoch, driver.beat.instance_id) == (epoch, instance_id or "")
    assert owned_in(driver.beat) is None
    driver.unchanged(epoch)
    assert driver.is_in(State.UNSUBSCRIBED)
    assert driver.session.stage is (Stage.RUNNING if how == "unsubscribe" else Stage.STOPPED)


def test_heartbeats_go_on_while_it_prepares_to_leave_and_end_with_the_goodbye() -> None:
    driver = Driver()
    driver.joined(0)
    driver.do("leave")
    assert driver.next_beat().member_epoch == 2
    driver.returns()
    assert driver.beat.member_epoch == -1
    driver.advance(4_000)
    assert driver.beat.member_epoch == -1


def test_whatever_the_goodbye_is_answered_the_member_has_stopped() -> None:
    """It owns nothing; who is unknown has left already, and whose place was taken has no other."""
    for code in (UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ErrorCode.ERROR_CODE_INVALID_REQUEST):
        driver = Driver(make_settings(instance_id="i-1"))
        driver.joined()
        driver.do("restart")
        driver.refuse(code)
        assert driver.stopped == Stopped(None)


def test_t18_bettered_a_goodbye_without_an_answer_is_repeated_by_a_member_that_stops() -> None:
    """T-18 bettered: else the next process would wait for a session, for one lost message."""
    driver = Driver(make_settings(instance_id="i-1"))
    driver.joined()
    driver.do("restart")
    first = driver.beat
    driver.fail(retry_in_ms=200)
    driver.advance(200)
    assert driver.beat == first


def test_t18_a_goodbye_that_may_be_on_its_way_is_not_repeated_by_who_comes_back() -> None:
    """It would end the next life of the same member id, if it came late (K-M32)."""
    driver = Driver()
    driver.joined()
    driver.do("unsubscribe")
    driver.fail()
    assert (driver.state, driver.quiet) == (State.UNSUBSCRIBED, True)


def test_t18_bettered_a_goodbye_that_certainly_did_nothing_is_repeated() -> None:
    driver = Driver()
    driver.joined()
    driver.do("unsubscribe")
    driver.fail(applied=False, retry_in_ms=200)
    driver.advance(200)
    assert driver.beat.member_epoch == -1


def test_a_goodbye_that_nobody_confirms_ends_in_time_and_says_so() -> None:
    driver = Driver(make_settings(leave_timeout_ms=1_000))
    driver.joined()
    driver.do("leave")
    driver.advance(1_000)
    assert isinstance(driver.stopped.error, OutcomeUnknown)
    assert driver.session.unconfirmed is driver.stopped.error


def test_who_was_never_taken_has_nothing_to_say_goodbye_to() -> None:
    driver = Driver()
    driver.start()
    driver.fail(applied=False, retry_in_ms=10_000)
    driver.do("leave")
    assert driver.stopped == Stopped(None)
    assert len(driver.sent) == 1


@pytest.mark.parametrize("lost", [False, True], ids=["open", "lost"])
def test_whose_join_may_have_been_taken_says_goodbye(*, lost: bool) -> None:
    driver = Driver()
    driver.start()
    if lost:
        driver.fail(retry_in_ms=10_000)
    driver.do("leave")
    assert driver.beat.member_epoch == -1


@pytest.mark.parametrize("code", [FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID])
def test_a_fence_while_it_prepares_to_leave_ends_it_without_a_goodbye(
    code: ErrorCode.ValueType,
) -> None:
    driver = Driver()
    driver.joined(0)
    driver.next_beat()
    driver.do("leave")
    driver.refuse(code)
    assert (driver.state, driver.stopped) == (State.UNSUBSCRIBED, Stopped(None))
    assert isinstance(driver.told[-2], Lost)
    assert driver.quiet


def test_another_process_that_takes_its_place_meanwhile_is_told() -> None:
    driver = Driver(make_settings(instance_id="i-1"))
    driver.joined(0)
    driver.next_beat()
    driver.do("restart")
    driver.refuse(FENCED_INSTANCE_ID)
    assert isinstance(driver.stopped.error, Fenced)


def test_a_fenced_member_that_is_to_leave_stops_at_once() -> None:
    driver = Driver()
    driver.joined(0)
    driver.next_beat()
    driver.slow = True
    driver.refuse(FENCED_MEMBER_EPOCH)
    driver.do("leave")
    assert driver.stopped == Stopped(None)
    assert driver.quiet


def test_a_failure_of_the_users_code_lets_go_says_goodbye_and_is_told() -> None:
    """As in the classic protocol; better than Kafka's, whose member waits to be fenced (T-11)."""
    driver = Driver()
    driver.joined(0)
    error = HoldfastError("on_assigned has raised")
    driver.do("fail", error)
    assert driver.told_last == Revoke(partitions(0))
    driver.returns()
    driver.unchanged(-1)
    assert driver.stopped == Stopped(error)


def test_t11_bettered_a_callback_that_raises_while_reconciling_ends_the_member() -> None:
    driver = Driver()
    driver.joined(0, 1)
    driver.next_beat()
    driver.accept(2, 0)
    driver.do("fail", HoldfastError("on_revoked has raised"))
    driver.returns()
    driver.returns()
    assert driver.beat.member_epoch == -1


def test_what_failed_first_is_what_the_user_hears() -> None:
    driver = Driver()
    driver.joined(0)
    first, second = HoldfastError("first"), HoldfastError("second")
    driver.do("fail", first)
    driver.do("fail", second)
    driver.returns()
    driver.unchanged(-1)
    assert driver.stopped == Stopped(first)


def test_the_end_of_a_member_that_was_refused_says_goodbye_and_why() -> None:
    """FATAL is silent; but whoever ends then frees its place at once."""
    driver = Driver()
    driver.joined(0)
    driver.next_beat()
    driver.refuse(UNSUPPORTED_ASSIGNOR)
    error = driver.refused.error
    driver.do("restart")
    assert driver.beat.member_epoch == -1
    driver.unchanged(-1)
    assert driver.stopped == Stopped(error)


def test_the_end_of_a_member_that_was_refused_at_its_join_says_nothing() -> None:
    driver = Driver()
    driver.start()
    driver.refuse(UNSUPPORTED_ASSIGNOR)
    error = driver.refused.error
    driver.do("restart")
    assert driver.stopped == Stopped(error)
    assert driver.quiet


def test_abort_stops_without_a_word() -> None:
    driver = Driver()
    driver.joined(0)
    error = HoldfastError("the loop has ended")
    driver.session.abort(error)
    driver.take()
    assert driver.stopped == Stopped(error)
    assert driver.quiet


def test_the_lease_that_ends_while_it_prepares_to_leave_does_not_keep_it() -> None:
    driver = Driver()
    driver.joined(0)
    driver.do("leave")
    driver.now += SESSION_MS
    driver.tick()
    assert isinstance(driver.told_last, Lost)
    assert driver.is_in(State.PREPARE_LEAVING), "on_revoked runs"
    driver.returns()
    assert driver.is_in(State.LEAVING)


def test_leaving_takes_as_long_as_it_takes_while_the_group_wants_nothing_back() -> None:
    """S11: heartbeats go on, and their answers run both halves of the lease on."""
    driver = Driver(make_settings(rebalance_timeout_ms=4_000))
    driver.start()
    driver.answer(answer(2, {"t": {0: 7}}, rebalance_ms=4_000))
    driver.do("leave")
    for _ in range(10):
        driver.next_beat()
        driver.answer(answer(2, None, rebalance_ms=4_000))
    assert driver.owns() == [0]


# --- a program that does not work any more -------------------------------------------------------


def working(**changes: object) -> Driver:
    driver = Driver(make_settings(work_timeout_ms=WORK_MS, **changes))
    driver.joined(0)
    return driver


def beating_until(driver: Driver, at_ms: int) -> None:
    while driver.now < at_ms and driver.state is State.STABLE:
        driver.advance(min(500, at_ms - driver.now))
        if not driver.quiet and driver.beat.member_epoch > 0:
            driver.unchanged(2)


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i-1", -2)])
def test_t17_who_does_not_say_that_it_works_leaves_and_is_stale(
    instance_id: str | None, epoch: int
) -> None:
    driver = working(instance_id=instance_id)
    beating_until(driver, driver.now + WORK_MS)
    assert (driver.state, driver.owns()) == (State.LEAVING, [])
    assert driver.lost[0].reason.kind == "stuck"
    assert driver.beat.member_epoch == epoch
    driver.unchanged(epoch)
    assert (driver.state, driver.session.stage) == (State.STALE, Stage.RUNNING)
    driver.advance(10 * SESSION_MS)
    assert driver.quiet
    driver.do("working")
    assert (driver.state, driver.beat.member_epoch) == (State.JOINING, 0)
    driver.accept(4, 0)
    assert driver.owns() == [0]


def test_t17_who_says_that_it_works_stays() -> None:
    driver = working()
    for _ in range(5):
        beating_until(driver, driver.now + WORK_MS - 1)
        driver.do("working")
    assert (driver.state, driver.owns()) == (State.STABLE, [0])


def test_t17_working_again_before_the_goodbye_is_answered_joins_after_it() -> None:
    driver = working()
    beating_until(driver, driver.now + WORK_MS)
    driver.do("working")
    assert driver.is_in(State.LEAVING)
    driver.unchanged(-1)
    assert driver.is_in(State.JOINING)


def test_t17_it_joins_again_only_when_on_lost_has_returned() -> None:
    driver = working()
    driver.slow = True
    beating_until(driver, driver.now + WORK_MS)
    driver.unchanged(-1)
    driver.do("working")
    assert (driver.state, driver.quiet) == (State.JOINING, True)
    driver.returns()
    assert owned_in(driver.beat) == []


def test_t17_a_fence_in_between_does_not_say_that_the_program_works() -> None:
    driver = working()
    began = driver.now
    driver.next_beat()
    driver.refuse(FENCED_MEMBER_EPOCH)
    driver.accept(2, 0)
    driver.unchanged(2)
    beating_until(driver, began + WORK_MS)
    assert driver.is_in(State.LEAVING)


def test_t17_another_subscription_does_not_say_that_the_program_works() -> None:
    driver = working()
    beating_until(driver, driver.now + WORK_MS)
    driver.unchanged(-1)
    driver.do("subscribe", Subscription(("u",)))
    assert driver.is_in(State.STALE)
    driver.do("working")
    assert list(driver.beat.subscribed_topic_names.names) == ["u"]


def test_a_stale_member_that_is_to_stop_has_nothing_to_tell() -> None:
    driver = working()
    beating_until(driver, driver.now + WORK_MS)
    driver.unchanged(-1)
    driver.do("leave")
    assert driver.stopped == Stopped(None)
    assert driver.quiet


def test_t16_numbers_rise_over_joins_and_goodbyes_and_a_repeated_goodbye_keeps_its_own() -> None:
    """S26: all in one life, which is the member object's."""
    driver = Driver()
    driver.joined(0)
    driver.do("unsubscribe")
    driver.returns()
    driver.unchanged(-1)
    driver.do("subscribe", Subscription(("t",)))
    driver.accept(3, 0)
    driver.unchanged(3)
    driver.do("leave")
    driver.returns()
    driver.fail(retry_in_ms=100)
    driver.advance(100)
    numbers = [each.holdfast.beat for each in driver.sent]
    epochs = [each.member_epoch for each in driver.sent]

    assert epochs == [0, 2, -1, 0, 3, -1, -1]
    assert numbers == [1, 2, 3, 4, 5, 6, 6]
    assert len({each.holdfast.life for each in driver.sent}) == 1


@pytest.mark.parametrize(
    ("how", "instance_id", "absence_ms"),
    [
        *[("restart", "i-1", 600_000), ("unsubscribe", "i-1", 600_000)],
        *[("leave", "i-1", 0), ("restart", None, 0)],
    ],
)
def test_n3_a_goodbye_says_for_how_long_the_place_is_kept(
    how: str, instance_id: str | None, absence_ms: int
) -> None:
    """K-N3: only one that keeps a place; no heartbeat before it says so."""
    driver = Driver(make_settings(instance_id=instance_id, absence_ms=600_000))
    driver.joined(0)
    driver.do(how)
    driver.returns()

    assert [each.holdfast.absence_ms for each in driver.sent] == [0, 0, absence_ms]


def test_t17_nobody_says_for_how_long_a_program_will_hang() -> None:
    """Others are to go on with its partitions as soon as its session is over."""
    driver = working(instance_id="i-1", absence_ms=600_000)
    beating_until(driver, driver.now + WORK_MS)

    assert (driver.beat.member_epoch, driver.beat.holdfast.absence_ms) == (-2, 0)


def test_t11_nobody_says_for_how_long_a_program_that_failed_is_away() -> None:
    driver = Driver(make_settings(instance_id="i-1", absence_ms=600_000))
    driver.joined(0)
    driver.do("fail", HoldfastError("on_assigned has raised"))
    driver.returns()

    assert (driver.beat.member_epoch, driver.beat.holdfast.absence_ms) == (-2, 0)
