"""What connections of `holdfast.client` see of a node's bounds on streams and open calls."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import grpc
import pytest

from holdfast.client._rpc.caller import Caller
from holdfast.coordinator.model.events import OffsetsCommitted
from holdfast.server.guard import request_guard
from holdfast.server.rpc.session import open_calls
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import offset_pb2 as o
from unit.server.nodes import Served, commit, served, topic, until
from unit.server.session_calls import Stream, beat_through, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATIENCE_MS = 20_000


@asynccontextmanager
async def callers(node: Served, count: int) -> AsyncIterator[list[Caller]]:
    """So many connections of one process."""
    async with AsyncExitStack() as closing:
        made = [Caller(node.address, on_streams=True) for _ in range(count)]
        for each in made:
            closing.push_async_callback(each.close)
        yield made


async def committed(caller: Caller, offset: int, group_id: str = "g") -> bool:
    """Whether a commit is answered well."""
    request = commit(offset, group_id=group_id)
    answer = await caller.call(request, o.OffsetCommitResponse, timeout_ms=PATIENCE_MS)
    return answer.topics[0].partitions[0].error_code == e.ERROR_CODE_NONE


def offsets(node: Served) -> list[int]:
    """The offsets that the log has, in its order."""
    events = [record.event for record in node.replica.records]
    commits = [event.offsets for event in events if isinstance(event, OffsetsCommitted)]
    return [one.offset for offsets in commits for one in offsets]


def test_connections_of_one_process_share_tcp_and_have_a_stream_each() -> None:
    """To a node they are one caller, whose bounds are those of all of them."""

    async def story() -> None:
        async with served() as node, callers(node, 3) as made:
            await topic(node)
            answers = [await committed(one, offset) for offset, one in enumerate(made)]
            streams = list(node.node._sessions._streams)

            assert answers == [True] * 3
            assert len(streams) == 3
            assert len({stream._peer for stream in streams}) == 1

    run(story)


def test_a_connection_without_room_for_a_stream_calls_unary_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The refusal is clear, so the client knows that no call was begun (S5)."""
    monkeypatch.setattr(request_guard, "STREAMS_EACH_MAX", 2)

    async def story() -> None:
        async with served() as node, callers(node, 4) as made:
            await topic(node)
            answers = [await committed(one, offset) for offset, one in enumerate(made)]
            again = [await committed(one, 10 + offset) for offset, one in enumerate(made)]

            assert all(answers + again)
            assert len(node.node._sessions._streams) == 2
            assert offsets(node) == [0, 1, 2, 3, 10, 11, 12, 13]

    run(story)


def test_a_stream_too_many_is_told_how_many_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_guard, "STREAMS_EACH_MAX", 2)

    async def story() -> None:
        async with served() as node:
            held = [Stream(node) for _ in range(2)]
            await until(lambda: len(node.node._sessions._streams) == len(held))
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await node.group.Session().read()
            told = dict(refused.value.trailing_metadata() or ())

            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "2 streams" in (refused.value.details() or "")
            assert "share it" in (refused.value.details() or "")
            assert told["holdfast-outcome"] == "not-applied"

    run(story)


def test_calls_above_the_bound_wait_and_are_all_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node reads no further, and the client holds back what it cannot send."""
    monkeypatch.setattr(open_calls, "OPEN_MAX", 8)

    async def story() -> None:
        async with served() as node, callers(node, 2) as made:
            await topic(node)
            assert all([await committed(one, 0) for one in made])
            before = len(node.replica.proposed)
            node.replica.hold = True
            asked = [
                asyncio.ensure_future(committed(made[n % 2], n, group_id=f"g{n}"))
                for n in range(1, 1_201)
            ]
            await until(lambda: len(node.replica.proposed) > before)
            await beat_through(node)
            begun = len(node.replica.proposed) - before
            node.replica.hold = False
            node.replica.release()

            assert all(await asyncio.gather(*asked))
            assert begun < len(asked)
            assert sorted(offsets(node)) == [0, 0, *range(1, 1_201)]

    run(story)
