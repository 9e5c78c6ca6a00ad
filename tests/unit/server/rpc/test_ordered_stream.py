"""OffsetCommitStream over a real gRPC server: answers in order, and how it ends (S5)."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from holdfast.v1 import offset_pb2 as o
from unit.server.nodes import OTHER, commit, served, topic


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
