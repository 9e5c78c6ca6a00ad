"""HeartbeatStream with its pushes over a real gRPC server; heartbeats answered from the cache."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, cast

import grpc
import pytest

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.rejections import RebalanceInProgress
from holdfast.runtime.errors import Crashed, NotCoordinator
from holdfast.server.rpc.callers import Callers, Identity
from holdfast.server.rpc.calls.classic import answered_before
from holdfast.server.rpc.calls.heartbeat_batch import AT_ONCE
from holdfast.server.rpc.heartbeat_stream import WAITING_MAX
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from unit.runtime.world import World, joining
from unit.server.nodes import OTHER, Served, beat, join, served, sync
from unit.server.watched_world import WatchedWorld, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.coordinator.model.ids import CallId
    from holdfast.coordinator.model.replies import JoinReply


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
            assert node.node.carriers.carried == 1
            new = await node.group.JoinGroup(join())
            await stream.read()
            assert node.node.carriers.carried == 0
            await stream.write(batch(2, [beat(new)]))
            await stream.read()
            assert node.node.carriers.carried == 1
            leaving = g.LeaveGroupRequestMember(member_id=new.member_id, group_instance_id="i1")
            await node.group.LeaveGroup(g.LeaveGroupRequest(group_id="g", members=[leaving]))
            assert node.node.carriers.carried == 0
            await stream.done_writing()

    asyncio.run(story())


def message(joined: JoinReply, instance: str = "i1") -> g.HeartbeatRequest:
    return g.HeartbeatRequest(
        group_id="g",
        generation_id=joined.generation,
        member_id=joined.member_id,
        group_instance_id=instance,
    )


def test_an_unchanged_heartbeat_renews_the_session_as_a_decided_one_does() -> None:
    """S9: the cheap path counts renewals, so a deadline that fired earlier is not acted on."""

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        await world.beat("i1", member)
        world.now_ms = 9_000
        heard = [answered_before(world.actors.hearing(), message(member)) for _ in range(3)]
        await world.at(18_999)
        early = world.events("MemberExpired")
        await world.at(19_001)

        assert all(one is not None and not one.error_code for one in heard)
        assert early == []
        assert len(world.events("MemberExpired")) == 1

    asyncio.run(story())


def test_an_unchanged_heartbeat_is_decided_anew_once_anything_has_changed() -> None:
    """K-F5: the first heartbeat after a join phase has opened must say so."""

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        await world.beat("i1", member)
        newcomer = world.ask(joining("i2"))
        await world.settle()
        remembered = answered_before(world.actors.hearing(), message(member))
        reply = await world.beat("i1", member)
        newcomer.cancel()

        assert remembered is None
        assert isinstance(reply.error, RebalanceInProgress)

    asyncio.run(story())


def test_without_the_lease_no_heartbeat_is_answered_before_a_majority_was_heard() -> None:
    """S10 c, S11: a leader that was deposed unknowingly must not keep a member's ownership up."""

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        await world.beat("i1", member)
        world.replica.lease = False
        remembered = answered_before(world.actors.hearing(), message(member))
        reply = await world.beat("i1", member)
        confirmed = world.replica.barriers
        world.replica.barrier_passes = False
        with pytest.raises(NotCoordinator):
            await world.beat("i1", member)

        assert remembered is None
        assert (reply.error, confirmed) == (None, 1)

    asyncio.run(story())


def test_the_lease_is_looked_at_again_whenever_other_calls_may_have_been_served() -> None:
    """S10 c: it ends between two slices of a batch, so the second is decided behind a barrier."""

    async def story() -> None:
        world = await WatchedWorld().lead()
        member = await world.member()
        await world.beat("i1", member)
        batch = g.HeartbeatBatch(batch=1, requests=[message(member) for _ in range(AT_ONCE + 1)])
        asyncio.get_running_loop().call_soon(lambda: setattr(world.replica, "lease", False))
        answer = await world.batches().answer(stream(), batch)

        assert world.replica.barriers == 1
        assert [one.error_code for one in answer.responses] == [e.ERROR_CODE_NONE] * (AT_ONCE + 1)

    asyncio.run(story())


@pytest.mark.parametrize("ends", ["the client goes", "the node stops"])
def test_s17_who_leaves_a_batch_of_heartbeats_waits_for_none_of_them(ends: str) -> None:
    """S17: nobody is there to be told of the second one. Found by the simulator (seed 27)."""

    async def story() -> list[str]:
        world = await WatchedWorld().lead()
        joined = await world.member()
        world.replica.hold = True
        leaving = world.ask(removing("g", "i1"))
        await world.until(lambda: world.replica.waits)
        beats = [g.HeartbeatRequest(group_id="g", member_id=joined.member_id) for _ in range(2)]
        batch = g.HeartbeatBatch(requests=beats)
        answer = asyncio.ensure_future(world.batches().answer(stream(), batch))
        await world.settle()
        complaints, waiting = complaints_of_the_loop(), len(world.actors.calls)
        answer.cancel() if "client" in ends else world.actors.stop()
        await asyncio.wait([answer])
        left = len(world.actors.calls)
        world.replica.step_down()
        leaving.cancel()
        await asyncio.gather(answer, leaving, return_exceptions=True)

        assert (waiting, left) == ((3, 1) if "client" in ends else (3, 0))
        return complaints

    complaints = asyncio.run(story())
    gc.collect()
    assert not complaints


def test_s17_a_heartbeat_that_ends_the_stream_leaves_none_before_it_waiting() -> None:
    """S17: those that were begun wait for a call whose stream is gone."""

    async def story() -> None:
        world = await WatchedWorld().lead()
        joined = await world.member()
        world.replica.hold = True
        leaving = world.ask(removing("g", "i1"))
        await world.until(lambda: world.replica.waits)
        beats = [g.HeartbeatRequest(group_id="g", member_id=joined.member_id) for _ in range(2)]
        beats[1].holdfast.SetInParent()
        failing = Failing()
        with pytest.raises(Crashed):
            await world.batches(failing).answer(stream(failing), g.HeartbeatBatch(requests=beats))
        left = len(world.actors.calls)
        world.replica.step_down()
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)

        assert left == 1, "only who leaves still waits"

    asyncio.run(story())


class Failing(Callers):
    """A node with a defect: it fails over who calls."""

    def identity(self, _: object) -> Identity:
        raise Crashed("a heartbeat")


def complaints_of_the_loop() -> list[str]:
    """What the loop is told of exceptions from here on."""
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _loop, told: complaints.append(str(told["message"]))
    )
    return complaints


def removing(group: str, instance: str) -> Callable[[CallId], c.Command]:
    return lambda call: c.LeaveGroup(c.Caller(call), group, (c.LeavingMember("", instance),))


def test_pushes_that_a_slow_reader_has_no_room_for_are_counted() -> None:
    """They are hints, so they may be left out; an operator can see that they were."""
    made = stream()
    two = [g.HeartbeatPush(group_id="g", member_id=name) for name in ("a", "b")]

    assert [made.push(two) for _ in range(WAITING_MAX)] == [0] * WAITING_MAX
    assert made.waiting == WAITING_MAX
    assert made.push(two) == 2
    assert made.waiting == WAITING_MAX
