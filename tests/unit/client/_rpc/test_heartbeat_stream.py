"""One heartbeat stream for all members of a connection: shared, and its end judged once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from harness.poll import until_async, until_told
from holdfast.client._rpc.caller import Caller
from holdfast.client._rpc.heartbeat_stream import BATCH_MAX, HeartbeatStream
from holdfast.client._session.session_io import Failure
from holdfast.v1 import group_pb2
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client.fake_cluster import fake_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from unit.client.fake_cluster import FakeGroup

ResultT = TypeVar("ResultT")
WITHIN_S = 20
PATIENCE_MS = 10_000


def run(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run with a limit that only a hang reaches."""

    async def limited() -> ResultT:
        async with asyncio.timeout(WITHIN_S):
            return await work

    return asyncio.run(limited())


def beat(number: int, group: str = "g") -> group_pb2.HeartbeatRequest:
    return group_pb2.HeartbeatRequest(group_id=group, member_id=f"m-{number}", generation_id=1)


def ignore(_: group_pb2.HeartbeatPush) -> None:
    """For heartbeats that expect no push."""


def test_heartbeats_that_fall_due_together_travel_in_one_message() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            attempts = (stream.attempt(beat(n), PATIENCE_MS, ignore) for n in range(50))
            answers = await asyncio.gather(*attempts)
            assert all(isinstance(one, group_pb2.HeartbeatResponse) for one in answers)
            assert group.streams == 1
            assert group.batches == 1
            stream.close()
            await caller.close()

    run(scenario())


def test_each_member_gets_its_own_answer() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            group.heartbeat_codes = {"m-1": ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID}
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            attempts = (stream.attempt(beat(n), PATIENCE_MS, ignore) for n in range(3))
            answers = await asyncio.gather(*attempts)
            codes = [getattr(answer, "error_code", None) for answer in answers]
            assert codes == [0, ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID, 0]
            stream.close()
            await caller.close()

    run(scenario())


def test_a_push_reaches_its_member_and_no_other() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

            def noting(name: str) -> Callable[[group_pb2.HeartbeatPush], None]:
                return lambda push: heard.put_nowait((name, push.member_id))

            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            for name, request in (("one", beat(1)), ("two", beat(2)), ("other", beat(1, "h"))):
                await stream.attempt(request, PATIENCE_MS, noting(name))
            for member_id in ("m-2", "m-3", "m-1"):
                push = group_pb2.HeartbeatPush(group_id="g", member_id=member_id, generation_id=1)
                await group.pushes.put(push)
            assert await heard.get() == ("two", "m-2")
            assert await heard.get() == ("one", "m-1")
            assert heard.empty()
            stream.close()
            await caller.close()

    run(scenario())


def test_what_breaks_the_stream_fails_all_that_wait_alike_and_is_counted_once() -> None:
    """Each failure counted would double the pause: a hundred members would stay away a second."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            group.mute = True
            group.refuse_stream = [(grpc.StatusCode.UNAVAILABLE, ())]
            caller = Caller([node.address, "127.0.0.1:1"])
            stream = HeartbeatStream(caller)
            attempts = (stream.attempt(beat(n), PATIENCE_MS, ignore) for n in range(100))
            answers = await asyncio.gather(*attempts)
            assert all(isinstance(one, Failure) for one in answers)
            assert len({id(one) for one in answers}) == 1
            assert caller.endpoints.current == "127.0.0.1:1"
            stream.close()
            await caller.close()

    run(scenario())


def test_after_a_failure_another_stream_is_opened() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            group.refuse_stream = [(grpc.StatusCode.UNAVAILABLE, ())]
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            first = await stream.attempt(beat(1), PATIENCE_MS, ignore)
            second = await stream.attempt(beat(1), PATIENCE_MS, ignore)
            assert isinstance(first, Failure)
            assert isinstance(second, group_pb2.HeartbeatResponse)
            stream.close()
            await caller.close()

    run(scenario())


def test_a_silent_node_is_given_up_and_left() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            group.mute = True
            caller = Caller([node.address, "127.0.0.1:1"])
            stream = HeartbeatStream(caller)
            answer = await stream.attempt(beat(1), 200, ignore)
            assert isinstance(answer, Failure)
            assert "no answer within 200 ms" in str(answer.error)
            assert caller.endpoints.current == "127.0.0.1:1"
            stream.close()
            await caller.close()

    run(scenario())


def test_closing_fails_what_is_in_flight() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            group.mute = True
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            attempt = asyncio.create_task(stream.attempt(beat(1), PATIENCE_MS, ignore))
            await until_async(lambda: group.requests["HeartbeatStream"], "the heartbeat")
            stream.close()
            answer = await attempt
            assert isinstance(answer, Failure)
            assert "closed" in str(answer.error)
            await caller.close()

    run(scenario())


def test_no_message_carries_more_heartbeats_than_a_service_takes() -> None:
    """A service refuses a larger message for good, which would stop every member."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            attempts = (
                stream.attempt(beat(n), PATIENCE_MS, ignore) for n in range(BATCH_MAX * 2 + 1)
            )
            answers = await asyncio.gather(*attempts)
            assert all(isinstance(one, group_pb2.HeartbeatResponse) for one in answers)
            assert group.batches == 3
            stream.close()
            await caller.close()

    run(scenario())


def test_a_member_id_that_ended_is_not_listened_for_any_more() -> None:
    """A member that expires time and again would leave a listener each time."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            heard: asyncio.Queue[str] = asyncio.Queue()
            group.heartbeat_codes = {"m-1": ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID}
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            for number in (1, 2):
                await stream.attempt(
                    beat(number), PATIENCE_MS, lambda push: heard.put_nowait(push.member_id)
                )
            for member_id in ("m-1", "m-2"):
                push = group_pb2.HeartbeatPush(group_id="g", member_id=member_id, generation_id=1)
                await group.pushes.put(push)
            assert await heard.get() == "m-2"
            stream.close()
            await caller.close()

    run(scenario())


async def until_moved(stream: HeartbeatStream, group: FakeGroup, streams: int) -> None:
    """Beat until the service has seen so many streams; no heartbeat fails."""

    async def beats() -> bool:
        answer = await stream.attempt(beat(99), PATIENCE_MS, ignore)
        assert not isinstance(answer, Failure)
        return group.streams == streams

    await until_told(beats, "another stream", within_s=WITHIN_S)


def test_a_stream_on_an_aged_connection_is_left_without_a_failed_heartbeat() -> None:
    """What was sent is answered on the stream that is left; further ones go on another."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            await stream.attempt(beat(0), PATIENCE_MS, ignore)
            for streams in (2, 3, 4):
                attempts = (stream.attempt(beat(n), PATIENCE_MS, ignore) for n in range(10))
                under_way = [asyncio.create_task(each) for each in attempts]
                await asyncio.sleep(0)
                stream.connection_ages(node.address)
                await until_moved(stream, group, streams)
                answers = await asyncio.gather(*under_way)
                assert not [one for one in answers if isinstance(one, Failure)]
            stream.close()
            await caller.close()

    run(scenario())


def test_a_push_on_the_stream_that_was_left_still_arrives() -> None:
    """Members are pushed to on the new stream only after their next heartbeat on it."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            heard: asyncio.Queue[str] = asyncio.Queue()
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            await stream.attempt(beat(1), PATIENCE_MS, lambda p: heard.put_nowait(p.member_id))
            stream.connection_ages(node.address)
            await until_moved(stream, group, 2)
            push = group_pb2.HeartbeatPush(group_id="g", member_id="m-1", generation_id=1)
            await group.pushes.put(push)  # the older stream of the fake takes the first one
            assert await heard.get() == "m-1"
            stream.close()
            await caller.close()

    run(scenario())


def test_heartbeats_on_a_stream_that_was_left_fail_if_it_ends_before_their_answers() -> None:
    """Nobody may wait for them until a time-out: the connection has been ended under them."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            await stream.attempt(beat(0), PATIENCE_MS, ignore)
            group.mute = True
            waits = asyncio.create_task(stream.attempt(beat(1), PATIENCE_MS, ignore))
            await until_async(lambda: group.batches == 2, "the second batch")
            stream.connection_ages(node.address)
            other = asyncio.create_task(stream.attempt(beat(2), PATIENCE_MS, ignore))
            await until_async(lambda: group.streams == 2, "another stream")
            (older,) = stream._older
            older.cancel()
            failure = await waits
            assert isinstance(failure, Failure)
            assert "ended before the answer" in str(failure.error)
            other.cancel()
            stream.close()
            await caller.close()

    run(scenario())
