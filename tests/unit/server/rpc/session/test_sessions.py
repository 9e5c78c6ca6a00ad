"""How a Session stream ends, and what becomes of its open calls (S5, S17)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc
import pytest

from holdfast.raft.api import OutcomeUnknown
from holdfast.server.rpc.session import stream as session_stream
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2_grpc
from unit.server.nodes import OTHER, commit, join, served, topic, until
from unit.server.session_calls import Stream, call, member, parked, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


def test_a_node_that_stops_leading_answers_what_is_open_and_ends_the_stream() -> None:
    """Callers go to the leader at once, and know that what is unanswered was not begun (S5)."""

    async def story() -> None:
        async with served() as node:
            await member(node)
            stream = Stream(node)
            await stream.send(call(1, join(instance_id="i2")), call(2, join(instance_id="i3")))
            await until(lambda: len(node.node.actors.calls) == 2)
            node.replica.step_down("node-2")
            code, trailing = await stream.end()

            for number in (1, 2):
                answer = stream.answered(number).join
                assert answer.error_code == e.ERROR_CODE_NOT_COORDINATOR
                assert answer.holdfast.leader_hint == str(OTHER)
            assert code is grpc.StatusCode.OK
            assert trailing["holdfast-leader"] == str(OTHER)
            assert trailing["holdfast-outcome"] == "not-applied"

    run(story)


def test_s5_a_change_that_was_on_its_way_when_the_lead_was_lost_is_unknown() -> None:
    """The stream ends only when it is settled, for its answer must not be missing."""

    async def story() -> None:
        async with served() as node:
            await topic(node)
            node.replica.hold = True
            stream = Stream(node)
            await stream.send(call(1, commit(1)))
            await until(lambda: node.replica.waits)
            node.replica.step_down("node-2")
            node.replica.settle(OutcomeUnknown("leadership was lost"))
            code, _ = await stream.end()
            status = stream.answered(1).status

            assert status.code == grpc.StatusCode.UNAVAILABLE.value[0]
            assert not status.not_applied
            assert "same request id" in status.message
            assert code is grpc.StatusCode.OK

    run(story)


def test_a_node_that_stops_ends_its_streams_itself() -> None:
    """Else its stop would wait for all of its time, and then break them off."""

    async def story() -> None:
        async with served() as node:
            await member(node)
            stream = Stream(node)
            await stream.send(call(1, join(instance_id="i2")))
            await until(lambda: len(node.node.actors.calls) == 1)
            stopping = asyncio.ensure_future(node.node.stop())
            node.replica.step_down()
            code, trailing = await stream.end()
            await stopping

            assert stream.answered(1).join.error_code == e.ERROR_CODE_NOT_COORDINATOR
            assert code is grpc.StatusCode.OK
            assert trailing["holdfast-outcome"] == "not-applied"

    run(story)


@pytest.mark.parametrize("apart", [True, False])
def test_two_open_calls_of_one_number_end_the_stream(apart: bool) -> None:  # noqa: FBT001 - pytest gives it
    """Nobody could tell their answers apart. What is open then has an unknown outcome (S5)."""

    async def story() -> None:
        async with served() as node:
            await member(node)
            stream = Stream(node)
            parked = call(5, join(instance_id="i2"))
            if apart:
                await stream.send(parked)
                await stream.send(call(5, join("other")))
            else:
                await stream.send(parked, call(5, join("other")))
            code, trailing = await stream.end()

            assert code is grpc.StatusCode.INVALID_ARGUMENT
            assert trailing["holdfast-outcome"] == ("unknown" if apart else "not-applied")
            assert "other" not in node.replica.state.groups

    run(story)


@pytest.mark.parametrize(("given_up", "charged"), [((7,), False), ((8, 9), True), ((), True)])
def test_who_sends_messages_that_do_nothing_pays_for_them(
    given_up: tuple[int, ...],
    charged: bool,  # noqa: FBT001 - pytest gives it
) -> None:
    """A flood of numbers that no call has must not keep the loop from honest callers."""

    async def story() -> None:
        async with served() as node:
            node.node._pace.now = lambda: 1_000.0  # else on a slow machine honest calls pay, too
            await member(node)
            stream = Stream(node)
            await stream.send(call(7, join(instance_id="i2")))
            await until(lambda: parked(node) == 1)
            await stream.send(given_up=given_up)
            await stream.ask(10, join("other"))

            assert (node.node._pace.remembered > 0) is charged

    run(story)


def test_s17_a_call_that_is_given_up_is_un_parked_and_not_answered() -> None:
    """The member's session runs again, so the group does not wait for it for ever."""

    async def story() -> None:
        async with served() as node:
            await member(node)
            stream = Stream(node)
            await stream.send(call(1, join(instance_id="i2")))
            await until(lambda: parked(node) == 1)
            await stream.send(given_up=(1, 99))
            await until(lambda: parked(node) == 0)
            await stream.ask(2, join("other"))

            assert len(node.node.actors.calls) == 0
            assert stream.messages == [[2]]

    run(story)


@pytest.mark.parametrize("how", ["cancelled", "connection lost"])
def test_s17_the_end_of_a_stream_un_parks_its_calls(how: str) -> None:
    async def story() -> None:
        async with served() as node, wire(node.address) as (address, cut):
            await member(node)
            async with grpc.aio.insecure_channel(address) as channel:
                stream = Stream(node._replace(group=group_pb2_grpc.GroupServiceStub(channel)))
                await stream.send(*(call(n, join(instance_id=f"i{n}")) for n in (2, 3)))
                await until(lambda: parked(node) == 2)
                if how == "cancelled":
                    stream.call.cancel()
                else:
                    cut()
                await until(lambda: parked(node) == 0)

            assert len(node.node.actors.calls) == 0
            assert node.replica.state.groups["g"].state == "PreparingRebalance"

    run(story)


@asynccontextmanager
async def wire(to: str) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """A way to an address, and a function that cuts it."""
    host, _, port = to.rpartition(":")
    writers: list[asyncio.StreamWriter] = []
    pumps: list[asyncio.Task[None]] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writers.extend((writer, far_writer))
        ways = ((reader, far_writer), (far_reader, writer))
        pumps.extend(asyncio.ensure_future(pump(*way)) for way in ways)

    def cut() -> None:
        for one in pumps:
            one.cancel()
        for writer in writers:
            writer.transport.abort()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", cut
    finally:
        cut()
        server.close()


def test_a_client_that_has_said_all_still_gets_its_answers() -> None:
    """It closed its own side only: a parked join is answered when the join phase closes."""

    async def story() -> None:
        async with served() as node:
            first = await member(node)
            stream = Stream(node)
            await stream.send(call(1, join(instance_id="i2")))
            await stream.call.done_writing()
            await until(lambda: parked(node) == 1)
            await node.group.JoinGroup(join(member_id=first.member_id))
            code, _ = await stream.end()

            assert stream.answered(1).join.error_code == e.ERROR_CODE_NONE
            assert code is grpc.StatusCode.OK

    run(story)


def test_a_stream_that_ends_while_an_answer_is_made_holds_no_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Long answers are made in slices. What is never given back would be nobody's for ever."""
    making = asyncio.Event()

    async def endless(_one: object, _counts: object, _who: object) -> bytes:
        making.set()
        await asyncio.Event().wait()
        return b""

    monkeypatch.setattr(session_stream, "answer", endless)

    async def story() -> None:
        async with served() as node:
            await topic(node)
            long = commit(1)
            long.topics[0].partitions[0].committed_metadata = "m" * 3_000
            caller = Stream(node)
            await caller.send(call(1, long))
            await making.wait()
            held = dict(node.node._desk.in_flight._held)
            caller.call.cancel()
            await until(lambda: not node.node._desk.in_flight._held)

            assert held

    run(story)
