"""What one caller may hold of a node at a time: watches, streams, bytes of requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from holdfast.server.guard import request_guard
from holdfast.server.guard.shares import Shares
from holdfast.server.rpc import log_service, ordered_stream
from holdfast.server.rpc.errors import CallFailed
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import log_pb2 as lg
from holdfast.v1 import log_pb2_grpc
from unit.server.nodes import commit, join, served, topic, until

if TYPE_CHECKING:
    from unit.server.nodes import Served


def test_each_has_its_share_and_all_have_theirs() -> None:
    shares = Shares("things", 2, 3, "wait")
    with shares.held("a"), shares.held("a"):
        with pytest.raises(CallFailed, match=r"this caller has 2 things .* 2 are allowed: wait"):
            shares.held("a").__enter__()
        with (
            shares.held("b"),
            pytest.raises(CallFailed, match=r"all callers have 3 things .* 3 are allowed: wait"),
        ):
            shares.held("c").__enter__()
    with shares.held("a"):
        pass


def test_what_is_larger_than_a_share_goes_alone() -> None:
    """Else a single long request, which is allowed, would never pass."""
    shares = Shares("bytes", 10, 20, "wait")
    with shares.held("a", 100), pytest.raises(CallFailed):
        shares.held("a", 1).__enter__()


async def refusal(call: Any) -> tuple[grpc.StatusCode, str, object]:  # noqa: ANN401 - of any kind
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    trailing = dict(failed.value.trailing_metadata() or ())
    return failed.value.code(), failed.value.details() or "", trailing["holdfast-outcome"]


def test_watches_of_one_caller_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event wakes every one of them. One that ends makes room; others are served on."""
    monkeypatch.setattr(log_service, "WATCHES_EACH_MAX", 2)

    async def story() -> None:
        async with served() as node:
            first, second = node.log.Watch(lg.WatchRequest()), node.log.Watch(lg.WatchRequest())
            await first.read()
            await second.read()
            code, sentence, outcome = await refusal(node.log.Watch(lg.WatchRequest()).read())
            first.cancel()
            await _watches_again(node)
            await topic(node)
            heard = await second.read()
            second.cancel()

        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "2 watches" in sentence
        assert "end one of them" in sentence
        assert outcome == "not-applied"
        assert heard is not grpc.aio.EOF

    asyncio.run(story())


async def _watches_again(node: Served) -> None:
    """Try until the watch that was ended has made room."""
    stub = log_pb2_grpc.LogServiceStub(node.channel)
    while True:
        watch = stub.Watch(lg.WatchRequest())
        try:
            await watch.read()
        except grpc.aio.AioRpcError:
            continue
        watch.cancel()
        return


def test_streams_of_one_connection_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds a message of its own in memory; one serves any number of members."""
    monkeypatch.setattr(request_guard, "STREAMS_EACH_MAX", 1)

    async def story() -> None:
        async with served() as node:
            stream = node.group.HeartbeatStream()
            await stream.write(g.HeartbeatBatch(batch=1))
            await stream.read()
            code, sentence, outcome = await refusal(node.offset.OffsetCommitStream().read())
            await stream.write(g.HeartbeatBatch(batch=2))
            answer = await stream.read()

        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "share it" in sentence
        assert outcome == "not-applied"
        assert answer == g.HeartbeatBatchResponse(batch=2)

    asyncio.run(story())


def test_bytes_of_one_connections_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joins may be parked for minutes, and long ones would fill the node. Short ones go on."""
    monkeypatch.setattr(request_guard, "IN_FLIGHT_EACH_MAX", 5_000)

    async def story() -> None:
        async with served() as node:
            await topic(node)
            node.replica.hold = True
            long = join(instance_id="long")
            long.protocols[0].metadata = b"m" * 3_000
            parked = node.group.JoinGroup(long)
            await until(lambda: node.replica.waits)
            code, sentence, outcome = await refusal(node.group.JoinGroup(long))
            node.replica.hold = False
            node.replica.release()
            joined = await parked
            again = await node.group.JoinGroup(long)

        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "bytes of requests in flight" in sentence
        assert outcome == "not-applied"
        assert (joined.error_code, again.error_code) == (0, 0)

    asyncio.run(story())


def test_bytes_of_a_stream_of_commits_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flow control holds the caller back; nothing is refused, and all are answered in order."""
    one = commit(1, group_id="g000").ByteSize()
    monkeypatch.setattr(ordered_stream, "BYTES_MAX", 3 * one)

    async def story() -> None:
        async with served() as node:
            await topic(node)
            before = len(node.replica.proposed)
            node.replica.hold = True
            stream = node.offset.OffsetCommitStream()
            for number in range(10):
                await stream.write(commit(1 + number, group_id=f"g{number:03}"))
            await until(lambda: len(node.replica.proposed) == before + 3)
            await beat_through(node)
            begun = len(node.replica.proposed) - before
            node.replica.hold = False
            node.replica.release()
            answers = [await stream.read() for _ in range(10)]

        assert begun == 3
        assert len(answers) == 10

    asyncio.run(story())


async def beat_through(node: Served) -> None:
    """Whatever was on its way to the node before is there."""
    for _ in range(3):
        await node.group.FindCoordinator(g.FindCoordinatorRequest())
