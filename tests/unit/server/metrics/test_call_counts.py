"""Calls are counted once, by the method and by how they ended, however they came."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from harness.poll import until_async
from holdfast.server.metrics.call_counts import CallCounts, code_of, name_of, status_of
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from unit.server.nodes import beat, commit, join, served, sync, topic

if TYPE_CHECKING:
    from unit.server.nodes import Served


def counted(node: Served) -> dict[tuple[str, str], int]:
    """What a node has counted."""
    rows = node.node.call_counts.rows()
    return {(method, code): count for method, code, count in rows}


async def member(node: Served) -> g.JoinGroupResponse:
    """A group of one, whose member has its assignment."""
    joined = await node.group.JoinGroup(join())
    await node.group.SyncGroup(sync(joined))
    return joined


def test_a_unary_call_counts_by_the_error_code_of_its_answer() -> None:
    async def test() -> None:
        async with served() as node:
            joined = await member(node)
            for _ in range(3):
                await node.group.Heartbeat(beat(joined))
            stranger = g.HeartbeatRequest(group_id="g", member_id="nobody", generation_id=1)
            await node.group.Heartbeat(stranger)

            assert counted(node) == {
                ("JoinGroup", "NONE"): 1,
                ("SyncGroup", "NONE"): 1,
                ("Heartbeat", "NONE"): 3,
                ("Heartbeat", "UNKNOWN_MEMBER_ID"): 1,
            }

    asyncio.run(test())


def test_a_call_that_ends_without_an_answer_counts_by_its_status() -> None:
    async def test() -> None:
        async with served(leading=False) as node:
            with pytest.raises(grpc.aio.AioRpcError):  # its answer has no code at the top
                await node.offset.OffsetCommit(commit(1))
            unreadable: Any = node.channel.unary_unary("/holdfast.v1.GroupService/Heartbeat")
            with pytest.raises(grpc.aio.AioRpcError):
                await unreadable(b"\xff\xff")

            # The status leaves within the call, which counts as it ends.
            await until_async(lambda: len(counted(node)) > 1, "both calls are counted")
            assert counted(node) == {
                ("OffsetCommit", "UNAVAILABLE"): 1,
                ("Heartbeat", "INVALID_ARGUMENT"): 1,
            }

    asyncio.run(test())


def test_calls_on_streams_count_like_unary_ones() -> None:
    """A client that changes from one way to another changes no figure."""

    async def test() -> None:
        async with served() as node:
            await topic(node)
            joined = await member(node)
            before = counted(node)

            batch = g.HeartbeatBatch(batch=1, requests=[beat(joined), beat(joined)])
            beats = [each async for each in node.group.HeartbeatStream(iter([batch]))]
            assert len(beats[0].responses) == 2
            calls = [g.SessionCall(number=1, heartbeat=beat(joined))]
            asked = iter([g.SessionRequest(calls=calls)])
            session = [each async for each in node.group.Session(asked)]
            assert len(session[0].answers) == 1
            assert [each async for each in node.offset.OffsetCommitStream(iter([commit(5)]))]

            now = counted(node)
            more = Counter(now) - Counter(before)
            assert more == {("Heartbeat", "NONE"): 3, ("OffsetCommit", "NONE"): 1}

    asyncio.run(test())


def test_an_answer_without_a_code_of_its_own_is_no_error() -> None:
    assert code_of(b"encoded") == 0
    assert code_of(x.ResponseExtras()) == 0
    assert code_of(g.HeartbeatResponse(error_code=e.ERROR_CODE_REBALANCE_IN_PROGRESS)) == 27


@pytest.mark.parametrize(
    ("code", "name"),
    [(0, "NONE"), (27, "REBALANCE_IN_PROGRESS"), ("ABORTED", "ABORTED"), (9_999, "UNKNOWN")],
)
def test_a_code_has_the_contract_s_name(code: int | str, name: str) -> None:
    assert name_of(code) == name


def test_a_caller_that_goes_away_is_no_failure_of_the_node() -> None:
    assert status_of(asyncio.CancelledError(), None) == "CANCELLED"


def test_counts_that_were_handed_out_are_those_that_are_shown() -> None:
    counts = CallCounts()
    counts.of("A")[0] += 2
    counts.of("A")["UNAVAILABLE"] += 1

    assert list(counts.rows()) == [("A", "NONE", 2), ("A", "UNAVAILABLE", 1)]


def test_a_class_of_answers_without_a_code_is_asked_for_it_once() -> None:
    """To find that a field is missing takes protobuf 3 microseconds, with every commit."""
    asked: list[str] = []

    class Codeless:
        def __getattr__(self, name: str) -> object:
            asked.append(name)
            raise AttributeError(name)

    assert [code_of(Codeless()) for _ in range(3)] == [0, 0, 0]
    assert asked == ["error_code"]
