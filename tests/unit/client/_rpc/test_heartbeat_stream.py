"""One heartbeat stream for all members of a connection: shared, and its end judged once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from harness.poll import until_async, until_told
from holdfast.client._rpc.caller import Caller
from holdfast.client._rpc.clock import boot_ms
from holdfast.client._rpc.heartbeat_stream import BATCH_MAX, HeartbeatStream, carries
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


def test_heartbeats_that_fall_due_together_travel_in_one_message() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            attempts = (stream.attempt(beat(n), PATIENCE_MS) for n in range(50))
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
            attempts = (stream.attempt(beat(n), PATIENCE_MS) for n in range(3))
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
                stream.listen(request.group_id, request.member_id, noting(name))
                await stream.attempt(request, PATIENCE_MS)
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
            attempts = (stream.attempt(beat(n), PATIENCE_MS) for n in range(100))
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
            first = await stream.attempt(beat(1), PATIENCE_MS)
            second = await stream.attempt(beat(1), PATIENCE_MS)
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
            answer = await stream.attempt(beat(1), 200)
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
            attempt = asyncio.create_task(stream.attempt(beat(1), PATIENCE_MS))
            await until_async(lambda: group.requests["HeartbeatStream"], "the heartbeat")
            stream.close()
            answer = await attempt
            assert isinstance(answer, Failure)
            assert "closed" in str(answer.error)
            await caller.close()

    run(scenario())


def test_what_is_said_of_assignors_goes_where_it_holds_up_no_heartbeat() -> None:
    """It may change the group: batches are answered in order, and this one waits for the log."""
    beat = group_pb2.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=2)
    assert carries(beat)
    beat.holdfast.client_assignors.SetInParent()
    assert not carries(beat)


def test_no_message_carries_more_heartbeats_than_a_service_takes() -> None:
    """A service refuses a larger message for good, which would stop every member."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            attempts = (stream.attempt(beat(n), PATIENCE_MS) for n in range(BATCH_MAX * 2 + 1))
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
                stream.listen("g", f"m-{number}", lambda push: heard.put_nowait(push.member_id))
                await stream.attempt(beat(number), PATIENCE_MS)
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
        answer = await stream.attempt(beat(99), PATIENCE_MS)
        assert not isinstance(answer, Failure)
        return group.streams == streams

    await until_told(beats, "another stream", within_s=WITHIN_S)


def test_a_stream_on_an_aged_connection_is_left_without_a_failed_heartbeat() -> None:
    """What was sent is answered on the stream that is left; further ones go on another."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            await stream.attempt(beat(0), PATIENCE_MS)
            for streams in (2, 3, 4):
                attempts = (stream.attempt(beat(n), PATIENCE_MS) for n in range(10))
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
            stream.listen("g", "m-1", lambda push: heard.put_nowait(push.member_id))
            await stream.attempt(beat(1), PATIENCE_MS)
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
            await stream.attempt(beat(0), PATIENCE_MS)
            group.mute = True
            waits = asyncio.create_task(stream.attempt(beat(1), PATIENCE_MS))
            await until_async(lambda: group.batches == 2, "the second batch")
            stream.connection_ages(node.address)
            other = asyncio.create_task(stream.attempt(beat(2), PATIENCE_MS))
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


def consumer(number: int, epoch: int = 2) -> group_pb2.ConsumerGroupHeartbeatRequest:
    return group_pb2.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=f"c-{number}", member_epoch=epoch
    )


def known(group: FakeGroup, *numbers: int) -> None:
    """Have the group know these members of the heartbeat protocol, at epoch 2 and above."""
    for number in numbers:
        request = consumer(number, 0)
        request.subscribed_topic_names.names.append("t")
        request.topic_partitions.SetInParent()
        group.consumers.answer(request, boot_ms())


def test_heartbeats_of_both_protocols_travel_in_one_message_and_get_their_own_answers() -> None:
    """group.proto: each list is answered in its order."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            known(group, 1)
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            requests = (consumer(1), beat(1), consumer(9), beat(2))
            answers = await asyncio.gather(*(stream.attempt(one, PATIENCE_MS) for one in requests))
            kinds = [type(one).__name__ for one in answers]
            assert kinds == ["ConsumerGroupHeartbeatResponse", "HeartbeatResponse"] * 2
            codes = [getattr(one, "error_code", None) for one in answers]
            assert codes == [0, 0, ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID, 0]
            assert group.batches == 1
            stream.close()
            await caller.close()

    run(scenario())


def test_a_node_that_knows_only_the_classic_protocol_in_batches_gets_the_others_unary() -> None:
    """It reads over a field that it does not know: nobody may wait for an answer in vain."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            group.classic_only = True
            known(group, 1)
            caller = Caller(node.address)
            stream = HeartbeatStream(caller)
            for _ in range(2):
                answers = await asyncio.gather(
                    *(stream.attempt(one, PATIENCE_MS) for one in (beat(1), consumer(1)))
                )
                assert [getattr(one, "error_code", None) for one in answers] == [0, 0]
            assert len(group.requests["ConsumerGroupHeartbeat"]) == 2
            on_stream = [type(one).__name__ for one in group.requests["HeartbeatStream"]]
            assert on_stream.count("ConsumerGroupHeartbeatRequest") == 1, "it was not tried again"
            stream.close()
            await caller.close()

    run(scenario())


def test_a_push_on_a_session_reaches_its_member() -> None:
    """It comes on the stream that carried the last heartbeat, which may be a join."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            heard: asyncio.Queue[str] = asyncio.Queue()
            caller = Caller(node.address, on_streams=True)
            stream = HeartbeatStream(caller)
            stream.listen("g", "c-1", lambda push: heard.put_nowait(push.member_id))
            group.session_pushes = [
                group_pb2.HeartbeatPush(group_id="g", member_id=name) for name in ("x", "c-1")
            ]
            await caller.attempt(consumer(1), PATIENCE_MS)
            assert await heard.get() == "c-1"
            stream.close()
            await caller.close()

    run(scenario())


def test_a_stream_that_breaks_leaves_who_listens_on_sessions() -> None:
    """Members that wait for a partition are reached on the stream of their join."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            heard: asyncio.Queue[str] = asyncio.Queue()
            caller = Caller(node.address, on_streams=True)
            stream = HeartbeatStream(caller)
            stream.listen("g", "c-1", lambda push: heard.put_nowait(push.member_id))
            group.refuse_stream = [(grpc.StatusCode.UNAVAILABLE, ())]
            assert isinstance(await stream.attempt(beat(1), PATIENCE_MS), Failure)
            group.session_pushes = [group_pb2.HeartbeatPush(group_id="g", member_id="c-1")]
            await caller.attempt(consumer(1), PATIENCE_MS)
            assert await heard.get() == "c-1"
            stream.forget("g", "c-1")
            assert ("g", "c-1") not in stream._listeners
            stream.close()
            await caller.close()

    run(scenario())
