"""Long calls of one caller take a part of the loop's time; members' lives never wait for it.

The clock is turned by hand: no test here takes or measures real time.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

import grpc
import pytest

from holdfast.server.guard import pace as pacing
from holdfast.server.guard.item_bounds import OFFSETS_MAX
from holdfast.server.guard.pace import AHEAD_S, FREE_S, KEPT_MAX, REFUSED_S, SHARE, WAIT_S_MAX, Pace
from holdfast.server.guard.request_guard import SHORT_BYTES
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import log_pb2 as lg
from holdfast.v1 import offset_pb2 as o
from unit.server.nodes import commit, join, served, topic

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from unit.server.nodes import Served

LONG_S = 0.05
TICK_S = 1e-6
"""A sleep of less than the clock can show would never end."""


class Clock:
    """Time passes where a call works, and where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += max(seconds, TICK_S)
        await asyncio.sleep(0)

    def pace(self) -> Pace:
        return Pace(lambda: self.now, self.sleep)

    async def work(self, seconds: float) -> str:
        """A call of one step."""
        self.now += seconds
        return "done"

    async def slices(self, count: int, seconds: float) -> None:
        """A call that gives way between its steps."""
        for _ in range(count):
            self.now += seconds
            await asyncio.sleep(0)


async def call(pace: Pace, clock: Clock, who: str, seconds: float) -> None:
    await pace.turn(who)
    assert await pace.timed(who, clock.work(seconds)) == "done"


def test_calls_of_a_usual_length_wait_for_nothing() -> None:
    async def story() -> None:
        clock = Clock()
        pace = clock.pace()
        for _ in range(1_000):
            await call(pace, clock, "a", FREE_S / 2)
        assert clock.slept == []
        assert pace.remembered == 0

    asyncio.run(story())


def test_a_caller_that_rested_has_one_large_call_for_nothing() -> None:
    async def story() -> None:
        clock = Clock()
        pace = clock.pace()
        await call(pace, clock, "a", FREE_S + AHEAD_S)
        await call(pace, clock, "a", LONG_S)
        assert clock.slept == []

    asyncio.run(story())


def test_long_calls_in_a_closed_loop_take_their_share_and_no_more() -> None:
    async def story() -> None:
        clock = Clock()
        pace = clock.pace()
        began, calls = clock.now, 20
        for _ in range(calls):
            await call(pace, clock, "a", LONG_S)
        paid = (calls - 1) * (LONG_S - FREE_S) - AHEAD_S
        assert clock.now - began >= paid / SHARE
        assert sum(clock.slept) == pytest.approx(paid / SHARE - (calls - 1) * LONG_S, rel=0.05)

    asyncio.run(story())


def test_another_caller_does_not_wait_for_it() -> None:
    async def story() -> None:
        clock = Clock()
        pace = clock.pace()
        pace.charge("a", 0.4)
        await call(pace, clock, "b", LONG_S)
        assert clock.slept == []
        await call(pace, clock, "a", LONG_S)
        assert len(clock.slept) == 1

    asyncio.run(story())


def test_a_long_call_waits_where_it_gives_way_and_not_only_the_next_one() -> None:
    """Else honest callers would meet all its slices in a row, and then none."""

    async def story() -> None:
        clock = Clock()
        pace = clock.pace()
        steps, step = 50, 0.005
        began = clock.now
        await pace.timed("a", clock.slices(steps, step))
        assert clock.now - began >= (steps * step - FREE_S - AHEAD_S) / SHARE - step / SHARE
        assert len(clock.slept) >= steps / 2

    asyncio.run(story())


def test_calls_of_one_caller_that_wait_go_on_in_the_order_in_which_they_came() -> None:
    async def story() -> None:
        clock = Clock()
        pace = clock.pace()
        pace.charge("a", 0.4)
        order: list[int] = []

        async def one(number: int) -> None:
            await pace.turn("a")
            order.append(number)
            pace.charge("a", LONG_S)

        await asyncio.gather(*(one(number) for number in range(5)))
        assert order == [0, 1, 2, 3, 4]
        assert len(clock.slept) == 5, "each waited for what the one before it took"

    asyncio.run(story())


def test_nobody_waits_longer_than_a_client_would() -> None:
    async def story() -> None:
        clock = Clock()
        pace = clock.pace()
        pace.charge("a", 60.0)
        await pace.turn("a")
        assert sum(clock.slept) == pytest.approx(WAIT_S_MAX)

    asyncio.run(story())


def test_what_is_charged_while_a_call_waits_makes_it_wait_no_longer() -> None:
    """Else who is refused again and again would hold up the call that it has waiting."""

    async def story() -> None:
        clock = Clock()
        charged = Pace(lambda: clock.now, clock.sleep)

        async def sleep(seconds: float) -> None:
            charged.refused("a")
            await clock.sleep(min(seconds, 1.0))

        charged = Pace(lambda: clock.now, sleep)
        charged.charge("a", 60.0)
        await charged.turn("a")
        assert sum(clock.slept) == pytest.approx(WAIT_S_MAX)

    asyncio.run(story())


def test_a_refusal_of_long_ago_does_not_count_twice() -> None:
    async def story() -> None:
        clock = Clock()
        pace = clock.pace()
        for _ in range(6):
            pace.refused("a")
        clock.now += 3 * WAIT_S_MAX
        pace.refused("a")
        await pace.turn("a")
        assert clock.slept == []

    asyncio.run(story())


def test_a_call_that_is_cancelled_leaves_nothing_of_its_request() -> None:
    """Searches for cycles are rare in a node, so what only they find stays for long."""

    class Request:
        pass

    async def story() -> weakref.ref[Request]:
        clock = Clock()
        request = Request()

        async def parked(_held: Request) -> None:
            await asyncio.Event().wait()

        task = asyncio.ensure_future(clock.pace().timed("a", parked(request)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return weakref.ref(request)

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(story())() is None
    finally:
        gc.enable()


def test_a_node_has_one_account_for_each_caller() -> None:
    async def story() -> None:
        async with served() as node:
            paces = {id(each) for each in gc.get_objects() if isinstance(each, Pace)}
            mine = {id(held) for held in gc.get_referents(node.node.__dict__) if type(held) is Pace}
            assert len(mine) == 1
            assert paces == mine

    gc.collect()
    asyncio.run(story())


def test_refusals_in_a_row_count_twice_each_until_a_call_is_served() -> None:
    """Whoever asks again and again for what is refused may not have the loop for it."""

    async def story() -> None:
        clock = Clock()
        pace = clock.pace()
        pace.charge("a", AHEAD_S)
        waits = []
        for _ in range(12):
            pace.refused("a")
            clock.slept.clear()
            await pace.turn("a")
            waits.append(sum(clock.slept))
        first = REFUSED_S / SHARE
        assert waits == pytest.approx([min(first * 2**n, WAIT_S_MAX) for n in range(12)])
        pace.served("a")
        pace.refused("a")
        clock.slept.clear()
        await pace.turn("a")
        assert sum(clock.slept) == pytest.approx(first)

    asyncio.run(story())


def test_what_a_call_raises_and_what_cancels_it_pass_through() -> None:
    async def story() -> None:
        clock = Clock()
        pace = clock.pace()
        ended: list[str] = []

        async def failing() -> None:
            await asyncio.sleep(0)
            raise ValueError("its own")

        async def endless() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cleaned up")

        with pytest.raises(ValueError, match="its own"):
            await pace.timed("a", failing())
        task = asyncio.ensure_future(pace.timed("a", endless()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["cleaned up"]

    asyncio.run(story())


def test_a_call_that_waits_for_its_pace_can_be_cancelled_and_the_next_one_goes_on() -> None:
    async def story() -> None:
        clock = Clock()
        never = asyncio.Event()

        async def stuck(_: float) -> None:
            await never.wait()

        held = Pace(lambda: clock.now, stuck)
        held.charge("a", 0.4)
        waiting = [asyncio.ensure_future(held.turn("a")) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting[0]
        clock.now += WAIT_S_MAX
        never.set()
        await waiting[1]

    asyncio.run(story())


def test_callers_that_owe_nothing_are_forgotten() -> None:
    clock = Clock()
    pace = clock.pace()
    for number in range(3 * KEPT_MAX):
        pace.charge(f"caller-{number}", LONG_S)
        clock.now += 1.0
    assert pace.remembered <= KEPT_MAX


# --- which calls wait ---


def long_commit() -> o.OffsetCommitRequest:
    request = commit(1)
    request.topics[0].partitions[0].committed_metadata = "m" * SHORT_BYTES
    return request


def commits(count: int) -> o.OffsetCommitRequest:
    request = commit(1)
    partition = request.topics[0].partitions[0]
    request.topics[0].partitions.extend([partition] * (count - 1))
    return request


async def beats(node: Served, count: int) -> None:
    beat = g.HeartbeatRequest(group_id="g", member_id="nobody")
    stream = node.group.HeartbeatStream(iter([g.HeartbeatBatch(requests=[beat] * count)]))
    await stream.read()


CALLS: dict[str, tuple[bool, Callable[[Served], Awaitable[object]]]] = {
    "a short join": (False, lambda node: node.group.JoinGroup(join(group_id="other"))),
    "a short heartbeat": (
        False,
        lambda node: node.group.Heartbeat(g.HeartbeatRequest(group_id="g", member_id="x")),
    ),
    "a short sync": (
        False,
        lambda node: node.group.SyncGroup(g.SyncGroupRequest(group_id="g", member_id="x")),
    ),
    "a short leave": (False, lambda node: node.group.LeaveGroup(g.LeaveGroupRequest(group_id="g"))),
    "a short commit": (False, lambda node: node.offset.OffsetCommit(commit(1))),
    "a short batch": (False, lambda node: beats(node, 1)),
    "a long commit": (True, lambda node: node.offset.OffsetCommit(long_commit())),
    "a long batch": (False, lambda node: beats(node, 500)),
    "a list of all groups": (True, lambda node: node.admin.ListGroups(a.ListGroupsRequest())),
    "a watch": (True, lambda node: node.log.Watch(lg.WatchRequest()).read()),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_keeps_a_member_alive_waits_for_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, make = CALLS[name]
    waited: list[str] = []
    turn = Pace.turn

    async def noted(self: Pace, who: str) -> None:
        waited.append(who)
        await turn(self, who)

    async def story() -> None:
        async with served() as node:
            await topic(node)
            monkeypatch.setattr(pacing.Pace, "turn", noted)
            await make(node)
            assert bool(waited) is waits

    asyncio.run(story())


def test_what_is_refused_is_noted_and_what_is_served_is_forgiven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes: list[str] = []
    monkeypatch.setattr(pacing.Pace, "refused", lambda *_: notes.append("refused"))
    monkeypatch.setattr(pacing.Pace, "served", lambda *_: notes.append("served"))

    async def story() -> None:
        async with served() as node:
            with pytest.raises(grpc.aio.AioRpcError):
                await node.admin.DescribeGroups(a.DescribeGroupsRequest(groups=["x"] * 5_001))
            await node.admin.ListGroups(a.ListGroupsRequest())
            with pytest.raises(grpc.aio.AioRpcError):
                await node.offset.OffsetCommit(commits(OFFSETS_MAX + 1))
        assert notes == ["refused", "served", "refused"]

    asyncio.run(story())
