"""How a member of the heartbeat protocol comes into its group, and what its heartbeats say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.client._session.consumer.states import State
from holdfast.client._session.session_io import Assigned, FailureKind, Grant, Stage, Subscription
from holdfast.client.errors import IncompatibleServer, OutcomeUnknown, Unavailable
from holdfast.v1 import group_pb2
from unit.client._session.consumer.driver import (
    FENCED_INSTANCE_ID,
    INTERVAL_MS,
    MEMBER,
    NONE,
    SESSION_MS,
    UNKNOWN_MEMBER_ID,
    Driver,
    answer,
    fields_in,
    make_settings,
    owned_in,
    partitions,
)

if TYPE_CHECKING:
    from holdfast.v1.errors_pb2 import ErrorCode

EVERYTHING = {
    *("rack_id", "rebalance_timeout_ms", "subscribed_topic_names"),
    *("subscribed_topic_regex", "server_assignor", "topic_partitions"),
}


def rich(**changes: object) -> Driver:
    """A member that has something to say in each field."""
    return Driver(make_settings(rack_id="r-1", server_assignor="uniform", **changes))


def test_t9_the_first_heartbeat_joins_with_epoch_0_all_fields_and_an_id_of_its_own() -> None:
    """T-9, and K-M2: an owned list that is empty, not one that is left out."""
    driver = rich(instance_id="i-1", topic_regex="docs-.*")
    driver.start()
    beat = driver.beat
    assert (beat.member_epoch, beat.member_id, beat.instance_id) == (0, MEMBER, "i-1")
    assert fields_in(beat) == EVERYTHING
    assert list(beat.subscribed_topic_names.names) == ["t"]
    assert (beat.subscribed_topic_regex, beat.server_assignor) == ("docs-.*", "uniform")
    assert (beat.rack_id, beat.rebalance_timeout_ms) == (
        "r-1",
        driver.settings.rebalance_timeout_ms,
    )
    assert owned_in(beat) == []
    assert driver.is_in(State.JOINING)


def test_t9_without_a_regex_a_join_says_so_for_an_older_one_may_be_known() -> None:
    driver = Driver()
    driver.start()
    assert driver.beat.HasField("subscribed_topic_regex")
    assert driver.beat.subscribed_topic_regex == ""
    assert fields_in(driver.beat) == EVERYTHING - {"rack_id", "server_assignor"}


def test_t9_the_member_id_stays_over_fences_and_subscriptions() -> None:
    """KIP-1082: the id is the process's own, not the membership's."""
    driver = Driver()
    driver.joined(0)
    driver.do("unsubscribe")
    driver.returns()
    driver.unchanged(-1)
    driver.do("subscribe", Subscription(("u",)))
    assert {beat.member_id for beat in driver.sent} == {MEMBER}


def test_m13_what_has_not_changed_is_left_out_of_the_next_heartbeats() -> None:
    """K-M13: only who it is, and its epoch; the instance id always (K-N14)."""
    driver = rich(instance_id="i-1")
    driver.joined(0)
    assert fields_in(driver.next_beat()) == set()
    assert driver.beat.instance_id == "i-1"
    assert driver.beat.member_epoch == 2


def test_a_join_without_anything_to_own_is_told_to_the_user_and_stable() -> None:
    driver = Driver()
    driver.joined()
    assert driver.told == [Assigned((), Grant(MEMBER, 2, 0, 0))]
    assert driver.states == [State.UNSUBSCRIBED, State.JOINING, State.STABLE]
    assert driver.session.ready(driver.now)


def test_t10_a_join_that_is_given_partitions_acknowledges_them_at_once() -> None:
    driver = Driver()
    driver.slow = True
    driver.start()
    driver.accept(2, 0, 1)
    assert (driver.state, driver.owns()) == (State.ASSIGNING, [0, 1])
    assert driver.quiet
    driver.returns()
    assert driver.is_in(State.ACKNOWLEDGING)
    assert (driver.beat.member_epoch, owned_in(driver.beat)) == (2, [0, 1])
    assert fields_in(driver.beat) == {"topic_partitions"}
    driver.unchanged(2)
    assert driver.is_in(State.STABLE)


@pytest.mark.parametrize("retry_in_ms", [0, 300])
def test_t15_t16_a_heartbeat_without_an_answer_is_followed_by_a_full_one(retry_in_ms: int) -> None:
    """What the group has heard of it, nobody knows."""
    driver = rich()
    driver.joined(0)
    driver.next_beat()
    driver.fail(retry_in_ms=retry_in_ms)
    driver.advance(retry_in_ms)
    assert fields_in(driver.beat) == EVERYTHING
    assert (driver.beat.member_epoch, owned_in(driver.beat)) == (2, [0])
    driver.unchanged(2)
    assert fields_in(driver.next_beat()) == set()


def test_a_join_whose_answer_was_lost_is_repeated_as_it_was() -> None:
    """K-M9: epoch 0 again is idempotent."""
    driver = Driver()
    driver.start()
    first = driver.beat
    driver.fail(retry_in_ms=0)
    driver.advance(0)
    again = driver.beat
    assert again.holdfast.beat == first.holdfast.beat + 1, "S26: what is said anew has its number"
    again.holdfast.beat = first.holdfast.beat
    assert again == first
    driver.accept(2, 0)
    assert driver.owns() == [0]


def test_one_heartbeat_at_a_time_and_a_late_answer_changes_nothing() -> None:
    driver = Driver()
    driver.start()
    late = driver.waiting.call
    driver.advance(3 * INTERVAL_MS)
    assert len(driver.sent) == 1
    driver.fail(retry_in_ms=0)
    driver.advance(0)
    driver.session.answered(late, answer(9, {"t": {0: 7}}), driver.now)
    driver.take()
    assert (driver.state, driver.owns()) == (State.JOINING, [])


def test_an_answer_is_taken_once() -> None:
    """A doubled one belongs to no call any more."""
    driver = Driver()
    driver.start()
    call = driver.waiting.call
    driver.accept(2, 0)
    driver.session.answered(call, answer(3, {"t": {}}), driver.now)
    driver.take()
    assert (driver.session.identity.generation, driver.owns()) == (2, [0])


def test_the_groups_interval_counts_from_when_the_last_one_was_sent() -> None:
    driver = Driver()
    driver.start()
    driver.now += 400
    driver.answer(answer(2, {}, interval_ms=2_000))
    driver.advance(1_599)
    assert driver.quiet
    driver.advance(1)
    assert not driver.quiet


def test_at_least_three_heartbeats_fall_due_in_a_session_whatever_the_group_tells() -> None:
    driver = Driver()
    driver.start()
    driver.answer(answer(2, {}, interval_ms=60_000))
    driver.advance(SESSION_MS // 3)
    assert not driver.quiet


def test_s11_a_service_that_tells_no_session_timeout_is_not_joined() -> None:
    """Ownership would end nobody knows when."""
    driver = Driver()
    driver.start()
    response = answer(2, {"t": {0: 7}})
    response.holdfast.ClearField("session_timeout_ms")
    driver.answer(response)
    assert isinstance(driver.refused.error, IncompatibleServer)
    assert driver.owns() == []


def test_s13_a_partition_without_a_token_is_not_taken() -> None:
    driver = Driver()
    driver.start()
    response = answer(2, {"t": {0: 7, 1: 8}})
    del response.holdfast.partition_tokens[0].fencing_tokens[1:]
    driver.answer(response)
    assert isinstance(driver.refused.error, IncompatibleServer)
    assert driver.session.held == {}


def test_s13_each_partition_comes_under_the_token_of_its_own_grant() -> None:
    driver = Driver()
    driver.start()
    driver.answer(answer(5, {"t": {0: 7, 1: 9}}, predecessor_ms=250))
    old, new = Grant(MEMBER, 5, 7, 250), Grant(MEMBER, 5, 9, 250)
    assert driver.told == [Assigned(partitions(0), old), Assigned(partitions(1), new)]


def test_an_older_node_ends_the_member_with_an_error_that_says_so() -> None:
    """The caller makes IncompatibleServer of UNIMPLEMENTED: trying again cannot help."""
    driver = Driver()
    driver.start()
    driver.fail(FailureKind.FATAL)
    assert driver.is_in(State.FATAL)
    assert driver.session.stage is Stage.FAILED
    assert isinstance(driver.refused.error, OutcomeUnknown)


def test_start_timeout_ends_a_member_that_no_node_has_answered() -> None:
    driver = Driver(make_settings(start_timeout_ms=2_000))
    driver.start()
    driver.fail(applied=False, retry_in_ms=1_000)
    driver.advance(2_000)
    assert isinstance(driver.stopped.error, OutcomeUnknown | Unavailable)


def test_start_timeout_does_not_count_once_a_node_has_answered() -> None:
    driver = Driver(make_settings(start_timeout_ms=2_000))
    driver.joined()
    driver.next_beat()
    for _ in range(5):
        driver.fail(retry_in_ms=1_000)
        driver.advance(1_000)
    assert driver.session.stage is Stage.RUNNING


def test_a_push_is_a_hint_to_beat_now_and_proves_nothing() -> None:
    driver = Driver()
    driver.joined(0)
    ends_at_ms = driver.session.lease_ends_at_ms
    driver.now += 100
    driver.do("pushed", group_pb2.HeartbeatPush(group_id="g", member_id=MEMBER, generation_id=3))
    assert fields_in(driver.beat) == set()
    assert driver.session.lease_ends_at_ms == ends_at_ms
    driver.unchanged(2)
    driver.do("pushed", group_pb2.HeartbeatPush(group_id="g", member_id="other"))
    assert driver.quiet


def pushed(driver: Driver, epoch: int, code: ErrorCode.ValueType = NONE) -> None:
    """A push to the member, about this epoch."""
    push = group_pb2.HeartbeatPush(
        group_id="g", member_id=MEMBER, generation_id=epoch, error_code=code
    )
    driver.do("pushed", push)


def test_a_push_beside_an_open_heartbeat_has_another_one_go_out_right_after_its_answer() -> None:
    """T-10: one at a time; the answer may be older than the hint."""
    driver = Driver()
    driver.joined(0)
    driver.advance(INTERVAL_MS)
    sent = len(driver.sent)
    pushed(driver, 3)
    pushed(driver, 3)
    assert len(driver.sent) == sent
    driver.unchanged(2)
    assert len(driver.sent) == sent + 1
    driver.unchanged(2)
    assert driver.quiet, "many hints are one"


def test_a_push_about_an_epoch_that_the_member_has_passed_changes_nothing() -> None:
    """An answer has overtaken it."""
    driver = Driver()
    driver.joined(0, epoch=5)
    due = driver.session.wake_at_ms
    driver.now += 100
    pushed(driver, 4)
    assert driver.quiet
    assert driver.session.wake_at_ms == due
    pushed(driver, 5)
    assert not driver.quiet, "it may wait for a partition that is free now"


def test_a_push_to_a_fenced_or_removed_member_is_asked_about_whatever_its_epoch() -> None:
    """S12: the answer of the group counts; the group may be gone, and has no epoch then."""
    for code in (FENCED_INSTANCE_ID, UNKNOWN_MEMBER_ID):
        driver = Driver()
        driver.joined(0)
        driver.now += 100
        pushed(driver, -1, code)
        assert not driver.quiet
        assert driver.owns() == [0], "a hint takes nothing away"


def test_a_push_while_the_join_is_open_has_the_member_beat_when_it_is_answered() -> None:
    """Somebody gave a partition up for it while the answer to its join was on its way."""
    driver = Driver()
    driver.start()
    pushed(driver, 3)
    driver.accept(3)
    assert driver.beat.member_epoch == 3


def test_a_push_before_the_join_goes_out_changes_nothing() -> None:
    """It is about an earlier life under the same id."""
    driver = Driver()
    driver.do("pushed", group_pb2.HeartbeatPush(group_id="g", member_id=MEMBER, generation_id=3))
    assert driver.sent == []


# --- the subscription changes --------------------------------------------------------------------


def test_m16_another_subscription_is_said_at_once_and_alone() -> None:
    """K-M16: it does not wait for the next heartbeat."""
    driver = rich()
    driver.joined(0)
    driver.do("subscribe", Subscription(("t", "u")))
    assert list(driver.beat.subscribed_topic_names.names) == ["t", "u"]
    assert fields_in(driver.beat) == {"subscribed_topic_names"}


def test_the_same_subscription_says_nothing() -> None:
    driver = Driver()
    driver.joined(0)
    driver.do("subscribe", Subscription(("t",)))
    assert driver.quiet


def test_from_a_pattern_to_names_takes_the_pattern_back() -> None:
    """An empty pattern means none any more; one that is left out would stay."""
    driver = Driver(make_settings(topics=(), topic_regex="t.*"))
    driver.joined(0)
    driver.do("subscribe", Subscription(("t",)))
    assert driver.beat.HasField("subscribed_topic_regex")
    assert driver.beat.subscribed_topic_regex == ""


def test_a_subscription_that_changes_while_a_heartbeat_is_open_goes_out_after_it() -> None:
    driver = Driver()
    driver.start()
    driver.do("subscribe", Subscription(("u",)))
    assert len(driver.sent) == 1
    driver.answer(answer(2, {}))
    assert list(driver.beat.subscribed_topic_names.names) == ["u"]


def test_unsubscribing_and_subscribing_again_joins_anew() -> None:
    driver = Driver()
    driver.joined(0)
    driver.do("unsubscribe")
    driver.returns()
    assert driver.beat.member_epoch == -1
    driver.unchanged(-1)
    assert (driver.state, driver.session.stage) == (State.UNSUBSCRIBED, Stage.RUNNING)
    assert driver.quiet
    assert driver.session.wake_at_ms is None
    driver.do("subscribe", Subscription(("t",)))
    assert (driver.state, driver.beat.member_epoch) == (State.JOINING, 0)
    driver.accept(4, 0)
    assert driver.owns() == [0]


def test_subscribing_while_it_unsubscribes_joins_when_that_is_over() -> None:
    driver = Driver()
    driver.joined(0)
    driver.do("unsubscribe")
    driver.do("subscribe", Subscription(("u",)))
    assert driver.is_in(State.PREPARE_LEAVING)
    driver.returns()
    driver.unchanged(-1)
    assert driver.is_in(State.JOINING)
    assert list(driver.beat.subscribed_topic_names.names) == ["u"]


def test_unsubscribing_keeps_the_session_alive_while_on_revoked_runs() -> None:
    driver = Driver()
    driver.joined(0)
    driver.do("unsubscribe")
    assert driver.next_beat().member_epoch == 2
    assert driver.owns() == [0]
