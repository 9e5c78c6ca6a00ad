"""What a member of the heartbeat protocol does with refusals, of heartbeats and of commits."""

from __future__ import annotations

from uuid import UUID

import pytest

from holdfast.client._session.consumer.states import State
from holdfast.client._session.session_io import FailureKind, Identity, Stage, Subscription
from holdfast.client.errors import (
    Fenced,
    GroupFull,
    GroupNotFound,
    InstanceInUse,
    InvalidArgument,
    Rejected,
)
from holdfast.v1 import extras_pb2
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client._session.consumer.driver import (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    MEMBER,
    SESSION_MS,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    Driver,
    answer,
    make_settings,
    owned_in,
    partitions,
)

NOTHING = extras_pb2.ResponseExtras()
STALE_MEMBER_EPOCH = ErrorCode.ERROR_CODE_STALE_MEMBER_EPOCH
GROUP_ID_NOT_FOUND = ErrorCode.ERROR_CODE_GROUP_ID_NOT_FOUND
FATAL_CODES = {
    ErrorCode.ERROR_CODE_INVALID_REQUEST: InvalidArgument,
    ErrorCode.ERROR_CODE_UNSUPPORTED_ASSIGNOR: InvalidArgument,
    ErrorCode.ERROR_CODE_INVALID_REGULAR_EXPRESSION: InvalidArgument,
    ErrorCode.ERROR_CODE_GROUP_MAX_SIZE_REACHED: GroupFull,
    ErrorCode.ERROR_CODE_GROUP_AUTHORIZATION_FAILED: Rejected,
    ErrorCode.ERROR_CODE_UNKNOWN_SERVER_ERROR: Rejected,
}


@pytest.mark.parametrize("code", [FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND])
def test_t13_a_fenced_member_is_silent_until_on_lost_has_returned_and_joins_again(
    code: ErrorCode.ValueType,
) -> None:
    """T-13: with epoch 0 and the same member id."""
    driver = Driver()
    driver.joined(0)
    driver.next_beat()
    driver.slow = True
    driver.refuse(code)
    assert (driver.state, driver.owns()) == (State.FENCED, [])
    driver.advance(10 * SESSION_MS)
    assert driver.quiet
    driver.returns()
    assert driver.is_in(State.JOINING)
    assert (driver.beat.member_epoch, driver.beat.member_id) == (0, MEMBER)
    assert owned_in(driver.beat) == []
    driver.accept(5, 0)
    assert driver.owns() == [0]


def test_t13_why_it_was_lost_is_told_apart() -> None:
    kinds = {}
    for code in (FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND):
        driver = Driver()
        driver.joined(0)
        driver.next_beat()
        driver.refuse(code)
        kinds[code] = driver.lost[0].reason.kind
    assert kinds == {
        FENCED_MEMBER_EPOCH: "expired",
        UNKNOWN_MEMBER_ID: "removed",
        GROUP_ID_NOT_FOUND: "removed",
    }


def test_q3_a_join_that_finds_no_such_group_is_fatal_also_after_a_fence() -> None:
    """T-14, K-M6, K-M30, K-Q3: one that is gone or classic is joined once, which may convert it.

    Is the join answered so, the group may not be converted, and only a person can change that.
    """
    driver = Driver()
    driver.joined(0)
    driver.next_beat()
    driver.refuse(GROUP_ID_NOT_FOUND)
    assert driver.beat.member_epoch == 0
    driver.refuse(GROUP_ID_NOT_FOUND)
    assert driver.is_in(State.FATAL)
    assert isinstance(driver.refused.error, GroupNotFound)
    driver.advance(10 * SESSION_MS)
    assert driver.quiet


def test_a_join_that_is_fenced_itself_is_repeated_after_a_pause() -> None:
    """No node that works says so; one that does must not be asked without end."""
    driver = Driver()
    driver.start()
    driver.refuse(UNKNOWN_MEMBER_ID)
    assert driver.is_in(State.JOINING)
    assert driver.quiet
    driver.advance(1_000)
    assert driver.beat.member_epoch == 0


@pytest.mark.parametrize("code", list(FATAL_CODES))
def test_t14_a_refusal_that_does_not_heal_is_fatal_and_silent(code: ErrorCode.ValueType) -> None:
    driver = Driver()
    driver.joined(0)
    driver.next_beat()
    driver.refuse(code)
    assert (driver.state, driver.session.stage) == (State.FATAL, Stage.FAILED)
    assert isinstance(driver.refused.error, FATAL_CODES[code])
    assert driver.session.error is driver.refused.error
    assert driver.lost[0].partitions == partitions(0)
    driver.advance(10 * SESSION_MS)
    assert driver.quiet


def test_another_subscription_leads_out_of_fatal() -> None:
    """A pattern that does not compile can be corrected."""
    driver = Driver(make_settings(topics=(), topic_regex="(["))
    driver.start()
    driver.refuse(ErrorCode.ERROR_CODE_INVALID_REGULAR_EXPRESSION)
    driver.do("subscribe", Subscription(regex="t.*"))
    assert (driver.state, driver.session.error) == (State.JOINING, None)
    assert (driver.beat.member_epoch, driver.beat.subscribed_topic_regex) == (0, "t.*")
    driver.accept(2, 0)
    assert driver.owns() == [0]


def test_t14_the_same_subscription_leads_out_as_well() -> None:
    """What was refused may not have been the topics, and may pass by now: a full group, a grant.

    A call without effect would leave its caller waiting for partitions that never come.
    """
    driver = Driver()
    driver.start()
    wanted = driver.beat.subscribed_topic_names
    driver.refuse(ErrorCode.ERROR_CODE_GROUP_MAX_SIZE_REACHED)
    driver.do("subscribe", Subscription(driver.session.settings.topics))
    assert (driver.state, driver.session.error) == (State.JOINING, None)
    assert (driver.beat.member_epoch, driver.beat.subscribed_topic_names) == (0, wanted)
    driver.accept(2, 0)
    assert driver.owns() == [0]


def test_out_of_fatal_it_joins_when_the_user_has_heard_of_the_loss() -> None:
    driver = Driver()
    driver.joined(0)
    driver.next_beat()
    driver.slow = True
    driver.refuse(ErrorCode.ERROR_CODE_UNSUPPORTED_ASSIGNOR)
    driver.do("subscribe", Subscription(("u",)))
    assert (driver.state, driver.quiet) == (State.JOINING, True)
    driver.returns()
    assert owned_in(driver.beat) == []


def test_t14_no_subscription_brings_back_whoever_is_fenced_by_another_process() -> None:
    """KIP-345, T-5: two twins that rejoined would fence each other for ever."""
    driver = Driver(make_settings(instance_id="i-1"))
    driver.joined(0)
    driver.next_beat()
    driver.refuse(FENCED_INSTANCE_ID, holder="other")
    assert (driver.state, driver.session.stage) == (State.FATAL, Stage.STOPPED)
    assert isinstance(driver.stopped.error, Fenced)
    assert driver.stopped.error.holder == "other"
    assert driver.lost[0].reason.kind == "fenced"
    driver.do("subscribe", Subscription(("u",)))
    driver.advance(10 * SESSION_MS)
    assert driver.quiet


def test_processes_that_fight_for_an_instance_id_are_told_with_a_pause() -> None:
    """As in the classic protocol: a supervisor would else start them again at once."""
    driver = Driver(make_settings(instance_id="i-1"))
    driver.joined()
    driver.next_beat()
    driver.refuse(FENCED_INSTANCE_ID, takeovers=3)
    assert driver.session.pausing
    driver.advance(1_999)
    assert driver.session.pausing
    driver.advance(1)
    assert isinstance(driver.stopped.error, Fenced)


# --- an instance id that is taken ----------------------------------------------------------------


def waiting_for_the_instance() -> Driver:
    driver = Driver(make_settings(instance_id="i-1", session_timeout_ms=SESSION_MS))
    driver.start()
    driver.refuse(UNRELEASED_INSTANCE_ID, holder="other")
    return driver


def test_t14_bettered_a_taken_instance_id_is_asked_for_again_with_longer_pauses() -> None:
    """T-14, K-N11 bettered: a predecessor that died without a word is gone after a session."""
    driver = waiting_for_the_instance()
    assert driver.is_in(State.JOINING)
    pauses = []
    for _ in range(4):
        began = driver.now
        while driver.quiet:
            driver.advance(10)
        pauses.append(driver.now - began)
        assert driver.beat.member_epoch == 0
        driver.refuse(UNRELEASED_INSTANCE_ID, holder="other")
    assert pauses == [250, 500, 1_000, 2_000]
    driver.advance(4_000)
    driver.accept(2, 0)
    assert driver.owns() == [0]


def test_t14_after_a_whole_session_whoever_has_it_lives_and_that_is_fatal() -> None:
    driver = waiting_for_the_instance()
    began = driver.now
    while driver.state is State.JOINING:
        driver.advance(100)
        if not driver.quiet:
            driver.refuse(UNRELEASED_INSTANCE_ID, holder="other")
    assert SESSION_MS <= driver.now - began <= SESSION_MS + 2_000
    error = driver.refused.error
    assert isinstance(error, InstanceInUse)
    assert error.holder == "other"


def test_n12_bettered_a_place_that_its_own_earlier_life_has_is_released_and_not_waited_for() -> (
    None
):
    """K-N12 bettered: after a fence the group has that life still; nothing of it is owned here."""
    driver = Driver(make_settings(instance_id="i-1"))
    driver.joined(0)
    driver.next_beat()
    driver.refuse(FENCED_MEMBER_EPOCH)
    driver.refuse(UNRELEASED_INSTANCE_ID, holder=MEMBER)
    assert (driver.beat.member_epoch, driver.beat.member_id) == (-2, MEMBER)
    driver.unchanged(-2)
    assert driver.is_in(State.JOINING)
    assert driver.beat.member_epoch == 0
    driver.accept(2, 0)
    assert driver.owns() == [0]


def test_a_place_that_cannot_be_released_so_is_waited_for() -> None:
    """Once is enough to see that it does not help: else it would go on without a pause."""
    driver = Driver(make_settings(instance_id="i-1"))
    driver.start()
    driver.refuse(UNRELEASED_INSTANCE_ID, holder=MEMBER)
    driver.refuse(UNKNOWN_MEMBER_ID)
    driver.refuse(UNRELEASED_INSTANCE_ID, holder=MEMBER)
    assert driver.is_in(State.JOINING)
    assert driver.quiet
    driver.advance(250)
    assert driver.beat.member_epoch == 0


def test_another_answer_in_between_begins_the_wait_anew() -> None:
    driver = waiting_for_the_instance()
    driver.advance(250)
    driver.accept(2)
    driver.next_beat()
    driver.refuse(FENCED_MEMBER_EPOCH)
    driver.now += 2 * SESSION_MS
    driver.refuse(UNRELEASED_INSTANCE_ID)
    assert driver.is_in(State.JOINING)


def test_t14_by_the_group_s_policy_a_taken_instance_id_is_waited_for_as_long_as_it_takes() -> None:
    """`after_session`: the holder's session may end late, and then the place is given."""
    driver = Driver(make_settings(instance_id="i-1", session_timeout_ms=SESSION_MS))
    driver.start()
    began = driver.now
    while driver.now - began < 5 * SESSION_MS:
        if not driver.quiet:
            driver.refuse(UNRELEASED_INSTANCE_ID, holder="other", wait_for_session=True)
        driver.advance(100)
    assert driver.is_in(State.JOINING)


# --- lives ---------------------------------------------------------------------------------------


def life_above(life: str) -> str:
    """That of a holder whose process began a minute later, as its log time says."""
    return str(UUID(int=UUID(life).int + (60_000 << 80)))


def test_a_new_process_whose_clock_was_behind_takes_a_life_just_above_the_holder_s() -> None:
    """Log time may have fallen back at a failover: else the rightful process never gets in."""
    driver = Driver(make_settings(instance_id="i-1"))
    driver.start()
    first, above = driver.beat, life_above(driver.beat.holdfast.life)
    driver.refuse(FENCED_INSTANCE_ID, holder="other", holder_life=above)
    driver.tick()
    again = driver.beat

    assert (again.member_epoch, again.member_id) == (0, first.member_id)
    assert again.holdfast.life > above
    assert UUID(again.holdfast.life).version == 7
    driver.accept(2, 0)
    assert driver.owns() == [0]


def test_a_process_that_was_in_the_group_takes_no_other_life() -> None:
    """Whoever has a higher one came after it: it is the older of two, and stops."""
    driver = Driver(make_settings(instance_id="i-1"))
    driver.joined(0)
    above = life_above(driver.sent[0].holdfast.life)
    driver.next_beat()
    driver.refuse(UNKNOWN_MEMBER_ID)
    driver.refuse(FENCED_INSTANCE_ID, holder="other", holder_life=above)

    assert isinstance(driver.stopped.error, Fenced)
    assert {each.holdfast.life for each in driver.sent} == {driver.sent[0].holdfast.life}


def test_a_process_whose_join_may_have_been_heard_takes_no_other_life() -> None:
    """S12: its first join was taken, and the answer lost; then a newer process took its place."""
    driver = Driver(make_settings(instance_id="i-1"))
    driver.start()
    above = life_above(driver.beat.holdfast.life)
    driver.fail()
    driver.advance(100)
    driver.refuse(FENCED_INSTANCE_ID, holder="other", holder_life=above)

    assert isinstance(driver.stopped.error, Fenced)


def test_a_process_whose_join_was_not_heard_may_take_another_life() -> None:
    """It was told that nothing came of it, so nobody can have come after it."""
    driver = Driver(make_settings(instance_id="i-1"))
    driver.start()
    above = life_above(driver.beat.holdfast.life)
    driver.fail(applied=False)
    driver.advance(100)
    driver.refuse(FENCED_INSTANCE_ID, holder="other", holder_life=above)
    driver.tick()

    assert driver.beat.holdfast.life > above


@pytest.mark.parametrize(
    "told",
    [
        *(None, "", "no-life", "00000000-0000-7000-8000-000000000000"),
        "7fffffff-ffff-7000-8000-000000000000",  # the service takes none above it
    ],
)
def test_a_holder_without_a_higher_life_is_not_outbid(told: str | None) -> None:
    """It would go on so for ever, or take the place of a process that tells no life."""
    driver = Driver(make_settings(instance_id="i-1"))
    driver.start()
    driver.refuse(FENCED_INSTANCE_ID, holder="other", holder_life=told)

    assert isinstance(driver.stopped.error, Fenced)


# --- commits -------------------------------------------------------------------------------------


def test_a_commit_that_is_refused_for_the_membership_fences_as_a_heartbeat_does() -> None:
    driver = Driver()
    driver.joined(0)
    driver.do("refused", UNKNOWN_MEMBER_ID, driver.session.identity, NOTHING)
    assert driver.is_in(State.JOINING)
    assert driver.lost[0].partitions == partitions(0)


def test_a_commit_as_an_older_self_says_nothing_of_the_present_one() -> None:
    driver = Driver()
    driver.joined(0)
    driver.do("refused", UNKNOWN_MEMBER_ID, Identity(MEMBER, 1), NOTHING)
    assert (driver.state, driver.owns()) == (State.STABLE, [0])


def test_a_commit_fenced_by_another_process_ends_the_member() -> None:
    driver = Driver(make_settings(instance_id="i-1"))
    driver.joined(0)
    driver.do("refused", FENCED_INSTANCE_ID, driver.session.identity, NOTHING)
    assert isinstance(driver.stopped.error, Fenced)


def test_t19_a_stale_commit_has_a_heartbeat_sent_that_brings_the_newest_epoch() -> None:
    driver = Driver()
    driver.joined(0)
    before = driver.session.identity
    driver.do("refused", STALE_MEMBER_EPOCH, before, NOTHING)
    assert driver.is_in(State.STABLE)
    assert driver.session.commit_again(STALE_MEMBER_EPOCH, before, partitions(0)) == before
    driver.unchanged(3)
    again = driver.session.commit_again(STALE_MEMBER_EPOCH, before, partitions(0))
    assert again == Identity(MEMBER, 3)


def test_t19_what_was_away_meanwhile_is_not_committed_under_a_newer_epoch() -> None:
    """The other holder may have got further: such a commit would pass the fence."""
    driver = Driver()
    driver.joined(0, 1)
    before = driver.session.identity
    driver.next_beat()
    driver.accept(2, 0)
    driver.returns()
    driver.answer(answer(4, {"t": {0: 7, 1: 9}}))
    session = driver.session
    assert session.commit_again(STALE_MEMBER_EPOCH, before, partitions(1)) is None
    assert session.commit_again(STALE_MEMBER_EPOCH, before, partitions(0)) == Identity(MEMBER, 4)
    assert session.commit_again(STALE_MEMBER_EPOCH, before, partitions(0, 1)) is None


def test_t19_whoever_is_no_member_any_more_does_not_commit_again() -> None:
    driver = Driver()
    driver.joined(0)
    before = driver.session.identity
    driver.slow = True
    driver.next_beat()
    driver.refuse(FENCED_MEMBER_EPOCH)
    assert driver.session.commit_again(STALE_MEMBER_EPOCH, before, partitions(0)) is None
    driver.returns()
    driver.accept(6, 0)
    assert driver.session.commit_again(STALE_MEMBER_EPOCH, before, partitions(0)) is None


def test_other_refusals_of_a_commit_stand() -> None:
    driver = Driver()
    driver.joined(0)
    code = ErrorCode.ERROR_CODE_OFFSET_METADATA_TOO_LARGE
    assert driver.session.commit_again(code, driver.session.identity, partitions(0)) is None


def test_a_failure_that_no_retry_can_heal_is_fatal() -> None:
    driver = Driver()
    driver.joined(0)
    driver.next_beat()
    driver.fail(FailureKind.FATAL)
    assert driver.is_in(State.FATAL)
