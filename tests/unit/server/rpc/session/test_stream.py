"""The Session stream over a real gRPC server: calls as unary, many in a message (S5, S14–S17)."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from holdfast.raft.api import Overloaded
from holdfast.server.guard.item_bounds import OFFSETS_MAX
from holdfast.server.rpc import slices
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import offset_pb2 as o
from unit.server import consumer_calls
from unit.server.consumer_calls import with_topics
from unit.server.nodes import OTHER, beat, commit, join, served, sync, topic, until
from unit.server.session_calls import Stream, beat_through, call, member, parked, request_id, run


def test_each_kind_of_call_is_answered_as_its_unary_call_is() -> None:
    """The same functions serve both, so the same fields come back."""

    async def story() -> None:
        async with served() as node:
            await topic(node)
            stream = Stream(node)
            joined = await stream.ask(1, join())
            synced = await stream.ask(2, sync(joined))
            heard = await stream.ask(3, beat(joined))
            committed = await stream.ask(4, commit(7))
            member = g.LeaveGroupRequestMember(member_id=joined.member_id)
            left = await stream.ask(5, g.LeaveGroupRequest(group_id="g", members=[member]))

            unary = await node.group.JoinGroup(join("h"))
            assert (joined.error_code, joined.generation_id) == (0, unary.generation_id)
            assert joined.member_id.startswith("i1-")
            assert joined.holdfast.log_time_ms > 0
            assert synced.assignment == b"to " + joined.member_id.encode()
            assert synced.holdfast.fencing_token == heard.holdfast.fencing_token > 0
            assert committed.topics[0].partitions[0].error_code == e.ERROR_CODE_NONE
            assert committed.holdfast.position.index > 0
            assert [one.error_code for one in left.members] == [e.ERROR_CODE_NONE]

    run(story)


def test_the_answers_that_one_entry_gives_travel_in_one_message() -> None:
    """Else every commit would cost a message of its own."""

    async def story() -> None:
        async with served() as node:
            await topic(node)
            before = len(node.replica.proposed)
            node.replica.hold = True
            stream = Stream(node)
            numbers = range(1, 17)
            await stream.send(*(call(n, commit(n, group_id=f"g{n}")) for n in numbers))
            await until(lambda: len(node.replica.proposed) == before + len(numbers))
            node.replica.hold = False
            node.replica.release()
            await stream.answer(16)

            assert [sorted(each) for each in stream.messages] == [list(numbers)]

    run(story)


def test_s17_a_parked_join_delays_nothing_behind_it() -> None:
    """It may be parked for as long as a rebalance takes."""

    async def story() -> None:
        async with served() as node:
            await topic(node)
            await member(node)
            stream = Stream(node)
            await stream.send(call(1, join(instance_id="i2")), call(2, commit(1)))
            committed = (await stream.answer(2)).commit

            assert committed.topics[0].partitions[0].error_code == e.ERROR_CODE_NONE
            assert stream.messages == [[2]]

    run(story)


def committing(joined: g.JoinGroupResponse, offset: int) -> o.OffsetCommitRequest:
    """A commit of the member that was joined."""
    request = commit(offset, group_id="g")
    request.member_id = joined.member_id
    request.group_instance_id = "i1"
    request.generation_id_or_member_epoch = joined.generation_id
    return request


def leaving(joined: g.JoinGroupResponse) -> g.LeaveGroupRequest:
    """The leave of the member that was joined."""
    gone = g.LeaveGroupRequestMember(member_id=joined.member_id)
    return g.LeaveGroupRequest(group_id="g", members=[gone])


@pytest.mark.parametrize("lease", ["held", "lost", "back"])
def test_calls_about_one_group_are_carried_out_in_the_order_of_the_list(lease: str) -> None:
    """A member commits and leaves in one message: the commit is its last act, not a stranger's."""

    async def story() -> None:
        async with served() as node:
            await topic(node)
            joined = await member(node)
            node.replica.lease = lease == "held"
            gate = asyncio.Event()

            async def gated() -> None:
                node.replica.lease = lease == "back"
                await gate.wait()

            node.replica.read_barrier = gated  # type: ignore[method-assign]  # a barrier held back
            stream = Stream(node)
            await stream.send(call(1, committing(joined, 7)))
            if lease != "held":
                await until(lambda: len(node.node.actors.calls) == 1)
            await stream.send(call(2, leaving(joined)))
            await beat_through(node)
            gate.set()
            left = (await stream.answer(2)).leave
            committed = (await stream.answer(1)).commit

            assert committed.topics[0].partitions[0].error_code == e.ERROR_CODE_NONE
            assert left.members[0].error_code == e.ERROR_CODE_NONE

    run(story)


def test_another_node_answers_each_call_not_coordinator_and_names_the_leader() -> None:
    """A commit's response has no place for the code, so a status carries it."""

    async def story() -> None:
        async with served(leading=False) as node:
            node.replica.step_down("node-2")
            stream = Stream(node)
            joined = await stream.ask(1, join())
            status = await stream.ask(2, commit(1))

            assert joined.error_code == e.ERROR_CODE_NOT_COORDINATOR
            assert joined.holdfast.leader_hint == str(OTHER)
            assert status.code == grpc.StatusCode.UNAVAILABLE.value[0]
            assert status.error_code == e.ERROR_CODE_NOT_COORDINATOR
            assert (status.leader, status.not_applied) == (str(OTHER), True)

    run(story)


def test_one_malformed_call_is_refused_alone() -> None:
    """A client that sends garbage for one of its members does not disturb the others."""

    async def story() -> None:
        async with served() as node:
            stream = Stream(node)
            broken = join(member_id="x" * 9_999)
            await stream.send(call(1, broken), g.SessionCall(number=2), call(3, join()))
            joined = (await stream.answer(3)).join
            refused = (await stream.answer(1)).status
            empty = (await stream.answer(2)).status

            assert joined.error_code == e.ERROR_CODE_NONE
            assert refused.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
            assert "member_id" in refused.message
            assert refused.not_applied
            assert empty.code == grpc.StatusCode.UNIMPLEMENTED.value[0]
            assert empty.not_applied

    run(story)


def test_each_call_keeps_the_bounds_of_its_unary_request() -> None:
    """A list of calls must not be a way around what one call may ask."""

    async def story() -> None:
        async with served() as node:
            await topic(node)
            many = commit(1)
            for number in range(OFFSETS_MAX):
                many.topics[0].partitions.add(partition_index=number, committed_offset=1)
            stream = Stream(node)
            await stream.send(call(1, many), call(2, commit(2)))
            refused = (await stream.answer(1)).status
            taken = (await stream.answer(2)).commit

            assert refused.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
            assert str(OFFSETS_MAX) in refused.message
            assert taken.topics[0].partitions[0].error_code == e.ERROR_CODE_NONE

    run(story)


def test_a_number_is_free_again_when_its_call_is_answered() -> None:
    async def story() -> None:
        async with served() as node:
            stream = Stream(node)
            first = await stream.ask(1, join())
            stream._answers.clear()
            again = await stream.ask(1, beat(first))

            assert again.error_code == e.ERROR_CODE_REBALANCE_IN_PROGRESS or not again.error_code

    run(story)


def test_s9_heartbeats_of_a_long_message_have_arrived_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A session must not end between the arrival of its heartbeat and its turn."""

    async def story() -> None:
        async with served() as node:
            await topic(node)
            joined = await member(node)
            known = {("g", joined.member_id)}
            seen: list[bool] = []

            async def looked(done: int) -> None:
                del done
                batches = list(node.node._desk.arrived._under_way)
                seen.append(any(batch.speaks_for(known) for batch in batches))
                await asyncio.sleep(0)

            monkeypatch.setattr(slices, "give_way", looked)
            stream = Stream(node)
            commits = [call(n, commit(n, group_id=f"g{n}")) for n in range(1, slices.MADE_MAX + 1)]
            await stream.send(*commits, call(1_000, beat(joined)))
            heard = (await stream.answer(1_000)).heartbeat

            assert seen[:1] == [True]
            assert heard.error_code == e.ERROR_CODE_NONE
            assert not node.node._desk.arrived._under_way

    run(story)


def test_s9_so_have_heartbeats_of_the_heartbeat_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    """S9 a: a member of either protocol is not removed while what it said is being read."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            await node.group.ConsumerGroupHeartbeat(consumer_calls.join())
            seen: list[bool] = []

            async def looked(done: int) -> None:
                del done
                batches = list(node.node._desk.arrived._under_way)
                seen.append(any(batch.speaks_for({("g", "m1")}) for batch in batches))
                await asyncio.sleep(0)

            monkeypatch.setattr(slices, "give_way", looked)
            stream = Stream(node)
            commits = [call(n, commit(n, group_id=f"g{n}")) for n in range(1, slices.MADE_MAX + 1)]
            await stream.send(*commits, call(1_000, consumer_calls.beat(2)))
            heard = (await stream.answer(1_000)).consumer_heartbeat

            assert seen[:1] == [True]
            assert (heard.error_code, heard.member_epoch) == (e.ERROR_CODE_NONE, 2)

    run(story)


def test_s17_a_second_join_takes_the_place_of_the_first_which_ends_aborted() -> None:
    async def story() -> None:
        async with served() as node:
            await member(node)
            same = join(instance_id="i2", request_id=request_id())
            stream = Stream(node)
            await stream.send(call(1, same))
            await until(lambda: parked(node) == 1)
            await stream.send(call(2, same))
            status = (await stream.answer(1)).status

            assert status.code == grpc.StatusCode.ABORTED.value[0]

    run(story)


def test_s15_a_request_id_means_the_same_on_a_stream_and_in_a_unary_call() -> None:
    """What a broken stream left unknown is repeated by either, and done once."""

    async def story() -> None:
        async with served() as node:
            await topic(node)
            same = commit(7)
            same.holdfast.request_id = request_id()
            stream = Stream(node)
            first = await stream.ask(1, same)
            again = await stream.ask(2, same)
            unary = await node.offset.OffsetCommit(same)
            other = commit(8)
            other.holdfast.request_id = same.holdfast.request_id
            reused = await stream.ask(3, other)

            places = {one.holdfast.position.index for one in (first, again, unary)}
            assert len(places) == 1
            assert reused.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]

    run(story)


def test_who_calls_is_told_when_the_stream_begins() -> None:
    """The name in the stream's metadata is that of all of its calls."""

    async def story() -> None:
        async with served() as node:
            stream = Stream(node, (("holdfast-client-id", "worker"),))
            named = await stream.ask(1, join("h", instance_id=None))
            code, trailing = await Stream(node, (("holdfast-client-id", "x" * 300),)).end()

            assert named.member_id.startswith("worker-")
            assert code is grpc.StatusCode.INVALID_ARGUMENT
            assert trailing["holdfast-outcome"] == "not-applied"

    run(story)


def test_a_change_that_was_refused_says_that_nothing_happened() -> None:
    """S5: per call, as the trailing metadata of a unary one."""

    async def story() -> None:
        async with served() as node:
            await topic(node)
            node.replica.fail_next = Overloaded("full")
            stream = Stream(node)
            status = await stream.ask(1, commit(1))

            assert status.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
            assert status.not_applied

    run(story)
