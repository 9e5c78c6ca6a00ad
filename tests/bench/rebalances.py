"""Rows about groups in motion: one more member, and a rolling restart."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import reduce
from operator import add

from bench.figures import Figure, median, most
from bench.group import Members, assignment_of
from bench.rig import Bench, Running, Watch
from bench.shapes import Shape
from bench.spent import Spent
from bench.talk import REBALANCING, Line, Talk, read
from holdfast.v1 import group_pb2 as g

CONNECTIONS = 100


class _Alert:
    """Members that hold a stream each and rejoin at once when they are told to."""

    def __init__(self, members: Members, lines: Sequence[Line]) -> None:
        self._members, self._lines = members, lines
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
        await rejoin(self._members, self._lines[number], number)

    def _is_called(self, message: g.HeartbeatBatchResponse) -> bool:
        return any(push.error_code == REBALANCING for push in message.pushes)

    async def end(self) -> None:
        """Close the streams."""
        for call in self._calls:
            await call.done_writing()


async def rejoin(members: Members, line: Line, number: int) -> None:
    """Join the round that is open and sync; the group leader assigns."""
    joined = await members.join(line, number, members.ids[number])
    members.ids[number] = joined.member_id
    members.generation = joined.generation_id
    assigned = []
    if joined.leader == joined.member_id:
        assigned = [
            g.SyncGroupRequestAssignment(member_id=member.member_id, assignment=assignment_of(at))
            for at, member in enumerate(joined.members)
        ]
    await members.sync(line, number, assigned)


async def scale_up(bench: Bench) -> None:
    """One more member: until all have the new assignment, told by push."""
    count, spent = bench.sizes.scale_up_members, list[Spent]()
    async with bench.cluster("scale-up") as running:
        for attempt in range(bench.sizes.scale_ups):
            spent.append(await _one_more(running, f"growing-{attempt}", count))
            bench.say(f"scale-up {attempt + 1}: {spent[-1].seconds:.3f} s")
    seconds = [each.seconds for each in spent]
    what = f"one more member: until all {count} have the new assignment"
    more: dict[str, object] = {"all_s": seconds, "worst_s": max(seconds)}
    cost = reduce(add, spent).cost(len(spent) * (count + 1))
    bench.add(
        Figure(
            "scale-up", what, median(seconds), "s", most(0.2),
            cost=cost, more=more, shape=Shape.PAIRS,
        )
    )  # fmt: skip


async def _one_more(running: Running, group_id: str, count: int) -> Spent:
    """What passed and was used from the new member's join to the last member's assignment."""
    members = Members(group_id, count)
    async with running.talk.lines(count + 1) as lines:
        await members.form(lines)
        alert = _Alert(members, lines)
        await asyncio.gather(*(alert.begin(number) for number in range(count)))
        following = [asyncio.create_task(alert.follow(number)) for number in range(count)]
        members.ids.append("")
        watch = Watch(running)
        await asyncio.gather(rejoin(members, lines[count], count), *following)
        spent = watch.spent()
        await alert.end()
    return spent


async def rolling(bench: Bench) -> None:
    """A rolling restart of a group of static members: each one's process is replaced by another."""
    count, seconds = bench.sizes.scale_up_members, []
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
