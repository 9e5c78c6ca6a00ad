"""The row about sealing: what callers notice while every node seals a quarter of a million events.

The events are made first, as fast as the nodes take them. Then a few callers commit at an even
pace: before the boundary, and from it until the last node has sealed and dropped its records.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import Final, NamedTuple

import grpc.aio

from bench import changes, machine
from bench.figures import Figure, most, quantile
from bench.nodes import Node
from bench.rig import Bench, Running, Watch, shares
from bench.steady import Steady
from bench.talk import Line, read

CALLERS: Final = 4
PACE_S: Final = 0.01
STREAMS: Final = 2
IN_FLIGHT: Final = 64
"""On each stream."""
LEFT: Final = 50
"""Events that callers at their own pace make up to the boundary; some are not commits."""
LOOK_S: Final = 0.2
AFTER_S: Final = 5.0
"""From the last sealing on, until memory is looked at again."""
PATIENCE_S: Final = 600.0
DONE: Final = b'"sealed segment '
"""A node writes a line with this when a segment is durable and its records are dropped."""
_SEALED: Final = re.compile(rb'"sealed segment \d+-(\d+)"')
"""The same, with the segment's name: its first and its last log index."""


class LeaderChanged(Exception):
    """A leader counts the records since it leads, so an election moves the boundary."""

    def __init__(self) -> None:
        super().__init__(
            "the leader changed while the events were made, so where the segment ends is not "
            "known: measure this row again when the machine is less busy"
        )


class Moment(NamedTuple):
    """What is looked at before and after: the term, and bytes of `RssAnon` by node."""

    term: int
    memory: dict[str, int]


async def seal(bench: Bench) -> None:
    """Callers commit at an even pace; meanwhile all nodes seal the same 250,000 events."""
    count = bench.sizes.sealed_events
    async with bench.cluster("seal", {"log.segment_events_max": count}) as running:
        await running.talk.create_topic(changes.TOPIC, changes.PARTITIONS)
        spare = round(CALLERS / PACE_S * bench.sizes.calm_s)
        await fill(running, count - spare)
        async with Steady(running, CALLERS, PACE_S) as steady:
            calm = await steady.during(bench.sizes.calm_s)
            await fill(running, spare - LEFT - len(steady.times))
            await _measure(bench, running, steady, calm)


async def _measure(bench: Bench, running: Running, steady: Steady, calm: list[float]) -> None:
    before, watch, began = await moment(running), Watch(running), time.perf_counter()
    times = await _until_sealed(bench, running, steady)
    seconds, effort = time.perf_counter() - began, watch.effort()
    await steady.during(AFTER_S)
    after = await moment(running)
    ratio = quantile(times, 0.99) / quantile(calm, 0.99)
    p50, p99 = quantile(times, 0.5) * 1000, quantile(times, 0.99) * 1000
    more: dict[str, object] = {
        "calm_p50_ms": quantile(calm, 0.5) * 1000,
        "calm_p99_ms": quantile(calm, 0.99) * 1000,
        "calm_longest_ms": max(calm) * 1000,
    }
    count = bench.sizes.sealed_events
    what = f"p99 of commits, {count:,} events are sealed / none"
    bench.add(Figure("seal", what, ratio, "times", most(1.5), p50, p99, effort=effort, more=more))
    bench.add(Figure("seal", "the longest of these commits", max(times) * 1000, "ms"))
    bench.add(Figure("seal", "elections meanwhile", after.term - before.term, "", most(0)))
    bench.add(Figure("seal", "from the boundary until all have sealed", seconds, "s"))
    grown = {name: (after.memory[name] - before.memory[name]) / 2**20 for name in before.memory}
    what, more = "RssAnon of the node that grew most, by", {"all_mib": grown}
    bench.add(Figure("seal", what, max(grown.values()), "MiB", more=more))


async def _until_sealed(bench: Bench, running: Running, steady: Steady) -> list[float]:
    """The calls until each node has sealed. Raises TimeoutError if that takes too long."""
    first, began = len(steady.times), time.perf_counter()
    waiting = {node.name: node for node in running.cluster.nodes}
    while waiting:
        if time.perf_counter() - began > PATIENCE_S:
            raise TimeoutError(f"{', '.join(waiting)} did not seal within {PATIENCE_S:.0f} s")
        await steady.during(LOOK_S)
        for name in [name for name, node in waiting.items() if sealed(node)]:
            del waiting[name]
            bench.say(f"seal: {name} has sealed, {time.perf_counter() - began:.1f} s")
    return steady.times[first:]


def sealed(node: Node) -> int:
    """How many segments the node has sealed."""
    return (node.directory / "node.log").read_bytes().count(DONE)


def sealed_up_to(node: Node) -> int:
    """The last log index of the newest segment that the node has sealed; 0: none."""
    ends = _SEALED.findall((node.directory / "node.log").read_bytes())
    return int(ends[-1]) if ends else 0


async def moment(running: Running) -> Moment:
    """The cluster now. Raises TimeoutError if no node leads."""
    leader = await running.talk.find_leader()
    described = await running.talk.describe(leader)
    if described is None:
        raise TimeoutError(f"{leader.name} leads and does not answer")
    memory = {name: machine.memory_bytes(pid) for name, pid in running.pids().items()}
    return Moment(described.term, memory)


async def fill(running: Running, count: int) -> None:
    """Make so many changes. Raises LeaderChanged if they cannot be counted to the boundary."""
    term = (await moment(running)).term
    try:
        async with running.talk.lines(STREAMS) as lines:
            parts = zip(lines, shares(max(count, 0), STREAMS), strict=True)
            await asyncio.gather(*(_commit(line, part) for line, part in parts))
    except (grpc.aio.AioRpcError, EOFError) as error:
        raise LeaderChanged from error
    if (await moment(running)).term != term:
        raise LeaderChanged


async def _commit(line: Line, numbers: range) -> None:
    call = line.offset.OffsetCommitStream()
    for under_way, number in enumerate(numbers):
        if under_way >= IN_FLIGHT:
            changes.check(await read(call))
        await call.write(changes.commit(number % changes.MANY, number))
    for _ in numbers[:IN_FLIGHT]:
        changes.check(await read(call))
    await call.done_writing()
