"""The row that lasts: a half-busy cluster for a quarter of an hour, and what grows meanwhile.

Callers commit at an even pace, members send heartbeats or are started again, and each node seals a
segment every minute or two. After the first third memory must be flat, and so must be what the
disks grow by with each change.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from bench import changes, machine
from bench.figures import Effort, Figure, most, quantile
from bench.flatness import Sample, bytes_a_change, drawn, growth, halves, long_enough
from bench.group import Members
from bench.heartbeats import INTERVAL_S, check_batch
from bench.rig import Bench, Running, Watch, shares
from bench.sealing import moment
from bench.steady import Following, Steady
from bench.talk import Line, read
from holdfast.v1 import group_pb2 as g

CALLERS: Final = 8
PACE_S: Final = 0.01
RATE: Final = 500
"""About how many changes a second they make."""
SEALS: Final = 8
"""About how many segments a run seals, however short it is."""
SAMPLES: Final = 180
SHOWN: Final = 30
"""How many of the samples are printed."""
STREAMS: Final = 8
RESTARTED: Final = 100
RESTART_EVERY_S: Final = 0.25
FLAT: Final = 1.05
STEADY: Final = 1.25
"""Looser: segments come in lumps, of which either half of the run may have one more."""


async def soak(bench: Bench) -> None:
    """A half-busy cluster for 15 minutes: memory and disks are flat after five; no elections."""
    segment = round(RATE * bench.sizes.soak_s / SEALS)
    async with bench.cluster("soak", {"log.segment_events_max": segment}) as running:
        await running.talk.create_topic(changes.TOPIC, changes.PARTITIONS)
        async with _members(bench, running), Steady(running, CALLERS, PACE_S) as steady:
            before, watch = await moment(running), Watch(running)
            samples = await _sampled(bench, running, steady)
            effort, after = watch.effort(), await moment(running)
    _add_memory(bench, samples)
    _add(bench, samples, steady.times, effort)
    bench.add(Figure("soak", "elections", after.term - before.term, "", most(0)))


async def _sampled(bench: Bench, running: Running, steady: Steady) -> list[Sample]:
    """Look at regular intervals; show some of them."""
    samples: list[Sample] = []
    began, every, late = time.perf_counter(), bench.sizes.soak_s / SAMPLES, list[float]()
    for number in range(1, SAMPLES + 1):
        late += await steady.during(began + number * every - time.perf_counter())
        seconds = time.perf_counter() - began
        samples.append(await asyncio.to_thread(_sample, running, seconds, len(steady.times)))
        if number % (SAMPLES // SHOWN) == 0:
            bench.say(_shown(samples[-1], bench.sizes.soak_s, late))
            late = []
    return samples


def _sample(running: Running, seconds: float, count: int) -> Sample:
    memory = {name: machine.memory_bytes(pid) for name, pid in running.pids().items()}
    nodes = running.cluster.nodes
    disk = {node.name: machine.disk_bytes(node.directory / "data") for node in nodes}
    return Sample(seconds, count, memory, disk)


def _shown(sample: Sample, whole_s: float, late: Sequence[float]) -> str:
    memory = " ".join(f"{used / 2**20:.0f}" for used in sample.memory.values())
    disk = sum(sample.disk.values()) / 2**20
    return (
        f"soak: {sample.seconds:.0f} of {whole_s:.0f} s: {sample.changes:,} changes, longest of "
        f"late {max(late, default=0) * 1000:.0f} ms, RssAnon {memory} MiB, disks {disk:.0f} MiB"
    )


def _add_memory(bench: Bench, samples: Sequence[Sample]) -> None:
    """Add each node's growth. It has no goal in a run that ends while memory still fills."""
    goal = most(FLAT) if long_enough(samples) else None
    for name in sorted(samples[0].memory):
        line = [sample.memory[name] for sample in samples]
        bench.say(f"soak: RssAnon of {name} {drawn(line)} {line[-1] / 2**20:.0f} MiB")
        what = f"RssAnon of {name}, the last third / the third before"
        more: dict[str, object] = {"mib": [used / 2**20 for used in line]}
        bench.add(Figure("soak", what, growth(samples, name), "times", goal, more=more))


def _add(bench: Bench, samples: Sequence[Sample], times: Sequence[float], effort: Effort) -> None:
    disks = [sum(sample.disk.values()) for sample in samples]
    bench.say(f"soak: disks {drawn(disks)} {disks[-1] / 2**20:.0f} MiB")
    first, second = (bytes_a_change(half) for half in halves(samples))
    bench.add(Figure("soak", "bytes that a change adds to the three disks", second, "bytes"))
    what = "the same, the last third / the third before"
    bench.add(Figure("soak", what, second / first, "times", most(STEADY), more={"bytes": disks}))
    p50, p99 = quantile(times, 0.5) * 1000, quantile(times, 0.99) * 1000
    what = "the longest commit"
    longest = max(times) * 1000
    bench.add(Figure("soak", what, longest, "ms", p50_ms=p50, p99_ms=p99, effort=effort))


# --- members ---


@asynccontextmanager
async def _members(bench: Bench, running: Running) -> AsyncIterator[None]:
    """A group that sends heartbeats, and one whose members are started again, one by one."""
    beating = Members("beating", bench.sizes.beating_members)
    restarted = Members("restarted", RESTARTED)
    async with running.talk.lines(STREAMS) as lines:
        await beating.form(lines)
        await restarted.form(lines)
    ended = asyncio.Event()
    living = [
        asyncio.create_task(_beat(running, beating, share, ended))
        for share in shares(beating.count, STREAMS)
    ]
    living.append(asyncio.create_task(_restart(running, restarted, ended)))
    try:
        yield
    finally:
        ended.set()
        await asyncio.gather(*living)


async def _beat(running: Running, members: Members, share: range, ended: asyncio.Event) -> None:
    batch = g.HeartbeatBatch(batch=1, requests=[members.heartbeat(number) for number in share])

    async def once(line: Line) -> None:
        call = line.group.HeartbeatStream()
        await call.write(batch)
        check_batch(await read(call))
        await call.done_writing()

    async with Following(running) as following:
        while not await _passed(ended, INTERVAL_S):
            await following.until_served(once)


async def _restart(running: Running, members: Members, ended: asyncio.Event) -> None:
    numbers = itertools.cycle(range(members.count))
    async with Following(running) as following:
        while not await _passed(ended, RESTART_EVERY_S):
            replaced = partial(members.replace, number=next(numbers))
            await following.until_served(replaced)


async def _passed(ended: asyncio.Event, seconds: float) -> bool:
    """Wait so long; whether the row ended meanwhile."""
    try:
        await asyncio.wait_for(ended.wait(), seconds)
    except TimeoutError:
        return False
    return True
