"""Which calls a node follows, what it keeps of them, and that the rest pays nothing."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

from harness.poll import until_async
from holdfast.runtime.groups.moments import CURRENT
from holdfast.server.config.address import Address
from holdfast.server.config.trace_settings import TraceSettings
from holdfast.server.rpc.errors import malformed, status_named
from holdfast.server.traces.traceparent import Parent
from holdfast.server.traces.traces import WAITING_MAX, CallTrace, Traces, wall_ns
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g
from unit.server.nodes import beat, commit, join, served, sync, topic
from unit.server.session_calls import Stream, call, member, parked, request_id, run

if TYPE_CHECKING:
    from unit.server.nodes import Served

ALWAYS = TraceSettings(Address("127.0.0.1", 4317), secure=False, sample_ratio=1)
NEVER = TraceSettings(Address("127.0.0.1", 4317), secure=False, sample_ratio=0)
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAID = (("traceparent", f"00-{TRACE}-{SPAN}-01"),)
NOT_KEPT = (("traceparent", f"00-{TRACE}-{SPAN}-00"),)
COMMITTED = ["admitted", "taken", "decided", "proposed", "sent", "committed", "applied", "answered"]


def kept(node: Served) -> list[CallTrace]:
    """The calls that the node would export."""
    assert node.node.traces is not None
    return node.node.traces.take(100)


def names(trace: CallTrace) -> list[str]:
    return [name for name, _ in trace.seen]


def test_a_call_whose_caller_keeps_the_trace_is_followed_to_its_answer() -> None:
    async def story() -> None:
        async with served(traces=NEVER) as node:
            await topic(node)
            asked, made = commit(7), request_id()
            asked.holdfast.request_id = made
            answer = await node.offset.OffsetCommit(asked, metadata=SAID)
            (trace,) = kept(node)

        assert trace.method == "holdfast.v1.OffsetService/OffsetCommit"
        assert (trace.trace_id, trace.parent) == (
            int(TRACE, 16),
            Parent(int(TRACE, 16), int(SPAN, 16), sampled=True),
        )
        assert trace.span_id not in {0, int(SPAN, 16)}
        assert (names(trace), trace.code) == (COMMITTED, "NONE")
        assert (trace.request_id, trace.stream) == (made, "")
        assert trace.index == answer.holdfast.position.index
        assert trace.began <= trace.seen[0][1] <= trace.seen[-1][1] <= trace.ended

    run(story)


def test_a_call_of_a_session_has_its_own_place_in_a_trace() -> None:
    """The metadata of a stream are those of its first call: each call says it itself."""

    async def story() -> None:
        async with served(traces=NEVER) as node:
            await topic(node)
            stream = Stream(node)
            asked = call(1, commit(7))
            asked.traceparent = SAID[0][1]
            await stream.send(asked, call(2, commit(8)))
            await stream.answer(1)
            await stream.answer(2)
            (trace,) = kept(node)

        assert trace.method == "holdfast.v1.OffsetService/OffsetCommit"
        assert (trace.stream, trace.code, names(trace)) == ("Session", "NONE", COMMITTED)

    run(story)


def test_a_commit_on_its_stream_is_followed_by_chance() -> None:
    """Its message has no place for the caller's own trace."""

    async def story() -> None:
        async with served(traces=ALWAYS) as node:
            await topic(node)
            kept(node)
            stream = node.offset.OffsetCommitStream()
            for offset in (7, 8):
                await stream.write(commit(offset))
                await stream.read()
            await stream.done_writing()
            ended = kept(node)

        assert [(each.method.rpartition("/")[2], each.stream) for each in ended] == [
            ("OffsetCommit", "OffsetCommitStream")
        ] * 2
        assert [(names(each), each.code) for each in ended] == [(COMMITTED, "NONE")] * 2

    run(story)


def test_a_batch_of_heartbeats_is_one_span() -> None:
    """Thousands come at a time, and nearly all are answered from the cache."""

    async def story() -> None:
        async with served(traces=ALWAYS) as node:
            joined = await member(node)
            kept(node)
            stream = node.group.HeartbeatStream()
            for _ in range(2):
                await stream.write(g.HeartbeatBatch(requests=[beat(joined)] * 3))
                await stream.read()
            ended = kept(node)
            stream.cancel()

        first, second = ended
        assert first.method == second.method == "holdfast.v1.GroupService/HeartbeatStream"
        assert names(first) == ["admitted", "taken", "decided", "answered"]
        assert (names(second), second.code) == ([], "NONE")

    run(story)


def test_a_call_of_a_stream_that_fails_ends_with_its_status() -> None:
    refused, crashed = malformed("a", "b"), RuntimeError("a defect")
    told = [status_named(each) for each in (refused, crashed, asyncio.CancelledError())]

    assert told == ["INVALID_ARGUMENT", "INTERNAL", "CANCELLED"]


def test_a_call_that_is_given_up_on_a_session_ends_as_a_cancelled_one() -> None:
    async def story() -> None:
        async with served(traces=NEVER) as node:
            await member(node)
            stream = Stream(node)
            asked = call(1, join(instance_id="i2"))
            asked.traceparent = SAID[0][1]
            await stream.send(asked)
            while not parked(node):  # noqa: ASYNC110 - bounded by the story's limit
                await asyncio.sleep(0)
            await stream.send(given_up=(1,))
            while not (ended := kept(node)):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0)

        assert [(each.code, names(each)[-2:]) for each in ended] == [
            ("CANCELLED", ["applied", "parked"])
        ]

    run(story)


def test_a_heartbeat_from_the_cache_and_a_read_have_a_span_without_moments() -> None:
    """No actor is asked for them, and that is what their spans say."""

    async def story() -> None:
        async with served(traces=NEVER) as node:
            joined = await member(node)
            await node.group.Heartbeat(beat(joined))
            await node.group.Heartbeat(beat(joined), metadata=SAID)
            await node.admin.ListGroups(a.ListGroupsRequest(), metadata=SAID)
            ended = kept(node)

        assert [(each.method.rpartition("/")[2], names(each)) for each in ended] == [
            ("Heartbeat", []),
            ("ListGroups", []),
        ]

    run(story)


def test_an_error_code_and_a_status_are_how_a_call_ended() -> None:
    ended: list[CallTrace] = []

    async def story() -> None:
        async with served(traces=NEVER) as node:

            def both() -> bool:
                ended.extend(kept(node))
                return len(ended) == 2

            joined = await member(node)
            stale = sync(joined)
            stale.generation_id += 1
            await node.group.SyncGroup(stale, metadata=SAID)
            with pytest.raises(grpc.aio.AioRpcError):
                await node.group.FindCoordinator(
                    g.FindCoordinatorRequest(key_type=7), metadata=SAID
                )
            await until_async(both, "both ended: a status is sent within its call")

        assert [each.code for each in ended] == ["ILLEGAL_GENERATION", "INVALID_ARGUMENT"]

    run(story)


def test_a_call_over_many_groups_has_the_moments_of_each() -> None:
    """One call of DeleteGroups asks the actor of every group."""

    async def story() -> None:
        async with served(traces=NEVER) as node:
            await topic(node)
            for group in ("a", "b"):
                await node.offset.OffsetCommit(commit(1, group_id=group))
            asked = a.DeleteGroupsRequest(groups_names=["a", "b"])
            await node.admin.DeleteGroups(asked, metadata=SAID)
            (trace,) = kept(node)

        assert sorted(names(trace)) == sorted(2 * COMMITTED)

    run(story)


def test_a_caller_that_keeps_no_trace_is_not_followed_and_a_silent_one_by_chance() -> None:

    async def story() -> None:
        async with served(traces=ALWAYS) as node:
            await node.group.FindCoordinator(g.FindCoordinatorRequest(), metadata=NOT_KEPT)
            assert kept(node) == []
            await node.group.FindCoordinator(g.FindCoordinatorRequest())
            (trace,) = kept(node)

        assert trace.parent is None
        assert trace.trace_id
        assert trace.span_id

    run(story)


def test_the_ratio_is_the_part_of_the_silent_calls_that_is_followed() -> None:
    traces = Traces(0.25, chance=random.Random(7))
    followed = [traces.begin("s/m", None) for _ in range(4_000)]

    assert 900 < sum(each is not None for each in followed) < 1_100


def test_health_and_reflection_are_not_followed() -> None:
    """Machines ask them all the time, and they tell nothing of the cluster."""

    async def story() -> None:
        async with served(traces=ALWAYS) as node:
            await HealthStub(node.channel).Check(HealthCheckRequest())
            assert kept(node) == []

    run(story)


def test_a_node_without_traces_notes_nothing_whatever_a_caller_says() -> None:
    async def story() -> None:
        async with served() as node:
            await topic(node)
            await node.offset.OffsetCommit(commit(7), metadata=SAID)

            assert node.node.traces is None
            assert not node.node.actors.calls.traced
            assert "holdfast_traces_exported_total" not in node.node.gauges()

    run(story)


def test_what_finds_no_room_is_counted_and_nobody_waits() -> None:
    traces = Traces(1)
    for _ in range(WAITING_MAX + 3):
        trace = traces.begin("s/m", None)
        assert trace is not None
        trace.end(0)

    assert traces.dropped == 3
    assert [gauge() for gauge in traces.gauges().values()] == [0, 0, 3]
    assert len(traces.take(WAITING_MAX + 3)) == WAITING_MAX


def test_the_task_of_a_call_is_left_as_it_was() -> None:
    """A stream that serves further calls in it must not note them there."""

    async def story() -> None:
        traces = Traces(1)

        async def serve(raw: bytes, context: object) -> g.HeartbeatResponse:
            del raw, context
            assert CURRENT.get() is not None
            return g.HeartbeatResponse()

        context: Any = SimpleNamespace(invocation_metadata=lambda: None)
        await traces.unary("s/m", serve)(b"", context)
        assert CURRENT.get() is None

    asyncio.run(story())


def test_times_within_a_call_keep_their_order_and_distance() -> None:
    at = wall_ns(lambda: 1_000.0)

    assert at(1_000.5) - at(1_000.25) == pytest.approx(250_000_000, abs=1_000)
