"""Calls that share one stream to a node: together on it, and each with its own end (S5, S17)."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
import pytest

from harness.poll import until_async
from holdfast.client import InvalidArgument, OutcomeUnknown, Unavailable
from holdfast.client._rpc.caller import Caller
from holdfast.client._rpc.session_stream import REQUEST_BYTES_MAX, SessionStreams
from holdfast.client._session.session_io import Failure, FailureKind
from holdfast.v1 import group_pb2, offset_pb2
from unit.client.fake_cluster import fake_cluster
from unit.server.nodes import served, topic, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from unit.client.fake_cluster import FakeGroup, FakeNode

ResultT = TypeVar("ResultT")
WITHIN_S = 20
PATIENCE_MS = 10_000
LONG_S = 120
"""For thousands of calls, also on a machine that is busy with other work."""
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
NOT_APPLIED = (("holdfast-outcome", "not-applied"),)


def run(work: Coroutine[Any, Any, ResultT], within_s: float = WITHIN_S) -> ResultT:
    """Run with a limit that only a hang reaches."""

    async def limited() -> ResultT:
        async with asyncio.timeout(within_s):
            return await work

    return asyncio.run(limited())


@asynccontextmanager
async def cluster(nodes: int = 1) -> AsyncIterator[tuple[FakeGroup, list[FakeNode], Caller]]:
    """Nodes, and a caller on streams that begins at the first of them."""
    async with fake_cluster(nodes) as (group, served):
        caller = Caller(served[0].address, on_streams=True)
        try:
            yield group, served, caller
        finally:
            await caller.close()


def commit(offset: int = 1, request_id: str = "r", words: str = "") -> Any:  # noqa: ANN401 - a message
    partition = offset_pb2.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=words
    )
    topic = offset_pb2.OffsetCommitRequestTopic(name="t", partitions=[partition])
    request = offset_pb2.OffsetCommitRequest(group_id="g", topics=[topic])
    request.holdfast.request_id = request_id
    return request


def join() -> group_pb2.JoinGroupRequest:
    protocol = group_pb2.JoinGroupRequestProtocol(name="range")
    return group_pb2.JoinGroupRequest(group_id="g", protocols=[protocol])


def test_calls_that_are_ready_together_travel_in_one_message() -> None:
    async def scenario() -> None:
        async with cluster() as (group, _, caller):
            await caller.attempt(commit(), PATIENCE_MS)
            group.messages.clear()
            answers = await asyncio.gather(
                *(caller.attempt(commit(n), PATIENCE_MS) for n in range(50))
            )
            assert all(isinstance(one, offset_pb2.OffsetCommitResponse) for one in answers)
            assert [len(numbers) for numbers in group.messages] == [50]
            assert group.sessions == 1

    run(scenario())


def test_a_parked_join_delays_no_call_behind_it() -> None:
    async def scenario() -> None:
        async with cluster() as (group, _, caller):
            group.join_gate.clear()
            joining = asyncio.create_task(caller.attempt(join(), PATIENCE_MS))
            await until_async(lambda: group.requests["JoinGroup"], "the join")
            answer = await caller.attempt(commit(), PATIENCE_MS)
            assert isinstance(answer, offset_pb2.OffsetCommitResponse)
            group.join_gate.set()
            assert isinstance(await joining, group_pb2.JoinGroupResponse)
            assert group.sessions == 1

    run(scenario())


@pytest.mark.parametrize("room", [False, True])
def test_a_node_without_the_stream_or_room_for_it_gets_unary_calls(room: bool) -> None:  # noqa: FBT001 - pytest gives it
    """It is remembered for the connection, so that not every call asks in vain."""

    async def scenario() -> None:
        async with cluster() as (group, _, caller):
            group.has_session = room
            # Two refusals: a second attempt at a stream would meet the second one.
            group.refuse_session = [(grpc.StatusCode.RESOURCE_EXHAUSTED, NOT_APPLIED)] * 2
            for number in range(3):
                answer = await caller.attempt(commit(number), PATIENCE_MS)
                assert isinstance(answer, offset_pb2.OffsetCommitResponse)
            assert len(group.requests["OffsetCommit"]) == 3
            assert group.sessions == 0
            assert len(group.refuse_session) == (1 if room else 2)

    run(scenario())


def test_a_call_that_another_node_serves_goes_to_that_one() -> None:
    async def scenario() -> None:
        async with cluster(nodes=2) as (group, nodes, caller):
            assert caller.endpoints.current == nodes[0].address
            answer = await caller.call(join(), group_pb2.JoinGroupResponse, timeout_ms=PATIENCE_MS)
            assert answer.member_id
            assert caller.endpoints.current == group.leader == nodes[1].address

    run(scenario())


def test_s5_a_call_on_a_stream_that_breaks_has_an_unknown_outcome() -> None:
    async def scenario() -> None:
        async with cluster() as (group, _, caller):
            group.join_gate.clear()
            group.break_session = [(UNAVAILABLE, ())]
            result = await caller.attempt(join(), PATIENCE_MS)
            assert isinstance(result, Failure)
            assert result.kind is FailureKind.RETRY
            assert isinstance(result.error, OutcomeUnknown)

    run(scenario())


def test_s5_a_stream_that_ends_with_not_applied_has_begun_no_unanswered_call() -> None:
    async def scenario() -> None:
        async with cluster() as (group, _, caller):
            group.join_gate.clear()
            group.break_session = [(UNAVAILABLE, NOT_APPLIED)]
            result = await caller.attempt(join(), PATIENCE_MS)
            assert isinstance(result, Failure)
            assert isinstance(result.error, Unavailable)

    run(scenario())


def test_s14_a_change_is_repeated_on_another_stream_under_its_request_id() -> None:
    async def scenario() -> None:
        async with cluster() as (group, _, caller):
            group.refuse["OffsetCommit"] = [(UNAVAILABLE, ())]
            await caller.call(commit(), offset_pb2.OffsetCommitResponse, timeout_ms=PATIENCE_MS)
            asked = group.requests["OffsetCommit"]
            assert [one.holdfast.request_id for one in asked] == ["r", "r"]

    run(scenario())


def test_a_refused_call_ends_alone_with_what_the_unary_call_would_have_raised() -> None:
    async def scenario() -> None:
        async with cluster() as (group, _, caller):
            group.refuse["OffsetCommit"] = [(grpc.StatusCode.INVALID_ARGUMENT, NOT_APPLIED)]
            ends = await asyncio.gather(
                caller.attempt(commit(1), PATIENCE_MS), caller.attempt(commit(2), PATIENCE_MS)
            )
            (refused,) = (one for one in ends if isinstance(one, Failure))
            assert isinstance(refused.error, InvalidArgument)
            assert group.sessions == 1

    run(scenario())


def test_s17_a_cancelled_call_is_given_up_at_the_node() -> None:
    async def scenario() -> None:
        async with cluster() as (group, _, caller):
            group.join_gate.clear()
            joining = asyncio.create_task(caller.attempt(join(), PATIENCE_MS))
            await until_async(lambda: group.requests["JoinGroup"], "the join")
            joining.cancel()
            await until_async(lambda: group.given_up, "the join is given up")
            assert [group.given_up] == group.messages[:1]

    run(scenario())


def test_a_call_has_its_own_time_limit_and_others_go_on() -> None:
    async def scenario() -> None:
        async with cluster() as (group, _, caller):
            group.join_gate.clear()
            patient = asyncio.create_task(caller.attempt(join(), PATIENCE_MS))
            await until_async(lambda: group.requests["JoinGroup"], "the join")
            late = await caller.attempt(join(), 50)
            assert isinstance(late, Failure)
            assert isinstance(late.error, OutcomeUnknown)
            assert "DEADLINE_EXCEEDED" in str(late.error)
            group.join_gate.set()
            assert isinstance(await patient, group_pb2.JoinGroupResponse)
            assert group.sessions == 1

    run(scenario())


def test_a_long_request_goes_by_itself() -> None:
    """It would hold up the calls behind it."""

    async def scenario() -> None:
        async with cluster() as (group, _, caller):
            long = commit(words="x" * REQUEST_BYTES_MAX)
            answer = await caller.attempt(long, PATIENCE_MS)
            assert isinstance(answer, offset_pb2.OffsetCommitResponse)
            assert group.sessions == 0

    run(scenario())


def test_calls_in_flight_are_cancelled_when_the_caller_is_closed() -> None:
    """As unary ones are: whoever closes it does not want them tried again."""

    async def scenario() -> None:
        async with cluster() as (group, _, caller):
            group.join_gate.clear()
            joining = asyncio.create_task(caller.attempt(join(), PATIENCE_MS))
            await until_async(lambda: group.requests["JoinGroup"], "the join")
            await caller.close()
            with pytest.raises(asyncio.CancelledError):
                await joining

    run(scenario())


def wide(group_id: str, partitions: int) -> offset_pb2.OffsetCommitRequest:
    """A commit for many partitions."""
    parts = [
        offset_pb2.OffsetCommitRequestPartition(partition_index=n, committed_offset=n)
        for n in range(partitions)
    ]
    named = offset_pb2.OffsetCommitRequestTopic(name="t", partitions=parts)
    return offset_pb2.OffsetCommitRequest(group_id=group_id, topics=[named])


def test_calls_that_are_ready_together_never_exceed_what_a_node_takes_in_a_message() -> None:
    """A node ends the stream for a message with too long lists, and with it every call on it."""

    async def scenario() -> None:
        async with served() as node:
            await topic(node)
            caller = Caller(node.address, on_streams=True)
            try:
                ready = [caller.attempt(wide(f"g{n}", 100), PATIENCE_MS) for n in range(110)]
                answers = await asyncio.gather(*ready)
                assert {type(one) for one in answers} == {offset_pb2.OffsetCommitResponse}
            finally:
                await caller.close()

    run(scenario())


def test_calls_that_are_given_up_together_end_no_other_call() -> None:
    """A node that stood still makes thousands late at once; a message may give up 2,000."""

    async def scenario() -> None:
        async with served() as node:
            await topic(node)
            caller = Caller(node.address, on_streams=True)
            calls, before = node.node.actors.calls, len(node.replica.proposed)
            try:
                node.replica.hold = True
                waiting = asyncio.create_task(caller.attempt(wide("kept", 1), LONG_S * 1000))
                lost = [
                    asyncio.create_task(caller.attempt(wide("lost", 1), LONG_S * 1000))
                    for _ in range(2_500)
                ]
                await until(lambda: len(calls) == 1 + len(lost))
                for one in lost:
                    one.cancel()
                await until(lambda: len(calls) == 1)
                await until(lambda: len(node.replica.proposed) > before)
                node.replica.hold = False
                node.replica.release()
                assert isinstance(await waiting, offset_pb2.OffsetCommitResponse)
            finally:
                await caller.close()

    run(scenario(), LONG_S)


def test_an_answer_that_comes_with_the_end_of_its_time_is_taken_without_an_error() -> None:
    """A process that stood still finds both at once, in whichever order."""
    limit_s = 0.05

    class Standing:
        """A stream call that answers when the test has let the loop stand still."""

        def __init__(self) -> None:
            self.answers = asyncio.Queue[group_pb2.SessionResponse]()

        async def initial_metadata(self) -> tuple[()]:
            return ()

        async def write(self, message: group_pb2.SessionRequest) -> None:
            one = group_pb2.SessionAnswer(number=message.calls[0].number)
            one.heartbeat.SetInParent()
            self.answers.put_nowait(group_pb2.SessionResponse(answers=[one]))
            until_s = time.monotonic() + 2 * limit_s
            while time.monotonic() < until_s:
                pass  # the process stands still past the time limit

        def __aiter__(self) -> Standing:
            return self

        async def __anext__(self) -> group_pb2.SessionResponse:
            return await self.answers.get()

    async def scenario() -> None:
        raised: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: raised.append(told))
        streams = SessionStreams(lambda _: Standing())
        answer = await streams.ask("a:1", group_pb2.HeartbeatRequest(), limit_s)

        assert isinstance(answer, group_pb2.HeartbeatResponse)
        assert raised == []

    run(scenario())


def test_a_stream_on_an_aged_connection_answers_what_it_was_asked() -> None:
    """A parked join is not cut off; the next call goes on another stream."""

    async def scenario() -> None:
        async with cluster() as (group, (node,), caller):
            parked = asyncio.create_task(caller.attempt(join(), PATIENCE_MS))
            await until_async(lambda: group.sessions == 1, "the first stream")
            sessions = caller.sessions
            assert sessions is not None
            sessions.connection_ages(node.address)
            answer = await caller.attempt(commit(), PATIENCE_MS)
            assert not isinstance(answer, Failure)
            assert group.sessions == 2
            assert not isinstance(await parked, Failure)
            await until_async(lambda: not sessions._older, "the end of the stream that was left")

    run(scenario())
