"""Kafka's rules that a node keeps, not the core: who serves, and what a failed write means."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from holdfast.raft.api import NotLeader, OutcomeUnknown, Overloaded
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import offset_pb2 as o
from unit.server.nodes import Served, beat, join, served, sync, until

if TYPE_CHECKING:
    from collections.abc import Awaitable

JOINED = g.JoinGroupResponse(generation_id=1, member_id="i1-x")
COMMIT = o.OffsetCommitRequest(
    group_id="g",
    generation_id_or_member_epoch=1,
    member_id="i1-x",
    topics=[
        o.OffsetCommitRequestTopic(
            name="t",
            partitions=[o.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
        )
    ],
)
LEAVE = g.LeaveGroupRequest(group_id="g", members=[g.LeaveGroupRequestMember(member_id="i1-x")])


async def code(call: Awaitable[Any]) -> str:
    """What a call came to: its error code, or its gRPC status."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return e.ErrorCode.Name(answer.error_code).removeprefix("ERROR_CODE_")


async def every_call(node: Served) -> dict[str, str]:
    """One of each call of a member, and what it came to."""
    return {
        "join": await code(node.group.JoinGroup(join())),
        "sync": await code(node.group.SyncGroup(sync(JOINED))),
        "heartbeat": await code(node.group.Heartbeat(beat(JOINED))),
        "leave": await code(node.group.LeaveGroup(LEAVE)),
        "commit": await code(node.offset.OffsetCommit(COMMIT)),
    }


def test_a_node_that_has_lost_the_lead_sends_everybody_elsewhere() -> None:
    """K-A13, K-E16, K-F3, K-G2, K-J13, K-L2 bettered: the group is not dead, another node has it.

    Kafka says COORDINATOR_NOT_AVAILABLE while it unloads a group.
    """

    async def story() -> None:
        async with served() as node:
            await member(node)
            node.replica.step_down("node-2")
            came_to = await every_call(node)

            assert came_to.pop("commit") == "UNAVAILABLE", "its answer has no code for the whole"
            assert set(came_to.values()) == {"NOT_COORDINATOR"}

    asyncio.run(story())


def test_a_node_that_never_led_serves_nobody() -> None:
    """K-I8 bettered: it may know no leader yet, but it is no coordinator, and says that."""

    async def story() -> None:
        async with served(leading=False) as node:
            came_to = await every_call(node)

            assert came_to.pop("commit") == "UNAVAILABLE"
            assert set(came_to.values()) == {"NOT_COORDINATOR"}

    asyncio.run(story())


def test_while_the_state_is_loaded_nothing_is_answered() -> None:
    """K-L1, K-K7, K-F8 bettered: not even a heartbeat, since nobody knows who is fenced.

    Kafka answers NONE to every heartbeat then; here nothing is served before the own no-op (S10).
    """

    async def story() -> None:
        async with served(leading=False) as node:
            node.replica.hold = True
            node.replica.lead()
            came_to = await every_call(node)
            described = await code(node.admin.DescribeGroups(a.DescribeGroupsRequest(groups=["g"])))

            assert came_to.pop("commit") == described == "UNAVAILABLE"
            assert set(came_to.values()) == {"COORDINATOR_LOAD_IN_PROGRESS"}

    asyncio.run(story())


def test_groups_are_listed_by_the_node_that_leads_or_not_at_all() -> None:
    """K-K9 bettered: one node has all groups, so no list is ever silently short of some."""

    async def story() -> None:
        async with served() as node:
            await member(node)
            before = await node.admin.ListGroups(a.ListGroupsRequest())
            node.replica.step_down("node-2")

            assert [group.group_id for group in before.groups] == ["g"]
            assert await code(node.admin.ListGroups(a.ListGroupsRequest())) == "NOT_COORDINATOR"

    asyncio.run(story())


async def member(node: Served, instance_id: str = "i1") -> g.JoinGroupResponse:
    """Join alone and sync."""
    joined: g.JoinGroupResponse = await node.group.JoinGroup(join(instance_id=instance_id))
    synced = await node.group.SyncGroup(sync(joined, instance_id))
    assert synced.error_code == e.ERROR_CODE_NONE
    return joined


FAILURES = [
    (NotLeader("node-2"), "NOT_COORDINATOR"),
    (Overloaded("full"), "RESOURCE_EXHAUSTED"),
    (OutcomeUnknown("lost"), "UNAVAILABLE"),
]


@pytest.mark.parametrize(("failure", "said"), FAILURES)
def test_a_new_group_that_could_not_be_written_is_not_there(failure: Exception, said: str) -> None:
    """K-A2, K-F14, K-J43: the joiner is told what it can do, and never an id that nobody knows."""

    async def story() -> None:
        async with served() as node:
            node.replica.fail_next = failure
            first = join(instance_id=None)

            assert await code(node.group.JoinGroup(first)) == said
            assert "g" not in node.replica.state.groups
            assert await code(node.group.JoinGroup(first)) == "MEMBER_ID_REQUIRED"

    asyncio.run(story())


@pytest.mark.parametrize(("failure", "said"), FAILURES)
def test_a_swap_that_could_not_be_written_leaves_the_old_process(
    failure: Exception, said: str
) -> None:
    """K-B7: nothing was adopted, so nothing has to be put back; the old id keeps working."""

    async def story() -> None:
        async with served() as node:
            old = await member(node)
            node.replica.fail_next = failure

            assert await code(node.group.JoinGroup(join())) == said
            assert await code(node.group.Heartbeat(beat(old))) == "NONE"
            assert list(node.replica.state.groups["g"].body.members) == [old.member_id]

    asyncio.run(story())


@pytest.mark.parametrize(("failure", "said"), FAILURES)
def test_an_assignment_that_could_not_be_written_can_be_sent_again(
    failure: Exception, said: str
) -> None:
    """K-E6 bettered: nobody has seen it, so no rebalance is needed; followers go on waiting.

    Kafka wipes all assignments, and starts over.
    """

    async def story() -> None:
        async with served() as node:
            leader, follower = await two_members(node)
            parked = asyncio.ensure_future(_unary(node.group.SyncGroup(sync(follower, "i2"))))
            await until(lambda: len(node.node.actors.calls) > 0)
            node.replica.fail_next = failure
            failed = await code(node.group.SyncGroup(sync(leader)))
            again = await code(node.group.SyncGroup(sync(leader)))

            assert (failed, again) == (said, "NONE")
            assert (await parked).assignment == b"to " + follower.member_id.encode()
            assert node.replica.state.groups["g"].generation == leader.generation_id

    asyncio.run(story())


async def _unary(call: grpc.aio.UnaryUnaryCall[Any, Any]) -> Any:  # noqa: ANN401 - its response
    return await call


async def two_members(node: Served) -> tuple[g.JoinGroupResponse, g.JoinGroupResponse]:
    """Two static members in one generation, nobody synced; the leader comes first."""
    first = await member(node)
    second = asyncio.ensure_future(_unary(node.group.JoinGroup(join(instance_id="i2"))))
    await until(lambda: node.replica.state.groups["g"].state == "PreparingRebalance")
    again = await node.group.JoinGroup(join(member_id=first.member_id))
    return again, await second
