"""What people hear: a final refusal ends the member, each thing is logged once, probes are true."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from harness.poll import until_async
from holdfast.client import Fenced, InvalidArgument, Member, OutcomeUnknown
from holdfast.client._session.health import Health, health_of
from holdfast.client._session.session import JOIN_AGAIN_MS
from holdfast.client._session.session_io import Lost, Missing, Settings
from holdfast.v1 import admin_pb2, extras_pb2, group_pb2
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client._session.driver import (
    FENCED_INSTANCE_ID,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    Driver,
    make_settings,
    subscriber,
)
from unit.client.fake_cluster import fake_cluster, said
from unit.server.nodes import served

if TYPE_CHECKING:
    from collections.abc import Sequence

HEARTBEAT, JOIN = group_pb2.HeartbeatRequest, group_pb2.JoinGroupRequest
TOPICS = admin_pb2.ListTopicsRequest
WITHIN_S = 20
GO_ON = {
    NONE,
    UNKNOWN_MEMBER_ID,
    REBALANCE_IN_PROGRESS,
    ErrorCode.ERROR_CODE_MEMBER_ID_REQUIRED,
}
"""After these answers to a join a member goes on (T-1, T-2); the shell keeps others from it."""


def refusal(code: ErrorCode.ValueType) -> group_pb2.JoinGroupResponse:
    extras = extras_pb2.ResponseExtras(message="the service's sentence")
    return group_pb2.JoinGroupResponse(error_code=code, member_id="m-1", holdfast=extras)


@pytest.mark.parametrize("code", sorted(set(ErrorCode.values()) - GO_ON))
def test_every_other_refusal_of_a_join_ends_the_member_with_its_error(
    code: ErrorCode.ValueType,
) -> None:
    """Nothing is worse than a member that waits in silence for what will never come."""
    driver = Driver()
    driver.found()
    driver.answer(JOIN, refusal(code))
    assert driver.stopped.error is not None
    assert "the service's sentence" in str(driver.stopped.error)
    assert driver.open == {}


@pytest.mark.parametrize("code", sorted(GO_ON - {NONE}))
def test_after_a_refusal_that_heals_there_is_another_join(code: ErrorCode.ValueType) -> None:
    driver = Driver()
    driver.found()
    driver.answer(JOIN, refusal(code))
    driver.advance(JOIN_AGAIN_MS)
    assert driver.is_waiting(JOIN)


def test_the_service_s_refusal_of_a_join_is_raised_to_the_user() -> None:
    async def scenario() -> None:
        times = {
            "session_timeout_ms": 50,
            "heartbeat_interval_ms": 10,
        }  # the node takes 100 or more
        async with served() as node, asyncio.timeout(WITHIN_S):
            member = Member(node.address, group="g", topics=["t"], **times)  # type: ignore[arg-type]  # Member's own
            member.start()
            with pytest.raises(InvalidArgument, match="INVALID_SESSION_TIMEOUT"):
                await member.next_owned()

    asyncio.run(scenario())


# --- probes ---


def driver_health(driver: Driver) -> Health:
    return health_of(driver.session, None, driver.now)


def test_s11_a_member_is_not_ready_after_its_lease_has_ended_until_a_heartbeat_is_answered() -> (
    None
):
    driver = Driver()
    assert not driver_health(driver).ready
    driver.stable(0, 1)
    assert driver_health(driver).ready
    driver.freeze(8_000)  # 0.8 of the session, and nobody has ticked yet
    assert not driver_health(driver).ready
    driver.advance(0)
    assert isinstance(driver.told_last, Lost)
    assert (driver_health(driver).phase, driver_health(driver).ready) == ("stable", False)
    driver.heartbeat()
    assert driver_health(driver).ready


def test_s12_a_member_that_waits_for_its_predecessor_is_not_ready_yet() -> None:
    driver = Driver(make_settings(takeover="wait"))
    driver.found()
    driver.joined(predecessor_ms=3_000)
    driver.synced(0)
    driver.advance(0)
    driver.heartbeat()
    assert not driver_health(driver).ready
    for _ in range(3):
        driver.next_heartbeat()
    assert driver_health(driver).ready


def test_a_member_with_nothing_to_own_is_ready() -> None:
    driver = Driver()
    driver.stable()
    assert (driver_health(driver).owned, driver_health(driver).ready) == (0, True)


# --- the logger ---


def lines(caplog: pytest.LogCaptureFixture, least: int) -> list[str]:
    return [record.getMessage() for record in said(caplog, least)]


def missing(driver: Driver) -> list[tuple[str, ...]]:
    return [told.topics for told in driver.told if isinstance(told, Missing)]


def test_a_topic_that_does_not_exist_is_told_once_and_again_if_it_goes_later() -> None:
    there = admin_pb2.ListTopicsResponse(
        topics=[admin_pb2.ListedTopic(name=name, num_partitions=1) for name in ("a", "b")]
    )
    one = admin_pb2.ListTopicsResponse(topics=there.topics[:1])
    driver = Driver()
    driver.found()
    driver.joined(leader="m-1", members=[subscriber("m-1", "a", "b")])
    driver.answer(TOPICS, one)
    driver.synced()
    for answer, told in ((one, 1), (one, 1), (there, 1)):
        while not driver.is_waiting(TOPICS):
            driver.next_heartbeat()
        driver.answer(TOPICS, answer)
        assert missing(driver) == [("b",)] * told


def test_a_topic_that_goes_under_its_owners_is_told_when_nobody_owns_it_any_more() -> None:
    """The warning says that nobody gets a partition: false while the old assignment is in force."""
    driver = Driver()
    driver.found()
    driver.joined(leader="m-1", members=[subscriber("m-1", "t")])
    two = admin_pb2.ListTopicsResponse(topics=[admin_pb2.ListedTopic(name="t", num_partitions=2)])
    driver.answer(TOPICS, two)
    driver.synced(0, 1)
    while not driver.is_waiting(TOPICS):
        driver.next_heartbeat()
    driver.answer(TOPICS, admin_pb2.ListTopicsResponse())
    assert missing(driver) == []
    driver.session.revoked(driver.now)
    driver.take()
    driver.joined(generation=2, leader="m-1", members=[subscriber("m-1", "t")])
    driver.answer(TOPICS, admin_pb2.ListTopicsResponse())
    assert missing(driver) == [("t",)]


def test_the_warning_of_a_missing_topic_says_how_to_create_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with (
            served() as node,
            asyncio.timeout(WITHIN_S),
            Member(node.address, group="g", topics=["documants"]),
        ):
            await until_async(lambda: lines(caplog, logging.WARNING), "the warning")

    asyncio.run(scenario())
    (warning,) = lines(caplog, logging.WARNING)
    assert "'documants'" in warning
    assert "holdfast topic create documants --partitions" in warning


def test_what_stops_a_member_inside_its_block_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), asyncio.timeout(WITHIN_S):
            group.heartbeat_code = FENCED_INSTANCE_ID
            settings: dict[str, Any] = {"instance_id": "i", "heartbeat_interval_ms": 20}
            async with Member(node.address, group="g", topics=["t"], **settings) as member:
                async for _ in member.owned():
                    pass

    with pytest.raises(Fenced):
        asyncio.run(scenario())
    (line,) = lines(caplog, logging.WARNING)
    assert "FENCED_INSTANCE_ID" in line


def test_t5_a_fenced_member_says_each_thing_once(caplog: pytest.LogCaptureFixture) -> None:
    """A real node's words and ours side by side: whose error it is, and who holds the identity."""

    async def scenario() -> tuple[Fenced, Health, str, str]:
        async with served() as node, asyncio.timeout(WITHIN_S):
            settings: dict[str, Any] = {
                "group": "the-group",
                "topics": ["t"],
                "instance_id": "the-instance",
                "heartbeat_interval_ms": 20,
            }
            first = Member(node.address, **settings)
            first.start()
            await until_async(lambda: first.health().ready, "the first")
            own = first.member_id
            async with Member(node.address, **settings) as twin:
                await until_async(lambda: twin.health().ready, "its twin")
                with pytest.raises(Fenced) as caught:
                    await first.wait_stopped()
                return caught.value, first.health(), own, twin.member_id

    error, health, own, holder = asyncio.run(scenario())
    (line,) = lines(caplog, logging.ERROR)
    said = str(health)
    assert line.endswith(said)
    for text in (str(error), said):
        alone = text.replace(holder, "", 1).replace(own, "", 1)  # they begin with the instance id
        once = ("the-instance", "the-group", "FENCED_INSTANCE_ID", "Stop this process")
        assert {word: alone.count(word) for word in once} == dict.fromkeys(once, 1)
        assert text.count(holder) == 1
    assert str(error).count(own) == 1, "whose error it is, wherever it is raised"


def test_a_callback_that_raises_is_logged_once_with_where_it_did(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def on_assigned(_: Sequence[object]) -> None:
        raise KeyError("the user's own")

    async def scenario() -> None:
        async with fake_cluster() as (_, (node,)), asyncio.timeout(WITHIN_S):
            member = Member(node.address, group="g", topics=["t"], on_assigned=on_assigned)
            async with member:
                await member.wait_stopped()

    with pytest.raises(KeyError):
        asyncio.run(scenario())
    (record,) = said(caplog, logging.WARNING)
    assert "the user's own" in record.getMessage()
    assert record.exc_info is not None


def test_s12_a_goodbye_that_nobody_confirms_ends_owned_and_is_only_a_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stops a worker while the service is away must not be met by a traceback."""
    defaults = Settings.__init__.__kwdefaults__ or {}
    monkeypatch.setitem(defaults, "leave_timeout_ms", 100)

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), asyncio.timeout(WITHIN_S):
            group.refuse["Heartbeat"] = [(grpc.StatusCode.UNAVAILABLE, ())] * 1_000
            async with Member(node.address, group="g", topics=["t"], instance_id="i") as member:
                async for _ in member.owned():
                    member.begin_restart()
            with pytest.raises(OutcomeUnknown):
                await member.wait_stopped()  # who asks is told

    asyncio.run(scenario())
    (record,) = said(caplog, logging.WARNING)
    assert record.levelno == logging.WARNING
    assert "has stopped as asked" in record.getMessage(), "it did not leave: it keeps its place"
    assert "has not confirmed" in record.getMessage()
