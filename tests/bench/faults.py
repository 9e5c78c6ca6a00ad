"""Rows about bad moments: the leading node is killed; ten thousand members come back at once."""

from __future__ import annotations

import asyncio
import itertools
import resource
import time
from collections.abc import Sequence

import grpc

from bench import changes
from bench.figures import Figure, median, most, quantile
from bench.group import Members
from bench.nodes import Node
from bench.rig import Bench, Running, Watch, shares
from bench.shapes import Shape
from bench.talk import Line

CALL_S = 0.25
PAUSE_S = 0.01
SETTLE_S = 1.5
WITHIN_S = 30.0


async def failover(bench: Bench) -> None:
    """Kill -9 of the leading node: until a survivor has accepted a change."""
    seconds: list[float] = []
    numbers = itertools.count()
    async with bench.cluster("failover") as running:
        await running.talk.create_topic(changes.TOPIC, changes.PARTITIONS)
        for kill in range(bench.sizes.kills):
            leader = await running.talk.find_leader()
            seconds.append(await _until_accepted(running, leader, next(numbers)))
            bench.say(f"kill {kill + 1} of {bench.sizes.kills}: {seconds[-1]:.3f} s")
            await asyncio.to_thread(running.cluster.revive, leader)
            await _caught_up(running)
            await asyncio.sleep(SETTLE_S)
    more: dict[str, object] = {"all_s": seconds}
    what = f"median of {len(seconds)} kills"
    bench.add(Figure("failover", what, median(seconds), "s", most(0.4), more=more))
    bench.add(Figure("failover", "p99", quantile(seconds, 0.99), "s"))
    bench.add(Figure("failover", "worst", max(seconds), "s", most(0.7)))


async def _until_accepted(running: Running, leader: Node, number: int) -> float:
    """Offer a change to the survivors until one accepts it; seconds since the kill."""
    survivors = [node for node in running.cluster.nodes if node != leader]
    lines = [running.talk.line(node.address) for node in survivors]
    await asyncio.gather(*(line.channel.channel_ready() for line in lines))
    running.cluster.kill(leader)
    began = time.perf_counter()
    accepted: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def offer(line: Line) -> None:
        while not accepted.done():
            if await _accepts(line, number) and not accepted.done():
                accepted.set_result(time.perf_counter())
            await asyncio.sleep(PAUSE_S)

    offering = [asyncio.create_task(offer(line)) for line in lines]
    try:
        async with asyncio.timeout(WITHIN_S):
            return await accepted - began
    finally:
        for task in offering:
            task.cancel()
        await asyncio.gather(*offering, return_exceptions=True)
        for line in lines:
            await line.channel.close()


async def _accepts(line: Line, number: int) -> bool:
    try:
        changes.check(await line.offset.OffsetCommit(changes.commit(0, number), timeout=CALL_S))
    except grpc.RpcError:
        return False
    return True


async def _caught_up(running: Running) -> None:
    """Wait until every node has applied what the leader had committed. Raises TimeoutError."""
    leader = await running.talk.find_leader()
    seen = await running.talk.describe(leader)
    wanted = seen.commit_index if seen is not None else 0
    async with asyncio.timeout(WITHIN_S):
        for node in running.cluster.nodes:
            while True:
                described = await running.talk.describe(node)
                if described is not None and described.applied_index >= wanted and described.leader:
                    break
                await asyncio.sleep(0.05)


async def burst(bench: Bench) -> None:
    """Every member of a full group comes back at once, on shared and on own connections."""
    count = bench.sizes.burst
    members = Members("burst", count)
    async with bench.cluster("burst") as running:
        async with running.talk.lines(bench.sizes.burst_connections) as lines:
            await members.form(lines)
            await _return(bench, running, lines, members)
        if _files_enough(count):
            await _return_alone(bench, running, members)
        else:
            bench.say(f"burst: own connections left out: `ulimit -n` is below {2 * count}")


async def _return(bench: Bench, running: Running, lines: Sequence[Line], members: Members) -> None:
    """All join at once, and sync as soon as they are in."""
    ends: list[float] = []
    refused: list[str] = []
    watch, began = Watch(running), time.perf_counter()

    async def one(number: int) -> None:
        try:
            await members.replace(lines[number % len(lines)], number)
        except grpc.aio.AioRpcError as error:
            refused.append(error.code().name)
        ends.append(time.perf_counter() - began)

    await asyncio.gather(*(one(number) for number in range(members.count)))
    spent, count = watch.spent(), members.count
    what = f"{count:,} joins and syncs at once on {len(lines)} connections: all served"
    bench.add(
        Figure(
            "burst", what, max(ends), "s", most(3),
            quantile(ends, 0.5) * 1000, quantile(ends, 0.99) * 1000,
            spent.cost(count), spent.effort, shape=Shape.PAIRS,
        )
    )  # fmt: skip
    more: dict[str, object] = {"codes": sorted(set(refused))}
    bench.add(Figure("burst", "of them refused", len(refused), "", most(0), more=more))


async def _return_alone(bench: Bench, running: Running, members: Members) -> None:
    """The same over a connection for each member, a bounded number of them being made at once."""
    opened: list[Line] = []
    watch, began = Watch(running), time.perf_counter()

    async def share(numbers: range) -> None:
        for number in numbers:
            line = running.talk.line(running.talk.leader.address)
            opened.append(line)
            await line.channel.channel_ready()
            await members.replace(line, number)

    await asyncio.gather(*(share(part) for part in shares(members.count, bench.sizes.callers)))
    seconds, spent = time.perf_counter() - began, watch.spent()
    await asyncio.gather(*(line.channel.close() for line in opened))
    what = f"{members.count:,} members, a connection with mutual TLS each, spread by the client"
    cost, effort, shape = spent.cost(members.count), spent.effort, Shape.RESTART
    figure = Figure("burst", what, seconds, "s", most(60), cost=cost, effort=effort, shape=shape)
    bench.add(figure)


def _files_enough(count: int) -> bool:
    """Raise the limit of open files as far as this user may; whether that is enough."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard == resource.RLIM_INFINITY or hard > 2 * count
