"""What a Session stream may have open, and what becomes of the rest (S17)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.server.guard import request_guard
from holdfast.server.guard.request_guard import SHORT_BYTES
from holdfast.server.rpc.session import open_calls
from holdfast.server.rpc.session import stream as session_stream
from holdfast.server.rpc.session.open_calls import OpenCall, OpenCalls
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from unit.server.nodes import commit, join, served, sync, topic, until
from unit.server.session_calls import Stream, beat_through, call, member, parked, run

if TYPE_CHECKING:
    from unit.server.nodes import Served


def test_a_stream_with_too_many_open_calls_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flow control holds the caller back, and nothing is refused."""
    monkeypatch.setattr(open_calls, "OPEN_MAX", 3)

    async def story() -> None:
        async with served() as node:
            await topic(node)
            before = len(node.replica.proposed)
            node.replica.hold = True
            stream = Stream(node)
            for number in range(1, 11):
                await stream.send(call(number, commit(number, group_id=f"g{number}")))
            await until(lambda: len(node.replica.proposed) == before + 3)
            await beat_through(node)
            begun = len(node.replica.proposed) - before
            node.replica.hold = False
            node.replica.release()
            await stream.answer(10)

            assert begun == 3
            assert sorted(n for each in stream.messages for n in each) == list(range(1, 11))

    run(story)


def test_a_caller_with_too_many_bytes_open_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parked call keeps its message in memory; what its connection holds is one account."""
    monkeypatch.setattr(request_guard, "IN_FLIGHT_EACH_MAX", 5_000)

    async def story() -> None:
        async with served() as node:
            await topic(node)
            before = len(node.replica.proposed)
            node.replica.hold = True
            stream = Stream(node)
            for number in range(1, 6):
                long = commit(number, group_id=f"g{number}")
                long.topics[0].partitions[0].committed_metadata = "m" * 3_000
                await stream.send(call(number, long))
            await until(lambda: len(node.replica.proposed) == before + 2)
            await beat_through(node)
            begun = len(node.replica.proposed) - before
            node.replica.hold = False
            node.replica.release()
            await stream.answer(5)
            free = not node.node._desk.in_flight._held

            assert begun == 2
            assert free

    run(story)


LONG = b"m" * 3_000


def long_join(instance_id: str, member_id: str = "") -> g.JoinGroupRequest:
    """A join whose message counts against its caller's bytes."""
    request = join(instance_id=instance_id, member_id=member_id)
    request.protocols[0].metadata = LONG
    return request


async def parked_joins(node: Served, stream: Stream) -> g.JoinGroupResponse:
    """Have the joins of two members parked, in a group whose first member has not joined again."""
    first = await member(node)
    await stream.send(call(2, long_join("i2")))
    await stream.send(call(3, long_join("i3")))
    await until(lambda: parked(node) == 2)
    await beat_through(node)
    return first


@pytest.mark.parametrize("bound", ["calls", "bytes"])
def test_s17_joins_that_wait_for_one_another_do_not_hold_each_other_back(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all wait, behind a full stream, for the one that stands unread in it."""
    if bound == "calls":
        monkeypatch.setattr(open_calls, "OPEN_MAX", 1)
    else:
        monkeypatch.setattr(request_guard, "IN_FLIGHT_EACH_MAX", len(LONG))

    async def story() -> None:
        async with served() as node:
            stream = Stream(node)
            first = await parked_joins(node, stream)
            await stream.send(call(1, join(member_id=first.member_id)))
            await stream.answer(1)
            answers = [(await stream.answer(number)).join for number in (1, 2, 3)]

            assert [one.error_code for one in answers] == [e.ERROR_CODE_NONE] * 3
            assert {one.generation_id for one in answers} == {first.generation_id + 1}

    run(story)


@pytest.mark.parametrize("bound", ["calls", "bytes"])
def test_s17_syncs_do_not_hold_back_the_one_that_they_wait_for(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group leader's sync stands behind those of the others."""

    async def story() -> None:
        async with served() as node:
            stream = Stream(node)
            first = await parked_joins(node, stream)
            leader = await stream.ask(1, join(member_id=first.member_id))
            if bound == "calls":
                monkeypatch.setattr(open_calls, "OPEN_MAX", 1)
            else:
                monkeypatch.setattr(node.node._desk.in_flight, "_each", len(LONG))
            for number, instance in ((2, "i2"), (3, "i3")):
                joined = (await stream.answer(number)).join
                request = sync(joined, instance)
                request.assignments.add(member_id="nobody", assignment=LONG)
                await stream.send(call(number + 10, request))
            await stream.ask(11, sync(leader))
            answers = [(await stream.answer(number)).sync for number in (11, 12, 13)]

            assert [one.error_code for one in answers] == [e.ERROR_CODE_NONE] * 3
            assert all(one.assignment.startswith(b"to ") for one in answers)

    run(story)


def test_a_parked_call_holds_no_bytes_of_its_message() -> None:
    """What it waits with is its member's, which the group's own bounds bound."""

    async def story() -> None:
        async with served() as node:
            stream = Stream(node)
            await parked_joins(node, stream)
            (open_stream,) = node.node._sessions._streams
            kept = [one.request.ByteSize() for one in open_stream.open._calls.values()]

            assert not node.node._desk.in_flight._held
            assert max(kept) < SHORT_BYTES

    run(story)


def test_a_parked_call_that_is_answered_counts_until_its_answer_is_written() -> None:
    """A caller that does not read must not have more and more answers made for it."""
    calls = OpenCalls()
    one = OpenCall(1, None, None, None)
    calls.add(one)
    counted = [calls.counted]
    calls.park(one)
    counted.append(calls.counted)
    calls.done(one)
    counted.append(calls.counted)
    calls.take(one)
    counted.append(calls.counted)

    assert counted == [1, 0, 1, 0]


@pytest.mark.parametrize("answered", [False, True])
def test_a_parked_call_that_is_given_up_is_not_counted_twice(answered: bool) -> None:  # noqa: FBT001 - pytest gives it
    calls = OpenCalls()
    one = OpenCall(1, None, None, None)
    calls.add(one)
    calls.park(one)
    if answered:
        calls.done(one)
    calls.give_up(1)

    assert (calls.counted, len(calls)) == (0, 0)


def test_the_bytes_of_a_call_are_free_when_the_stream_ends_in_the_middle_of_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the caller, and with it the node, would have less room for ever."""

    async def story() -> None:
        async with served() as node:
            begun = asyncio.Event()

            async def long_answer(_: OpenCall, _counts: object, _who: object) -> bytes:
                begun.set()
                await asyncio.Event().wait()
                return b""

            monkeypatch.setattr(session_stream, "answer", long_answer)
            stream = Stream(node)
            await stream.send(call(1, long_join("i1")))
            await begun.wait()
            stream.call.cancel()
            await until(lambda: not node.node._sessions._streams)

            assert not node.node._desk.in_flight._held

    run(story)


def test_a_stream_whose_answers_nobody_reads_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short calls count for no bytes, so thousands of them on each stream would be a lot."""
    monkeypatch.setattr(open_calls, "ANSWERED_MAX", 2)

    async def story() -> None:
        calls = OpenCalls()
        ones = [OpenCall(number, None, None, None) for number in range(3)]
        for one in ones:
            calls.add(one)
        calls.done(ones[0])
        await calls.room()
        calls.done(ones[1])
        waiting = asyncio.ensure_future(calls.room())
        await asyncio.sleep(0)
        waited = not waiting.done()
        calls.take(ones[0])
        await waiting

        assert waited

    run(story)


@pytest.mark.parametrize("first", ["given up", "answered"])
def test_a_call_that_is_given_up_leaves_no_answer_to_wait_for(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both may come in one turn of the loop; a stream must not go deaf of it."""
    monkeypatch.setattr(open_calls, "ANSWERED_MAX", 1)

    async def story() -> None:
        calls, one = OpenCalls(), OpenCall(1, None, None, None)
        calls.add(one)
        if first == "answered":
            calls.done(one)
        calls.give_up(1)
        if first == "given up":
            calls.done(one)
        await calls.room()

    run(story)
