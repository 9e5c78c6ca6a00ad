"""The member that is chosen to compute a target: two calls, and what may overtake them (T-20).

KIP-848's assignors on the client. Nothing here may end or fence a member: heartbeats alone do.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.client._session.consumer.computation import PAUSE_FIRST_MS
from holdfast.client._session.consumer.states import State
from holdfast.client._session.session_io import Compute, FailureKind, StopComputing
from holdfast.v1.errors_pb2 import ErrorCode
from holdfast.v1.group_pb2 import InstallAssignmentResponse
from unit.client._session.consumer.computing_driver import (
    TARGET,
    ZONES,
    ComputingDriver,
    Install,
    Prepare,
)
from unit.client._session.consumer.driver import (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    MEMBER,
    NONE,
    UNKNOWN_MEMBER_ID,
    Driver,
    answer,
)

STALE = ErrorCode.ERROR_CODE_STALE_MEMBER_EPOCH
INVALID_REQUEST = ErrorCode.ERROR_CODE_INVALID_REQUEST
OF_THE_PAST = (
    *(ErrorCode.ERROR_CODE_GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, STALE, FENCED_INSTANCE_ID),
)
TOLD = (
    *(INVALID_REQUEST, ErrorCode.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED),
    ErrorCode.ERROR_CODE_GROUP_AUTHORIZATION_FAILED,
)


# --- what the member says ------------------------------------------------------------------------


def said(driver: ComputingDriver) -> list[tuple[object, ...]] | None:
    """What the open heartbeat says of assignors; None: nothing."""
    extras = driver.beat.holdfast
    if not extras.HasField("client_assignors"):
        return None
    return [
        (
            *(each.name, each.minimum_version, each.maximum_version),
            *(each.version, each.metadata, each.reason),
        )
        for each in extras.client_assignors.assignors
    ]


def test_a_join_says_the_assignors_in_their_order_and_the_next_heartbeat_does_not() -> None:
    """A conditional field: unset is "as before"."""
    other = ZONES._replace(name="other")
    driver = ComputingDriver(other, ZONES)
    driver.start()
    assert said(driver) == [tuple(other), tuple(ZONES)]
    driver.accept(2)
    driver.next_beat()
    assert said(driver) is None


def test_t16_they_are_said_again_after_a_heartbeat_without_an_answer() -> None:
    driver = ComputingDriver()
    driver.joined()
    driver.next_beat()
    driver.fail(retry_in_ms=0)
    driver.advance(0)
    assert said(driver) == [tuple(ZONES)]


def test_a_member_without_assignors_says_nothing_of_them() -> None:
    driver = Driver()
    driver.start()
    assert not driver.beat.holdfast.HasField("client_assignors")


def test_what_is_new_is_said_at_once_and_what_is_not_is_not() -> None:
    driver = ComputingDriver()
    driver.joined()
    driver.do("say_of_assignors", (ZONES,))
    assert driver.quiet
    wanted = ZONES._replace(reason=3)
    driver.do("say_of_assignors", (wanted,))
    assert said(driver) == [tuple(wanted)]
    driver.unchanged(2)
    driver.next_beat()
    assert said(driver) is None, "the reason asks once"


# --- the way to a target -------------------------------------------------------------------------


def test_t20_asked_it_prepares_computes_installs_and_beats_at_once() -> None:
    driver = ComputingDriver()
    driver.chosen()
    asked = driver.call(Prepare)
    assert (asked.group_id, asked.member_id, asked.member_epoch) == ("g", MEMBER, 2)
    driver.prepares(group_epoch=5)
    assert driver.computing.assignor == "zones"
    driver.made(driver.computing)
    handed_in = driver.call(Install)
    assert (handed_in.member_epoch, handed_in.group_epoch) == (2, 5)
    assert tuple(handed_in.members) == TARGET
    assert driver.quiet
    driver.other(InstallAssignmentResponse())
    assert driver.beat.member_epoch == 2, "its answer brings the target"
    assert driver.is_in(State.STABLE)


def test_the_answer_to_the_join_may_ask_already() -> None:
    driver = ComputingDriver()
    driver.start()
    driver.asks(1, {})
    assert driver.call(Prepare).member_epoch == 1


def test_one_computation_at_a_time_however_often_it_is_asked() -> None:
    """Each answer says so until there is a target."""
    driver = ComputingDriver()
    driver.chosen()
    asked_again(driver)
    driver.prepares()
    asked_again(driver)
    assert driver.others == {}
    driver.made(driver.computing)
    asked_again(driver)
    assert driver.call(Install).group_epoch == 5
    assert driver.told == [driver.told[0], driver.computing]


def asked_again(driver: ComputingDriver) -> None:
    before = dict(driver.others)
    driver.next_beat()
    driver.asks()
    assert driver.others == before


def test_heartbeats_go_on_while_the_assignor_computes() -> None:
    """The lease, too (S11): what is owned stays owned for as long as it takes."""
    driver = ComputingDriver()
    driver.joined(0)
    driver.next_beat()
    driver.asks()
    driver.prepares()
    for _ in range(100):
        driver.next_beat()
        driver.asks()
    assert (driver.owns(), driver.is_in(State.STABLE)) == ([0], True)


def test_it_hands_in_under_the_epoch_that_it_has_by_then() -> None:
    """STALE_MEMBER_EPOCH else: heartbeats have gone on meanwhile."""
    driver = ComputingDriver()
    compute = driver.computes()
    driver.next_beat()
    driver.asks(3)
    driver.made(compute)
    assert driver.call(Install).member_epoch == 3


def test_s14_a_target_without_an_answer_is_handed_in_again_under_the_same_request_id() -> None:
    driver = ComputingDriver()
    driver.session._ids.observe(1_700_000_000_000, driver.now)
    driver.made(driver.computes())
    first = driver.call(Install)
    driver.no_answer()
    driver.advance(100)
    assert driver.call(Install) == first
    assert first.holdfast.request_id


def test_prepare_assignment_without_an_answer_is_asked_again() -> None:
    driver = ComputingDriver()
    driver.chosen()
    driver.no_answer()
    driver.advance(100)
    assert driver.call(Prepare).member_epoch == 2


# --- what overtakes it ---------------------------------------------------------------------------


def test_it_drops_the_computation_when_it_is_not_asked_any_more() -> None:
    """Another was chosen, or a target came meanwhile."""
    driver = ComputingDriver()
    compute = driver.computes()
    driver.next_beat()
    driver.unchanged(2)
    assert driver.told_last == StopComputing(compute.number)
    driver.made(compute)
    assert driver.others == {}, "what it makes all the same is not handed in"


def test_chosen_again_it_begins_anew_and_what_the_older_computation_makes_is_dropped() -> None:
    driver = ComputingDriver()
    older = driver.computes(group_epoch=5)
    driver.next_beat()
    driver.unchanged(2)
    driver.next_beat()
    driver.asks()
    driver.prepares(group_epoch=8)
    newer = driver.computing
    driver.made(older)
    driver.raised(older)
    assert (driver.others, driver.failures) == ({}, [])
    driver.made(newer)
    assert driver.call(Install).group_epoch == 8


@pytest.mark.parametrize("stage", ["prepares", "computes", "installs"])
@pytest.mark.parametrize("end", ["fence", "unsubscribe", "leave", "restart", "refusal"])
def test_a_member_that_goes_or_is_fenced_stops_it_wherever_it_is(stage: str, end: str) -> None:
    driver = ComputingDriver()
    driver.chosen()
    if stage != "prepares":
        driver.prepares()
    if stage == "installs":
        driver.made(driver.computing)
    computing = [each for each in driver.told if isinstance(each, Compute)]
    if end == "fence":
        driver.next_beat()
        driver.refuse(FENCED_MEMBER_EPOCH)
    elif end == "refusal":
        driver.next_beat()
        driver.refuse(INVALID_REQUEST)
    else:
        driver.do(end)
    calls = [each for each in driver.others.values() if isinstance(each.request, Prepare | Install)]
    assert calls == []
    stopped = [each.number for each in driver.told if isinstance(each, StopComputing)]
    assert stopped == [each.number for each in computing if stage == "computes"]
    for each in computing:
        driver.made(each)
    assert not any(isinstance(each.request, Install) for each in driver.others.values())


def test_t17_a_program_that_is_stuck_computes_nothing_more() -> None:
    driver = ComputingDriver(work_timeout_ms=3_000)
    compute = driver.computes()
    driver.next_beat()
    driver.asks()
    driver.advance(3_000)
    assert driver.is_in(State.LEAVING)
    assert StopComputing(compute.number) in driver.told


def test_who_leaves_does_not_begin() -> None:
    driver = ComputingDriver()
    driver.joined(0)
    driver.next_beat()
    driver.do("leave")
    driver.asks()
    assert driver.is_in(State.PREPARE_LEAVING)
    assert driver.others == {}


def test_other_metadata_while_it_computes_is_told_and_the_service_judges() -> None:
    """The target is for an epoch of the past then, and the member is asked once more."""
    driver = ComputingDriver()
    compute = driver.computes()
    driver.do("say_of_assignors", (ZONES._replace(metadata=b"there"),))
    assert said(driver) == [tuple(ZONES._replace(metadata=b"there"))]
    driver.made(compute)
    driver.asks()
    driver.refuses(STALE)
    driver.asks()
    driver.prepares(group_epoch=6)
    driver.made(driver.computing)
    assert driver.call(Install).group_epoch == 6


def test_t13_after_a_fence_it_joins_says_its_assignors_and_may_compute_again() -> None:
    driver = ComputingDriver()
    driver.computes()
    driver.next_beat()
    driver.refuse(UNKNOWN_MEMBER_ID)
    assert (driver.beat.member_epoch, said(driver)) == (0, [tuple(ZONES)])
    driver.asks(4, {})
    assert driver.call(Prepare).member_epoch == 4


# --- refusals and failures -----------------------------------------------------------------------


@pytest.mark.parametrize("installs", [False, True], ids=["prepare", "install"])
@pytest.mark.parametrize("code", OF_THE_PAST, ids=ErrorCode.Name)
def test_a_refusal_of_the_past_is_dropped_and_the_next_heartbeat_decides(
    code: ErrorCode.ValueType,
    *,
    installs: bool,
) -> None:
    """Above all UNKNOWN_MEMBER_ID, which also says that another is the chosen one: no rejoin."""
    driver = ComputingDriver()
    driver.joined(0)
    driver.next_beat()
    driver.asks()
    if installs:
        driver.prepares()
        driver.made(driver.computing)
    driver.refuses(code, "the service's own words")
    assert (driver.state, driver.owns(), driver.failures) == (State.STABLE, [0], [])
    assert driver.quiet is (code != STALE), "the answer to a heartbeat brings the newest epoch"
    if driver.quiet:
        driver.next_beat()
    driver.asks(3)
    assert driver.call(Prepare).member_epoch == 3


@pytest.mark.parametrize("installs", [False, True], ids=["prepare", "install"])
@pytest.mark.parametrize("code", TOLD, ids=ErrorCode.Name)
def test_a_refusal_that_somebody_must_see_is_told_and_ends_nothing(
    code: ErrorCode.ValueType,
    *,
    installs: bool,
) -> None:
    driver = ComputingDriver()
    driver.chosen()
    if installs:
        driver.prepares()
        driver.made(driver.computing)
    driver.refuses(code, "partition 3 is named twice")
    (failed,) = driver.failures
    assert "partition 3 is named twice" in str(failed.error)
    assert driver.is_in(State.STABLE)


def test_an_assignor_that_fails_is_told_and_tried_again_after_longer_and_longer_pauses() -> None:
    """A loop without a pause would cost as much as it logs."""
    driver = ComputingDriver()
    driver.fails(driver.computes())
    began: list[int] = []
    for _ in range(12):
        driver.next_beat()
        driver.asks()
        if driver.others:
            began.append(driver.now)
            driver.prepares()
            driver.fails(driver.computing)
    pauses = [later - sooner for sooner, later in pairwise(began)]
    assert pauses == [2 * PAUSE_FIRST_MS, 4 * PAUSE_FIRST_MS]
    assert len(driver.failures) == 1 + len(began)
    assert driver.is_in(State.STABLE)


def test_a_target_that_is_taken_ends_the_pauses() -> None:
    driver = ComputingDriver()
    driver.fails(driver.computes())
    for fails in (False, True):
        driver.advance(PAUSE_FIRST_MS)
        driver.asks()
        driver.prepares()
        if fails:
            driver.fails(driver.computing)
        else:
            driver.made(driver.computing)
            driver.other(InstallAssignmentResponse(error_code=NONE))
            driver.unchanged(2)
    driver.advance(PAUSE_FIRST_MS)
    driver.asks()
    assert driver.call(Prepare).member_epoch == 2


@pytest.mark.parametrize("installs", [False, True], ids=["prepare", "install"])
def test_a_call_that_nothing_heals_is_told_and_does_not_end_the_member(*, installs: bool) -> None:
    """Such as PERMISSION_DENIED, or an older node that has not the call."""
    driver = ComputingDriver()
    driver.chosen()
    if installs:
        driver.prepares()
        driver.made(driver.computing)
    driver.no_answer(FailureKind.FATAL)
    assert len(driver.failures) == 1
    assert driver.is_in(State.STABLE)
    driver.next_beat()
    driver.answer(answer(2, None))


def test_a_call_in_whose_place_a_later_one_came_is_dropped() -> None:
    driver = ComputingDriver()
    driver.chosen()
    driver.no_answer(FailureKind.SUPERSEDED)
    assert (driver.failures, driver.is_in(State.STABLE)) == ([], True)
    driver.next_beat()
    driver.asks()
    assert driver.call(Prepare).member_epoch == 2
