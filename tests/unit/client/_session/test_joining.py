"""Joining and rejoining: T-1 to T-7 of the Kafka client, the group leader's part (KIP-814)."""

from __future__ import annotations

from typing import TypeAlias

import pytest

from holdfast.client._session.protocol import read_assignment
from holdfast.client._session.session_io import Assigned, Grant, Lost, Revoke
from holdfast.client.errors import (
    ClusterFull,
    Fenced,
    Forbidden,
    IncompatibleServer,
    InvalidArgument,
    NoCommonProtocol,
)
from holdfast.v1 import admin_pb2, extras_pb2, group_pb2
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client._session.driver import (
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    Driver,
    join_answer,
    make_settings,
    partitions,
    subscriber,
    sync_answer,
)

JOIN: TypeAlias = group_pb2.JoinGroupRequest
SYNC: TypeAlias = group_pb2.SyncGroupRequest
HEARTBEAT: TypeAlias = group_pb2.HeartbeatRequest
TOPICS: TypeAlias = admin_pb2.ListTopicsRequest
LEAVE: TypeAlias = group_pb2.LeaveGroupRequest
NO_EXTRAS = extras_pb2.ResponseExtras()


def topics_answer(count: int) -> admin_pb2.ListTopicsResponse:
    return admin_pb2.ListTopicsResponse(
        topics=[admin_pb2.ListedTopic(name="t", num_partitions=count)]
    )


def test_a_member_finds_the_log_time_joins_syncs_and_owns() -> None:
    driver = Driver()
    driver.stable(0, 2)
    assert driver.told == [Assigned(partitions(0, 2), Grant("m-1", 1, 7, 0))]
    assert driver.owns()


def test_t1_member_id_required_joins_again_at_once_and_revokes_nothing() -> None:
    driver = Driver()
    driver.found()
    _, first = driver.waiting(JOIN)
    assert first.member_id == ""
    refusal = group_pb2.JoinGroupResponse(
        error_code=ErrorCode.ERROR_CODE_MEMBER_ID_REQUIRED, member_id="given"
    )
    driver.answer(JOIN, refusal)
    _, second = driver.waiting(JOIN)
    assert second.member_id == "given"
    assert second.holdfast.request_id != first.holdfast.request_id  # another body: another call
    assert driver.told == []


def refuse(driver: Driver, kind: type[JOIN | SYNC | HEARTBEAT], code: ErrorCode.ValueType) -> None:
    answers = {
        JOIN: group_pb2.JoinGroupResponse,
        SYNC: group_pb2.SyncGroupResponse,
        HEARTBEAT: group_pb2.HeartbeatResponse,
    }
    driver.answer(kind, answers[kind](error_code=code))


def test_t2_unknown_member_id_on_a_heartbeat_loses_and_joins_without_an_id() -> None:
    driver = Driver()
    driver.stable(0)
    driver.next_heartbeat(UNKNOWN_MEMBER_ID)
    assert isinstance(driver.told_last, Lost)
    assert not driver.owns()
    assert driver.waiting(JOIN)[1].member_id == ""


@pytest.mark.parametrize("kind", [JOIN, SYNC])
def test_t2_unknown_member_id_on_a_join_or_sync_joins_without_an_id(
    kind: type[JOIN | SYNC],
) -> None:
    driver = Driver()
    driver.stable(0)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.session.revoked(driver.now)
    driver.take()
    if kind is SYNC:
        driver.joined(generation=2)
    refuse(driver, kind, UNKNOWN_MEMBER_ID)
    assert driver.waiting(JOIN)[1].member_id == ""


@pytest.mark.parametrize("kind", [HEARTBEAT, SYNC])
def test_t3_illegal_generation_keeps_the_member_id_and_rejoins(
    kind: type[HEARTBEAT | SYNC],
) -> None:
    driver = Driver()
    driver.found()
    driver.joined()
    if kind is HEARTBEAT:
        driver.synced(0)
        driver.advance(1_000)
    refuse(driver, kind, ILLEGAL_GENERATION)
    assert driver.waiting(JOIN)[1].member_id == "m-1"
    lost = [told for told in driver.told if isinstance(told, Lost)]
    assert len(lost) == (kind is HEARTBEAT)
    driver.advance(3_000)
    assert not driver.is_waiting(HEARTBEAT)  # it is in no generation


@pytest.mark.parametrize("code", [UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID, NONE])
def test_t4_a_heartbeat_of_an_older_generation_changes_nothing(
    code: ErrorCode.ValueType,
) -> None:
    driver = Driver()
    driver.stable(0)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.session.revoked(driver.now)
    driver.take()
    driver.advance(1_000)
    old, _ = driver.waiting(HEARTBEAT)
    driver.joined(generation=2)
    driver.synced(1)
    driver.told.clear()
    driver.answer_call(old, group_pb2.HeartbeatResponse(error_code=code))
    assert driver.told == []
    assert driver.owns()
    assert not driver.is_waiting(JOIN)


@pytest.mark.parametrize("kind", [JOIN, SYNC, HEARTBEAT])
def test_t5_fenced_is_final(kind: type[JOIN | SYNC | HEARTBEAT]) -> None:
    driver = Driver(make_settings(instance_id="i-1"))
    driver.found()
    if kind is not JOIN:
        driver.joined()
    if kind is HEARTBEAT:
        driver.synced(0)
        driver.advance(1_000)
    extras = extras_pb2.ResponseExtras(holder="m-2")
    response: group_pb2.JoinGroupResponse | group_pb2.SyncGroupResponse
    answers = {
        JOIN: group_pb2.JoinGroupResponse,
        SYNC: group_pb2.SyncGroupResponse,
        HEARTBEAT: group_pb2.HeartbeatResponse,
    }
    response = answers[kind](error_code=FENCED_INSTANCE_ID, holdfast=extras)
    driver.answer(kind, response)
    error = driver.stopped.error
    assert isinstance(error, Fenced)
    assert error.holder == "m-2"
    assert any(isinstance(told, Lost) for told in driver.told) == (kind is HEARTBEAT)
    sent = len(driver.sent)
    driver.advance(3_600_000)
    assert len(driver.sent) == sent  # it never comes back by itself
    assert driver.open == {}


def test_t5_a_fenced_commit_stops_the_member_too() -> None:
    driver = Driver(make_settings(instance_id="i-1"))
    driver.stable(0)
    extras = extras_pb2.ResponseExtras(holder="m-2")
    driver.session.refused(FENCED_INSTANCE_ID, driver.session.identity, extras, driver.now)
    driver.take()
    assert isinstance(driver.stopped.error, Fenced)


def test_a_commit_refused_for_its_content_concerns_only_the_commit() -> None:
    driver = Driver()
    driver.stable(0)
    code = ErrorCode.ERROR_CODE_OFFSET_METADATA_TOO_LARGE
    driver.session.refused(code, driver.session.identity, NO_EXTRAS, driver.now)
    driver.take()
    assert driver.owns()


def test_t6_a_rebalance_revokes_everything_before_the_join_is_sent() -> None:
    driver = Driver()
    driver.stable(0, 1)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    assert driver.told_last == Revoke(partitions(0, 1))
    assert not driver.is_waiting(JOIN)
    assert driver.owns()  # the user may still write and commit
    driver.session.revoked(driver.now)
    driver.take()
    assert not driver.owns()
    assert driver.waiting(JOIN)[1].member_id == "m-1"


def test_t6_a_pushed_rebalance_counts_at_once_but_only_for_this_generation() -> None:
    driver = Driver()
    driver.stable(0, generation=5)
    push = group_pb2.HeartbeatPush(
        group_id="g", member_id="m-1", generation_id=4, error_code=REBALANCE_IN_PROGRESS
    )
    driver.session.pushed(push, driver.now)
    driver.take()
    assert not any(isinstance(told, Revoke) for told in driver.told)
    push.generation_id = 5
    driver.session.pushed(push, driver.now)
    driver.take()
    assert isinstance(driver.told_last, Revoke)


def test_a_push_of_a_removal_is_confirmed_by_a_heartbeat_and_not_believed() -> None:
    driver = Driver()
    driver.stable(0)
    push = group_pb2.HeartbeatPush(
        group_id="g", member_id="m-1", generation_id=1, error_code=UNKNOWN_MEMBER_ID
    )
    driver.session.pushed(push, driver.now)
    driver.advance(0)
    assert driver.owns()
    assert driver.is_waiting(HEARTBEAT)


def test_the_first_heartbeat_goes_out_with_the_sync_so_that_pushes_reach_the_member() -> None:
    driver = Driver()
    driver.found()
    driver.joined()
    driver.advance(0)
    assert driver.is_waiting(SYNC)
    assert driver.is_waiting(HEARTBEAT)


def test_t7_a_join_waits_for_the_rebalance_timeout_and_five_seconds() -> None:
    driver = Driver(make_settings(rebalance_timeout_ms=60_000, request_timeout_ms=30_000))
    driver.found()
    assert driver.waiting(JOIN)[0].timeout_ms == 65_000
    driver.joined()
    assert driver.waiting(SYNC)[0].timeout_ms == 30_000


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.ERROR_CODE_INCONSISTENT_GROUP_PROTOCOL, NoCommonProtocol),
        (ErrorCode.ERROR_CODE_INVALID_SESSION_TIMEOUT, InvalidArgument),
        (ErrorCode.ERROR_CODE_POLICY_VIOLATION, ClusterFull),
    ],
)
def test_a_refusal_that_cannot_heal_stops_the_member(
    code: ErrorCode.ValueType, error: type[Exception]
) -> None:
    driver = Driver()
    driver.found()
    refuse(driver, JOIN, code)
    assert isinstance(driver.stopped.error, error)


def test_the_group_leader_asks_for_counts_and_hands_in_everybodys_assignment() -> None:
    driver = Driver()
    driver.found()
    members = [subscriber("m-1", "t"), subscriber("m-2", "t", "u")]
    driver.joined(leader="m-1", members=members)
    assert not driver.is_waiting(SYNC)
    assert list(driver.waiting(TOPICS)[1].names) == ["t", "u"]
    driver.answer(TOPICS, topics_answer(3))
    given = {a.member_id: a.assignment for a in driver.waiting(SYNC)[1].assignments}
    assert read_assignment(given["m-1"]).partitions == partitions(0, 1)
    assert read_assignment(given["m-2"]).partitions == partitions(2)
    assert read_assignment(given["m-1"]).counts == {"t": 3, "u": 0}


def test_s7_the_group_leader_whose_assignment_is_refused_stops_loudly() -> None:
    driver = Driver()
    driver.found()
    driver.joined(leader="m-1", members=[subscriber("m-1", "t")])
    driver.answer(TOPICS, topics_answer(3))
    refuse(driver, SYNC, ErrorCode.ERROR_CODE_INVALID_REQUEST)
    driver.answer(LEAVE, group_pb2.LeaveGroupResponse())  # it does not stay behind as a ghost
    assert isinstance(driver.stopped.error, InvalidArgument)


def test_the_group_leader_rejoins_when_a_topic_has_grown_a_follower_never_asks() -> None:
    driver = Driver()
    driver.found()
    driver.joined(leader="m-1", members=[subscriber("m-1", "t")])
    driver.answer(TOPICS, topics_answer(3))
    driver.synced(0, 1, 2)
    for _ in range(5):
        driver.next_heartbeat()
    driver.answer(TOPICS, topics_answer(3))
    assert not any(isinstance(told, Revoke) for told in driver.told)
    for _ in range(5):
        driver.next_heartbeat()
    driver.answer(TOPICS, topics_answer(4))
    assert isinstance(driver.told_last, Revoke)

    follower = Driver()
    follower.stable(0)
    for _ in range(20):
        follower.next_heartbeat()
    assert not any(isinstance(send.request, TOPICS) for send in follower.sent)


@pytest.mark.parametrize(
    ("count", "why"), [(2, "fewer partitions: t"), (0, "deleted: t"), (4, "more partitions: t")]
)
def test_the_group_leader_rejoins_when_a_topic_came_back_smaller_or_is_gone(
    count: int, why: str
) -> None:
    """Else the group stays Stable and owns what does not exist."""
    driver = Driver()
    driver.found()
    driver.joined(leader="m-1", members=[subscriber("m-1", "t")])
    driver.answer(TOPICS, topics_answer(3))
    driver.synced(0, 1, 2)
    while not driver.is_waiting(TOPICS):
        driver.next_heartbeat()
    driver.answer(TOPICS, topics_answer(count) if count else admin_pb2.ListTopicsResponse())
    assert isinstance(driver.told_last, Revoke)
    driver.session.revoked(driver.now)
    driver.take()
    assert driver.waiting(JOIN)[1].reason == f"topics changed: {why}"


def test_a_group_leader_that_may_not_read_a_topic_is_told_what_is_missing() -> None:
    driver = Driver()
    driver.found()
    driver.joined(leader="m-1", members=[subscriber("m-1", "t")])
    why = "ListTopics needs the role reader on topic 't': `holdfast acl grant svc reader --topic t`"
    refused = admin_pb2.ListTopicsResponse(
        error_code=ErrorCode.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED,
        holdfast=extras_pb2.ResponseExtras(message=why),
    )

    driver.answer(TOPICS, refused)
    driver.answer(LEAVE, group_pb2.LeaveGroupResponse())

    assert isinstance(driver.stopped.error, Forbidden)
    assert why in str(driver.stopped.error)


@pytest.mark.parametrize(("count", "rejoins"), [(2, True), (3, False), (4, True)])
def test_kip814_a_restarted_leader_does_not_assign_but_sees_what_changed_while_it_was_away(
    count: int,
    rejoins: bool,  # noqa: FBT001 - a table of cases
) -> None:
    driver = Driver(make_settings(instance_id="i-1"))
    driver.found()
    driver.joined(leader="m-1", skip_assignment=True, members=[subscriber("m-1", "t")])
    assert list(driver.waiting(SYNC)[1].assignments) == []
    driver.answer(SYNC, sync_answer(0, 1, 2, user_data=b'{"counts": {"t": 3}}'))
    driver.advance(0)
    driver.answer(TOPICS, topics_answer(count))
    assert isinstance(driver.told_last, Revoke) == rejoins


def test_unreadable_bytes_of_another_kind_of_client_stop_the_member() -> None:
    driver = Driver()
    driver.found()
    driver.joined()
    driver.answer(SYNC, group_pb2.SyncGroupResponse(assignment=b"\xff\xff"))
    driver.answer(LEAVE, group_pb2.LeaveGroupResponse())
    assert isinstance(driver.stopped.error, IncompatibleServer)


def test_a_static_member_sends_its_instance_id_everywhere() -> None:
    driver = Driver(make_settings(instance_id="i-1"))
    driver.stable(0)
    driver.advance(1_000)
    for send in driver.sent:
        if isinstance(send.request, JOIN | SYNC | HEARTBEAT):
            assert send.request.group_instance_id == "i-1"


def test_the_second_join_answer_of_a_round_is_dropped() -> None:
    """A late answer of a superseded attempt must not start a second life."""
    driver = Driver()
    driver.found()
    first, _ = driver.waiting(JOIN)
    driver.advance(2_500)
    driver.joined(generation=3)
    assert first.call in driver.cancelled
    driver.session.answered(first.call, join_answer(generation=9), driver.now)
    assert driver.session.identity.generation == 3
