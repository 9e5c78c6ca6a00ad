"""A member that was chosen and makes no target says so, and no more than that (ADR 57, T-20)."""

from __future__ import annotations

import pytest

from holdfast.client._session.consumer.computation import TOLD_MAX
from holdfast.client._session.consumer.states import State
from holdfast.client._session.session_io import FailureKind
from holdfast.client.errors import AssignmentFailed
from holdfast.v1.errors_pb2 import ErrorCode
from holdfast.v1.group_pb2 import InstallAssignmentResponse
from unit.client._session.consumer.computing_driver import ComputingDriver, Install, Prepare

INVALID_REQUEST = ErrorCode.ERROR_CODE_INVALID_REQUEST
FOR_GOOD = (
    *(INVALID_REQUEST, ErrorCode.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED),
    ErrorCode.ERROR_CODE_GROUP_AUTHORIZATION_FAILED,
)


def reported(driver: ComputingDriver) -> tuple[int, int, int, str]:
    """What the open call says of a failure: epochs of member and group, code, words."""
    request = driver.call(Install)
    assert request.HasField("failure")
    told = request.failure
    return request.member_epoch, told.group_epoch, told.error_code, told.error_message


def test_adr58_an_assignor_that_fails_says_so_under_the_epoch_of_its_picture() -> None:
    """The group asks another member at once, and its log has the reason."""
    driver = ComputingDriver()
    driver.raised(driver.computes(group_epoch=5))
    code = ErrorCode.ERROR_CODE_UNKNOWN_SERVER_ERROR
    assert reported(driver) == (2, 5, code, "it raised")


def test_adr58_an_older_service_takes_the_word_for_no_target() -> None:
    """It does not know `failure`: a target of no members for the epoch would take all from all."""
    driver = ComputingDriver()
    driver.raised(driver.computes(group_epoch=5))
    request = driver.call(Install)
    assert (request.group_epoch, len(request.members)) == (0, 0)


@pytest.mark.parametrize("installs", [False, True], ids=["prepare", "install"])
@pytest.mark.parametrize("code", FOR_GOOD, ids=ErrorCode.Name)
def test_adr58_a_refusal_for_good_is_told_to_the_group(
    code: ErrorCode.ValueType,
    *,
    installs: bool,
) -> None:
    """Who got no picture does not know the group's epoch."""
    driver = ComputingDriver()
    driver.chosen()
    if installs:
        driver.prepares(group_epoch=5)
        driver.made(driver.computing)
    driver.refuses(code, "no")
    assert reported(driver)[:3] == (2, 5 if installs else 0, code)


def test_adr58_a_refused_picture_is_not_told_under_the_epoch_of_an_earlier_one() -> None:
    driver = ComputingDriver()
    driver.made(driver.computes(group_epoch=5))
    driver.other(InstallAssignmentResponse())
    driver.unchanged(2)
    driver.next_beat()
    driver.asks()
    driver.refuses(INVALID_REQUEST)
    assert reported(driver)[1] == 0


@pytest.mark.parametrize("installs", [False, True], ids=["prepare", "install"])
def test_adr58_a_call_that_nothing_heals_is_told_to_the_group(*, installs: bool) -> None:
    """A picture that is too large, or a target that is."""
    driver = ComputingDriver()
    driver.chosen()
    if installs:
        driver.prepares(group_epoch=5)
        driver.made(driver.computing)
    driver.no_answer(FailureKind.FATAL)
    assert reported(driver)[:2] == (2, 5 if installs else 0)


@pytest.mark.parametrize("answers", ["NONE", "INVALID_REQUEST", "STALE_MEMBER_EPOCH", "FATAL"])
def test_adr58_whatever_the_answer_nothing_more_is_told_and_the_member_goes_on(
    answers: str,
) -> None:
    """An older service refuses the field; a word about the word would never end."""
    driver = ComputingDriver()
    driver.raised(driver.computes())
    if answers == "FATAL":
        driver.no_answer(FailureKind.FATAL)
    else:
        driver.refuses(ErrorCode.Value(f"ERROR_CODE_{answers}"))
    assert (driver.others, len(driver.failures), driver.quiet) == ({}, 1, True)
    driver.next_beat()
    driver.asks()
    assert driver.is_in(State.STABLE)
    assert driver.call(Prepare).member_epoch == 2, "its pause is over, and it is asked again"


def test_s14_the_word_that_gets_no_answer_is_said_again() -> None:
    driver = ComputingDriver()
    driver.session._ids.observe(1_700_000_000_000, driver.now)
    driver.raised(driver.computes())
    first = driver.call(Install)
    driver.no_answer()
    driver.advance(100)
    assert driver.call(Install) == first
    assert first.holdfast.request_id


def test_adr58_when_another_is_asked_the_word_is_dropped() -> None:
    driver = ComputingDriver()
    driver.raised(driver.computes())
    driver.next_beat()
    driver.unchanged(2)
    assert driver.others == {}


def test_adr58_only_so_much_of_an_error_is_told() -> None:
    """The user's own error may hold anything."""
    driver = ComputingDriver()
    compute = driver.computes()
    driver.session.not_computed(compute.number, AssignmentFailed("x" * 5_000), driver.now)
    driver.take()
    assert reported(driver)[3] == "x" * TOLD_MAX
