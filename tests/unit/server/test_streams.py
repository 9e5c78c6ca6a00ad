"""HeartbeatStream with its pushes, and OffsetCommitStream, over a real gRPC server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import grpc
import pytest

from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import offset_pb2 as o
from unit.server.nodes import OTHER, Served, beat, commit, join, served, sync, topic

if TYPE_CHECKING:
    from collections.abc import Iterable


async def member(node: Served, instance_id: str = "i1") -> g.JoinGroupResponse:
    """Join alone and sync."""
    joined = await node.group.JoinGroup(join(instance_id=instance_id))
    await node.group.SyncGroup(sync(joined, instance_id))
    return joined


def batch(number: int, requests: Iterable[g.HeartbeatRequest]) -> g.HeartbeatBatch:
    return g.HeartbeatBatch(batch=number, requests=requests)


def test_a_batch_is_answered_as_many_and_in_order() -> None:
    """group.proto: one response a request, in their order; the batch's number is repeated."""

    async def story() -> None:
        async with served() as node:
            known = beat(await member(node))
            ghost = g.HeartbeatRequest(group_id="g", generation_id=1, member_id="ghost")
            stream = node.group.HeartbeatStream()
            await stream.write(batch(7, [known, ghost, known]))
            answer = cast("g.HeartbeatBatchResponse", await stream.read())
            await stream.done_writing()

            assert answer.batch == 7
            assert [one.error_code for one in answer.responses] == [
                e.ERROR_CODE_NONE,
                e.ERROR_CODE_UNKNOWN_MEMBER_ID,
                e.ERROR_CODE_NONE,
            ]
            assert await stream.read() == grpc.aio.EOF

    asyncio.run(story())


def test_members_are_told_at_once_that_a_join_phase_opened() -> None:
    """REBALANCE_IN_PROGRESS is pushed when RebalanceStarted is applied."""

    async def story() -> None:
        async with served() as node:
            first = await member(node)
            stream = node.group.HeartbeatStream()
            await stream.write(batch(1, [beat(first)]))
            await stream.read()
            newcomer = node.group.JoinGroup(join(instance_id="i2"))
            pushed = cast("g.HeartbeatBatchResponse", await stream.read())
            newcomer.cancel()
            await stream.done_writing()

            assert pushed.batch == 0
            assert [(p.member_id, p.error_code) for p in pushed.pushes] == [
                (first.member_id, e.ERROR_CODE_REBALANCE_IN_PROGRESS)
            ]

    asyncio.run(story())


def test_a_replaced_member_is_told_at_once() -> None:
    """S12: it may act until it hears of it, so it hears of it now."""

    async def story() -> None:
        async with served() as node:
            old = await member(node)
            stream = node.group.HeartbeatStream()
            await stream.write(batch(1, [beat(old)]))
            await stream.read()
            await node.group.JoinGroup(join())
            pushed = cast("g.HeartbeatBatchResponse", await stream.read())
            await stream.done_writing()

            assert [(p.member_id, p.error_code) for p in pushed.pushes] == [
                (old.member_id, e.ERROR_CODE_FENCED_INSTANCE_ID)
            ]

    asyncio.run(story())


def test_one_malformed_heartbeat_does_not_disturb_the_others() -> None:
    """A client that sends garbage does not disturb others."""

    async def story() -> None:
        async with served() as node:
            known = beat(await member(node))
            broken = g.HeartbeatRequest(group_id="g", member_id="x" * 9_999)
            stream = node.group.HeartbeatStream()
            await stream.write(batch(1, [broken, known]))
            answer = cast("g.HeartbeatBatchResponse", await stream.read())
            await stream.done_writing()

            codes = [one.error_code for one in answer.responses]
            assert codes == [e.ERROR_CODE_INVALID_REQUEST, e.ERROR_CODE_NONE]

    asyncio.run(story())


def test_a_node_that_leads_no_more_says_so_on_the_stream() -> None:
    async def story() -> None:
        async with served() as node:
            known = beat(await member(node))
            stream = node.group.HeartbeatStream()
            node.replica.step_down("node-2")
            await stream.write(batch(1, [known]))
            answer = cast("g.HeartbeatBatchResponse", await stream.read())
            await stream.done_writing()

            assert answer.responses[0].error_code == e.ERROR_CODE_NOT_COORDINATOR
            assert answer.responses[0].holdfast.leader_hint == str(OTHER)

    asyncio.run(story())


def test_commits_on_a_stream_are_answered_in_order() -> None:
    """offset.proto: one answer a request, in order, also when one of them is refused."""

    async def story() -> None:
        async with served() as node:
            await topic(node)
            stream = node.offset.OffsetCommitStream()
            for offset in range(50):
                await stream.write(commit(offset, "unknown" if offset == 20 else "t"))
            await stream.done_writing()
            names = [answer.topics[0].name async for answer in stream]
            fetched = await node.offset.OffsetFetch(
                o.OffsetFetchRequest(groups=[o.OffsetFetchRequestGroup(group_id="simple")])
            )

            assert names == ["unknown" if n == 20 else "t" for n in range(50)]
            assert fetched.groups[0].topics[0].partitions[0].committed_offset == 49

    asyncio.run(story())


def test_a_commit_stream_ends_with_the_fate_of_the_first_that_failed() -> None:
    """S5: what was not answered has an unknown outcome, unless the status says not-applied."""

    async def story() -> None:
        async with served() as node:
            node.replica.step_down("node-2")
            stream = node.offset.OffsetCommitStream()
            await stream.write(commit(1))
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await stream.read()
            trailing = dict(await stream.trailing_metadata() or ())

            assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
            assert trailing["holdfast-leader"] == str(OTHER)

    asyncio.run(story())


def test_reads_need_the_lease_or_a_barrier() -> None:
    """S10 c: no lease, then a majority is asked first; stale_ok says how old the answer is."""

    async def story() -> None:
        async with served() as node:
            node.replica.lease = False
            fresh = await node.admin.ListTopics(a.ListTopicsRequest())
            asked = node.replica.barriers
            stale = await node.admin.ListTopics(
                a.ListTopicsRequest(holdfast=x.RequestExtras(stale_ok=True))
            )

            assert asked == 1
            assert node.replica.barriers == 1
            assert fresh.holdfast.applied_index == node.replica.state.applied_index
            assert stale.holdfast.HasField("age_ms")

    asyncio.run(story())


def test_a_stream_carries_members_only_for_as_long_as_they_are_members() -> None:
    """One stream serves a process for weeks, while its members come and go under new ids."""

    async def story() -> None:
        async with served() as node:
            old = await member(node)
            ghost = g.HeartbeatRequest(group_id="g", generation_id=1, member_id="ghost")
            nowhere = g.HeartbeatRequest(group_id="h", generation_id=1, member_id="ghost")
            stream = node.group.HeartbeatStream()
            await stream.write(batch(1, [beat(old), ghost, nowhere]))
            await stream.read()
            assert node.node.streams.carried == 1
            new = await node.group.JoinGroup(join())
            await stream.read()
            assert node.node.streams.carried == 0
            await stream.write(batch(2, [beat(new)]))
            await stream.read()
            assert node.node.streams.carried == 1
            leaving = g.LeaveGroupRequestMember(member_id=new.member_id, group_instance_id="i1")
            await node.group.LeaveGroup(g.LeaveGroupRequest(group_id="g", members=[leaving]))
            assert node.node.streams.carried == 0
            await stream.done_writing()

    asyncio.run(story())
