"""Kafka's rules for the client: how a member goes, and how an operator removes members."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
import pytest

from holdfast.client import Admin, Rejected
from holdfast.client._session.session_io import Stopped
from holdfast.v1 import group_pb2
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client._session.driver import NONE, Driver, make_settings
from unit.client.fake_cluster import fake_cluster

if TYPE_CHECKING:
    from collections.abc import Coroutine

ResultT = TypeVar("ResultT")
WITHIN_S = 20
HEARTBEAT, LEAVE = group_pb2.HeartbeatRequest, group_pb2.LeaveGroupRequest


def run(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run with a limit that only a hang reaches."""

    async def limited() -> ResultT:
        async with asyncio.timeout(WITHIN_S):
            return await work

    return asyncio.run(limited())


def departing(method: str, instance_id: str | None) -> Driver:
    """A member that owned something, and is told to go; its callbacks are done."""
    driver = Driver(make_settings(instance_id=instance_id))
    driver.stable(0)
    getattr(driver.session, method)(driver.now)
    driver.session.revoked(driver.now)
    driver.take()
    return driver


def test_h6_bettered_a_static_member_that_stops_releases_its_hold_and_does_not_leave() -> None:
    """K-H6 bettered: Kafka's client says nothing, so its successor may have to wait (S12)."""
    driver = departing("restart", "i-1")

    _, release = driver.waiting(HEARTBEAT)
    assert release.holdfast.release
    assert not driver.is_waiting(LEAVE)
    driver.heartbeat(NONE)
    assert driver.stopped == Stopped(None)


def test_h7_a_static_member_that_leaves_for_good_names_its_instance() -> None:
    """K-H7: with its instance id, so that a twin that took its place is not thrown out by it."""
    driver = departing("leave", "i-1")

    _, leave = driver.waiting(LEAVE)
    [member] = leave.members
    assert (member.group_instance_id, member.member_id) == ("i-1", "m-1")


@pytest.mark.parametrize(
    "answer",
    [
        group_pb2.LeaveGroupResponse(error_code=ErrorCode.ERROR_CODE_INVALID_GROUP_ID),
        group_pb2.LeaveGroupResponse(
            members=[
                group_pb2.LeaveGroupResponseMember(
                    member_id="m-1", error_code=ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID
                )
            ]
        ),
    ],
    ids=["top", "entry"],
)
def test_g22_bettered_whatever_its_own_leave_is_answered_the_member_has_stopped(
    answer: group_pb2.LeaveGroupResponse,
) -> None:
    """K-G22 bettered: it owned nothing any more when it asked; who is unknown has left already."""
    driver = departing("leave", None)
    driver.answer(LEAVE, answer)

    assert driver.stopped == Stopped(None)


def test_g25_an_operator_must_name_somebody() -> None:
    """K-G25: an empty list is a mistake of the caller's, found before anything is sent."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), Admin(node.address) as admin:
            with pytest.raises(ValueError, match="Name members"):
                await admin.remove_members("g")
            assert group.requests["RemoveMembers"] == []

    run(scenario())


def test_g26_a_removal_walks_on_to_the_node_that_serves() -> None:
    """K-G26, S14: asked again with the same request id; a refusal that will not change ends it."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), Admin(node.address) as admin:
            not_applied = (("holdfast-outcome", "not-applied"),)
            group.refuse["RemoveMembers"] = [(grpc.StatusCode.UNAVAILABLE, not_applied)] * 2
            results = await admin.remove_members("g", instance_ids=["i-1", "ghost"])

            ids = [each.holdfast.request_id for each in group.requests["RemoveMembers"]]
            assert len(ids) == 3
            assert len(set(ids)) == 1
            assert results["i-1"] is None
            assert isinstance(results["ghost"], Rejected)

    run(scenario())
