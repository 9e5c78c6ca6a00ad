"""start_timeout_ms: until when a leading node must have answered, and what does not count."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TypeAlias

from holdfast.client._session.session_io import Failure, FailureKind, Stopped
from holdfast.client.errors import OutcomeUnknown, Unavailable
from holdfast.v1 import extras_pb2, group_pb2
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client._session.driver import LOG_TIME_MS, Driver, make_settings

FIND: TypeAlias = group_pb2.FindCoordinatorRequest
JOIN: TypeAlias = group_pb2.JoinGroupRequest
TIMEOUT_MS = 30_000
NOBODY = Unavailable("Could not connect to 127.0.0.1:1: nobody listens there.")


def starting(timeout_ms: int | None = TIMEOUT_MS) -> Driver:
    return Driver(make_settings(start_timeout_ms=timeout_ms))


def unreached(
    driver: Driver, kind: type[FIND | JOIN], ms: int, errors: Sequence[Unavailable] = (NOBODY,)
) -> None:
    """Time passes, and each call fails before it was sent, with one error after another."""
    end, failures = driver.now + ms, cycle(errors)
    while driver.now < end and not isinstance(driver.told_last, Stopped):
        if driver.is_waiting(kind):
            send, _ = driver.waiting(kind)
            driver.open.pop(send.call)
            driver.session.failed(
                send.call, Failure(FailureKind.RETRY, next(failures), 500), driver.now
            )
            driver.take()
        driver.advance(min(100, end - driver.now))


def find_answered(driver: Driver) -> None:
    extras = extras_pb2.ResponseExtras(log_time_ms=LOG_TIME_MS)
    driver.answer(FIND, group_pb2.FindCoordinatorResponse(holdfast=extras))


def test_nobody_answers_within_the_time_and_the_cause_is_told() -> None:
    driver = starting()
    driver.start()
    unreached(driver, FIND, TIMEOUT_MS - 1)
    assert not isinstance(driver.told_last, Stopped)
    unreached(driver, FIND, 1)
    error = driver.stopped.error
    assert type(error) is Unavailable
    assert "within 30000 ms (start_timeout_ms)" in str(error)
    assert "nobody listens there" in str(error)
    assert driver.open == {}


def test_what_differs_from_node_to_node_is_told_of_each() -> None:
    """The last failure alone may be of a node that is down, while another says what is wrong."""
    driver = starting()
    driver.start()
    no_leader = Unavailable("127.0.0.1:2 answers: no leader is known.")
    unreached(driver, FIND, TIMEOUT_MS, [NOBODY, no_leader])

    text = str(driver.stopped.error)
    assert text.count(str(NOBODY).removesuffix(".")) == 1
    assert text.count(str(no_leader).removesuffix(".")) == 1


def test_none_waits_for_as_long_as_it_takes() -> None:
    driver = starting(None)
    driver.start()
    unreached(driver, FIND, 10 * TIMEOUT_MS)
    assert driver.told == []


def test_a_node_that_does_not_lead_is_not_enough() -> None:
    """It answers who leads; but nobody does, or nobody can be reached there."""
    driver = starting()
    driver.start()
    find_answered(driver)
    unreached(driver, JOIN, TIMEOUT_MS)
    assert isinstance(driver.stopped.error, Unavailable)


def test_a_parked_join_does_not_run_against_it() -> None:
    driver = starting()
    driver.start()
    find_answered(driver)
    send, _ = driver.waiting(JOIN)
    driver.session.delivered(send.call, driver.now)
    driver.advance(2_000)  # below a quarter of the session: nothing is repeated (S17)
    driver.freeze(0)
    assert driver.told == []
    driver.fail_call(send, FailureKind.RETRY)  # it ends with its node; now time runs again
    driver.advance(0)
    unreached(driver, JOIN, TIMEOUT_MS - 1)
    assert driver.told == []
    unreached(driver, JOIN, 1)
    assert isinstance(driver.told_last, Stopped)


def test_s17_a_join_that_was_given_up_for_another_does_not_stop_the_time() -> None:
    driver = starting()
    driver.start()
    find_answered(driver)
    send, _ = driver.waiting(JOIN)
    driver.session.delivered(send.call, driver.now)
    for _ in range(40):
        driver.advance(1_000)  # each quarter of the session (2.5 s) the join is repeated
    assert send.call in driver.cancelled
    unreached(driver, JOIN, 2 * TIMEOUT_MS)
    assert isinstance(driver.told_last, Stopped)


def test_s5_a_join_that_may_have_been_taken_is_not_called_unavailable() -> None:
    driver = starting()
    driver.start()
    find_answered(driver)
    driver.fail(JOIN, retry_in_ms=500)  # sent, and its answer is missing
    unreached(driver, JOIN, TIMEOUT_MS)
    assert isinstance(driver.stopped.error, OutcomeUnknown)


def test_once_a_leading_node_has_answered_a_member_waits_for_ever() -> None:
    driver = starting()
    driver.start()
    find_answered(driver)
    required = ErrorCode.ERROR_CODE_MEMBER_ID_REQUIRED
    driver.answer(JOIN, group_pb2.JoinGroupResponse(error_code=required, member_id="m-1"))
    unreached(driver, JOIN, 10 * TIMEOUT_MS)
    assert driver.told == []


def test_s17_a_join_that_another_has_replaced_was_heard_by_the_leading_node() -> None:
    driver = starting()
    driver.start()
    find_answered(driver)
    send, _ = driver.waiting(JOIN)
    driver.fail_call(send, FailureKind.SUPERSEDED)
    driver.advance(0)
    unreached(driver, JOIN, 10 * TIMEOUT_MS)
    assert driver.told == []


def test_time_in_which_nothing_ran_here_does_not_count() -> None:
    """Whoever blocks the loop for long right after the start has not been refused by anybody."""
    driver = starting()
    driver.start()
    driver.fail(FIND, retry_in_ms=500)
    driver.freeze(10 * TIMEOUT_MS)
    driver.advance(0)
    assert driver.told == []
