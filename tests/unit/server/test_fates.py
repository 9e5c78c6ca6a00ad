"""S5: what a call of many parts tells, when some of them were done and some not.

`not-applied` is said only where nothing was: a caller that hears it may give up, or go on as if it
had never called. Found by review.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import grpc
import pytest

from holdfast.raft.api import DiskLow, Overloaded
from holdfast.runtime.errors import Stopping
from holdfast.server.rpc import ordered_stream
from holdfast.server.rpc.callers import Context
from holdfast.server.rpc.errors import exhausted, malformed
from holdfast.server.rpc.heartbeat_stream import ANSWERED_MAX
from holdfast.server.translate.limits import TEXT_MAX
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g
from holdfast.v1.errors_pb2 import ErrorCode
from unit.runtime.world import World, joining
from unit.server.nodes import beat, commit, join, served, sync, topic, until
from unit.server.watched_world import WatchedWorld

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from unit.server.nodes import Served

PATIENCE_S = 60
FULL = "16384 changes wait for the log already"


async def two_groups(node: Served) -> None:
    await topic(node)
    for name in ("a", "b"):
        await node.offset.OffsetCommit(commit(1, group_id=name))


def outcome_of(error: grpc.aio.AioRpcError) -> object:
    return dict(error.trailing_metadata() or ()).get("holdfast-outcome")


DELETE = a.DeleteGroupsRequest(groups_names=["a", "b"])


def test_s5_a_name_that_no_group_can_have_is_refused_before_any_group_is_deleted() -> None:
    """Names come back: with long ones the answer is more than a caller takes, all being done."""

    async def story() -> None:
        async with served() as node:
            await two_groups(node)
            request = a.DeleteGroupsRequest(groups_names=["a", "b" * (TEXT_MAX + 1)])
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await node.admin.DeleteGroups(request)

            assert set(node.replica.state.groups) == {"a", "b"}
            assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert outcome_of(failed.value) == "not-applied"

    asyncio.run(story())


def test_s5_one_group_that_was_refused_does_not_have_the_others_called_not_deleted() -> None:
    async def story() -> None:
        async with served() as node:
            await two_groups(node)
            node.replica.fail_next = Overloaded(FULL)
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await node.admin.DeleteGroups(DELETE)

            assert set(node.replica.state.groups) == {"a"}, "the other one is gone"
            assert outcome_of(failed.value) == "unknown"
            assert "1 of 2 groups were deleted" in (failed.value.details() or "")
            assert FULL in (failed.value.details() or "")

    asyncio.run(story())


def test_s5_a_group_deleted_before_the_lead_was_lost_is_not_called_not_deleted() -> None:
    async def story() -> None:
        async with served() as node:
            await two_groups(node)
            node.replica.hold = True
            behind = asyncio.ensure_future(node.offset.OffsetCommit(commit(2, group_id="a")))
            await until(lambda: node.replica.waits)
            under_way = node.replica._waiting.popleft()
            node.replica.hold = False
            call = asyncio.ensure_future(node.admin.DeleteGroups(DELETE))
            await until(lambda: "b" not in node.replica.state.groups)
            node.replica.step_down("node-2")
            under_way[1].cancel()
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await call
            behind.cancel()

            assert outcome_of(failed.value) == "unknown"

    asyncio.run(story())


def test_s5_where_no_group_was_deleted_not_applied_is_the_truth() -> None:
    async def story() -> None:
        async with served() as node:
            await two_groups(node)
            node.replica.step_down("node-2")
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await node.admin.DeleteGroups(DELETE)

            assert outcome_of(failed.value) == "not-applied"

    asyncio.run(story())


@pytest.mark.parametrize(("behind", "outcome"), [(1, "unknown"), (0, "not-applied")])
def test_s5_a_commit_stream_does_not_tell_of_calls_that_it_did_not_answer(
    behind: int, outcome: str
) -> None:
    """The commit behind the one that failed was applied, and nobody is told so."""

    async def story() -> None:
        async with served() as node:
            await two_groups(node)
            node.replica.hold = True
            stream = node.offset.OffsetCommitStream()
            for name in ("a", "b")[: 1 + behind]:
                await stream.write(commit(7, group_id=name))
            await until(lambda: len(node.replica._waiting) == 1 + behind)
            _, first = node.replica._waiting.popleft()
            node.replica.release()
            first.set_exception(Overloaded(FULL))
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await stream.read()

            assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert outcome_of(failed.value) == outcome
            node.replica.hold = False

    asyncio.run(story())


def test_s5_a_stream_that_ends_begins_no_call_more() -> None:
    """It was told that nothing was applied; a request that was still read must not be."""

    async def story() -> None:
        context, begun = Slow(), []

        async def answer(number: int) -> int:
            begun.append(number)
            if number == 1:
                raise exhausted(FULL)
            return number

        async def requests() -> AsyncIterator[int]:
            yield 1
            await context.ending.wait()
            yield 2

        with pytest.raises(grpc.aio.AbortError):
            await ordered_stream.serve(requests(), cast("Context", context), answer)

        assert context.trailing["holdfast-outcome"] == "not-applied"
        assert begun == [1]

    asyncio.run(story())


def test_a_release_that_cannot_be_recorded_ends_nobody_elses_stream() -> None:
    async def story() -> None:
        async with served() as node:
            joined = await node.group.JoinGroup(join())
            await node.group.SyncGroup(g.SyncGroupRequest())
            releasing, stranger = beat(joined), g.HeartbeatRequest(group_id="other", member_id="x")
            releasing.holdfast.release = True
            node.replica.fail_next = DiskLow()
            stream = node.group.HeartbeatStream()
            await stream.write(g.HeartbeatBatch(batch=1, requests=[stranger, releasing]))
            answers = cast("g.HeartbeatBatchResponse", await stream.read()).responses

            assert [each.error_code for each in answers] == [
                ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID,
                ErrorCode.ERROR_CODE_COORDINATOR_NOT_AVAILABLE,
            ]
            assert answers[1].holdfast.message, "it says why"

    asyncio.run(story())


def test_s5_a_stop_does_not_tell_a_parked_join_that_nothing_happened() -> None:
    """Its member is on the log; it is told what a lost lead would tell it."""

    async def story() -> None:
        world = await World().lead()
        await world.member("i1")
        parked = world.offer(joining("i2"))
        await world.settle()
        assert len(world.replica.state.groups["g"].body.members) == 2
        world.actors.stop()
        told = parked.future.exception()

        assert isinstance(told, Stopping)
        assert "shutting down" in told.sentence

    asyncio.run(story())


def test_who_reads_is_answered_each_time_with_what_is_pushed_between() -> None:
    """More batches than may wait: each that was written makes room for another one."""

    async def story() -> None:
        async with asyncio.timeout(PATIENCE_S), served() as node:
            first = await node.group.JoinGroup(join())
            await node.group.SyncGroup(sync(first))
            stream = node.group.HeartbeatStream()
            joining = None
            for number in range(1, 4 * ANSWERED_MAX):
                await stream.write(g.HeartbeatBatch(batch=number, requests=[beat(first)]))
                answer = cast("g.HeartbeatBatchResponse", await stream.read())
                while answer.pushes:
                    answer = cast("g.HeartbeatBatchResponse", await stream.read())
                assert answer.batch == number
                if joining is None:
                    joining = asyncio.ensure_future(node.group.JoinGroup(join(instance_id="i2")))
            node.replica.step_down()
            await asyncio.gather(joining or asyncio.sleep(0), return_exceptions=True)

    asyncio.run(story())


def test_s5_a_heartbeat_stream_does_not_tell_of_batches_that_it_did_not_answer() -> None:
    async def story() -> None:
        world = await WatchedWorld().lead()
        streams, context = (
            world.streams(),
            NeverRead(),
        )
        beats = [g.HeartbeatRequest(group_id="x")]

        async def batches() -> AsyncIterator[g.HeartbeatBatch]:
            yield g.HeartbeatBatch(requests=beats)
            raise malformed("requests", "too many")  # as the check of what was read does

        with pytest.raises(grpc.aio.AbortError):
            await streams.serve(batches(), cast("Context", context))

        assert context.trailing["holdfast-outcome"] == "unknown"

    asyncio.run(story())


class NeverRead:
    """A caller that writes and never reads: flow control holds the node's writes back."""

    trailing: Mapping[str, str] = {}

    def peer(self) -> str:
        return "ipv4:127.0.0.1:1"

    async def write(self, _: object) -> None:
        await asyncio.get_running_loop().create_future()

    async def abort(self, _: object, __: str, trailing: Iterable[tuple[str, str]]) -> None:
        self.trailing = dict(trailing)
        raise grpc.aio.AbortError


def test_who_never_reads_is_not_read_any_more() -> None:
    """A heartbeat costs its sender some bytes, and the node an answer until it is read."""

    async def story() -> None:
        world = await WatchedWorld().lead()
        streams = world.streams()
        read = 0

        async def batches() -> AsyncIterator[g.HeartbeatBatch]:
            nonlocal read
            while read < MANY:
                read += 1
                yield g.HeartbeatBatch(requests=[g.HeartbeatRequest(group_id="x")])

        serving = asyncio.ensure_future(streams.serve(batches(), cast("Context", NeverRead())))
        await world.settle()
        seen = read
        serving.cancel()
        await asyncio.wait([serving])

        assert 1 < seen < MANY

    asyncio.run(story())


class Slow(NeverRead):
    """The end of its stream takes some turns of the loop, in which the caller goes on writing."""

    def __init__(self) -> None:
        self.ending = asyncio.Event()

    async def abort(self, code: object, told: str, trailing: Iterable[tuple[str, str]]) -> None:
        self.ending.set()
        for _ in range(10):
            await asyncio.sleep(0)
        await super().abort(code, told, trailing)


MANY = 30
"""Batches; the loop turns oftener than that."""
