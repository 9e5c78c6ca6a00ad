"""Rows about groups in motion: one more member, and a rolling restart.

A member holds a connection of its own. Who is to rejoin is told on its heartbeat stream, and then
calls: unary, or on a Session stream, as `holdfast.client` does where the nodes have it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

from bench.figures import Figure, median, most
from bench.group import Ask, Members, assignment_of
from bench.rig import Bench, Running, Watch
from bench.sessions import sessions
from bench.shapes import Shape
from bench.spent import Spent
from bench.talk import REBALANCING, Line, Talk, read
from holdfast.v1 import group_pb2 as g

_GOALS_S = {100: 0.1, 1_000: 0.6}
"""By how many members there were before: how long one more may take."""


Ways = Callable[[Sequence[Line]], contextlib.AbstractAsyncContextManager[list[Ask]]]
"""How the members of these connections call, one for each."""


@contextlib.asynccontextmanager
async def _unary(lines: Sequence[Line]) -> AsyncIterator[list[Ask]]:
    yield [_asking(line) for line in lines]


def _asking(line: Line) -> Ask:
    async def ask(request: Any) -> Any:  # noqa: ANN401 - of any kind
        is_join = isinstance(request, g.JoinGroupRequest)
        return await (line.group.JoinGroup if is_join else line.group.SyncGroup)(request)

    return ask


@contextlib.asynccontextmanager
async def _on_sessions(lines: Sequence[Line]) -> AsyncIterator[list[Ask]]:
    async with sessions(lines) as streams:
        yield [stream.ask for stream in streams]


class _Alert:
    """Members that hold a stream each and rejoin at once when they are told to."""

    def __init__(self, members: Members, lines: Sequence[Line], asks: Sequence[Ask]) -> None:
        self._members, self._asks = members, asks
        self._calls = [line.group.HeartbeatStream() for line in lines[: members.count]]

    async def begin(self, number: int) -> None:
        """Let the stream carry this member."""
        beat = g.HeartbeatBatch(batch=1, requests=[self._members.heartbeat(number)])
        await self._calls[number].write(beat)
        await read(self._calls[number])

    async def follow(self, number: int) -> None:
        """Wait for the push, rejoin, sync."""
        while not self._is_called(await read(self._calls[number])):
            pass
        await rejoin(self._members, self._asks[number], number)

    def _is_called(self, message: g.HeartbeatBatchResponse) -> bool:
        return any(push.error_code == REBALANCING for push in message.pushes)

    async def end(self) -> None:
        """Close the streams."""
        for call in self._calls:
            await call.done_writing()


async def rejoin(members: Members, ask: Ask, number: int) -> None:
    """Join the round that is open and sync; the group leader assigns."""
    joined = await members.join_on(ask, number, members.ids[number])
    members.ids[number] = joined.member_id
    members.generation = joined.generation_id
    assigned = []
    if joined.leader == joined.member_id:
        assigned = [
            g.SyncGroupRequestAssignment(member_id=member.member_id, assignment=assignment_of(at))
            for at, member in enumerate(joined.members)
        ]
    await members.sync_on(ask, number, assigned)


async def scale_up(bench: Bench) -> None:
    """One more member: until all have the new assignment, told by push."""
    async with bench.cluster("scale-up") as running:
        for count in bench.sizes.growing:
            what = f"one more member: until all {count} have the new assignment"
            await _scale_up_from(bench, running, count, what, _unary)
            what = f"{what}, Session"
            part = _scale_up_from(bench, running, count, what, _on_sessions)
            await bench.attempt("scale-up", what, part)


async def _scale_up_from(bench: Bench, running: Running, count: int, what: str, ways: Ways) -> None:
    """One more in group after group of so many members."""
    spent = list[Spent]()
    is_session = ways is _on_sessions
    for attempt in range(bench.sizes.scale_ups):
        group = f"growing-{count}-{is_session}-{attempt}"
        spent.append(await _one_more(running, group, count, ways))
        bench.say(f"scale-up of {count}, {attempt + 1}: {spent[-1].seconds:.3f} s")
    seconds = [each.seconds for each in spent]
    more: dict[str, object] = {"all_s": seconds, "worst_s": max(seconds)}
    cost = reduce(add, spent).cost(len(spent) * (count + 1))
    bench.add(
        Figure(
            "scale-up", what, median(seconds), "s", most(_GOALS_S[count]) if is_session else None,
            cost=cost, more=more, shape=Shape.SESSION_PAIRS if is_session else Shape.PAIRS,
        )
    )  # fmt: skip


async def _one_more(running: Running, group_id: str, count: int, ways: Ways) -> Spent:
    """What passed and was used from the new member's join to the last member's assignment."""
    members = Members(group_id, count)
    async with running.talk.lines(count + 1) as lines, ways(lines) as asks:
        await members.form(lines)
        alert = _Alert(members, lines, asks)
        await asyncio.gather(*(alert.begin(number) for number in range(count)))
        following = [asyncio.create_task(alert.follow(number)) for number in range(count)]
        members.ids.append("")
        watch = Watch(running)
        await asyncio.gather(rejoin(members, asks[count], count), *following)
        spent = watch.spent()
        await alert.end()
    return spent


async def one_more(running: Running, group_id: str, count: int) -> float:
    """Seconds that one more member takes, which calls as `holdfast.client` does."""
    return (await _one_more(running, group_id, count, _on_sessions)).seconds


async def rolling(bench: Bench) -> None:
    """A rolling restart of a group of static members: each one's process is replaced by another."""
    count, seconds = bench.sizes.restarted_members, []
    members = Members("rolling", count)
    async with bench.cluster("rolling") as running:
        async with running.talk.lines(bench.sizes.connections) as lines:
            await members.form(lines)
        generation, held = members.generation, list(members.assignments)
        open_lines = [running.talk.line(running.talk.leader.address) for _ in range(count)]
        await asyncio.gather(*(line.channel.channel_ready() for line in open_lines))
        watch = Watch(running)
        for _ in range(bench.sizes.restarts):
            began = time.perf_counter()
            for number in range(count):
                await restart(running.talk, members, open_lines, number)
            seconds.append(time.perf_counter() - began)
        spent = watch.spent()
        moves = sum(one != two for one, two in zip(held, members.assignments, strict=True))
        for line in open_lines:
            await line.channel.close()
    what = f"all {count} members, one after another, each over a new connection"
    more: dict[str, object] = {"all_s": seconds, "worst_s": max(seconds)}
    rebalances = members.generation - generation
    bench.add(
        Figure(
            "rolling", what, median(seconds), "s", most(1),
            cost=spent.cost(bench.sizes.restarts * count), effort=spent.effort, more=more,
            shape=Shape.RESTART,
        )
    )  # fmt: skip
    bench.add(Figure("rolling", "rebalances in all of them", rebalances, "", most(0)))
    bench.add(Figure("rolling", "assignments changed by them", moves, "", most(0)))


async def restart(talk: Talk, members: Members, lines: list[Line], number: int) -> None:
    """The old process's connection closes; the new one connects, joins, syncs, and beats once."""
    await lines[number].channel.close()
    lines[number] = line = talk.line(talk.leader.address)
    joined = await members.join(line, number)
    members.ids[number], members.generation = joined.member_id, joined.generation_id
    synced = await members.sync(line, number)
    members.assignments[number] = synced.assignment
    beat = await line.group.Heartbeat(members.heartbeat(number))
    if beat.error_code == REBALANCING:
        raise RuntimeError("a restart of a static member began a rebalance")
