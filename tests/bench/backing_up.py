"""The row about a backup: what callers notice while one of a long history is taken, and a restore.

The history is made first, as much of it as the machine makes in five minutes. Then a few callers
commit at an even pace: before the backup, and while the command takes and verifies it. At the end
the cluster is stopped, and goes on from the backup on new disks; there one more node joins.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import time
from pathlib import Path
from typing import Final, NamedTuple

import grpc.aio

from bench import changes, commands, joining, sealing
from bench.figures import Figure, most, quantile
from bench.rig import Bench, Running, Watch
from bench.sessions import Refused, Session, response_of, sessions
from bench.steady import Steady
from bench.talk import Line, Unexpected

CALLERS: Final = 4
PACE_S: Final = 0.01
A_MESSAGE: Final = 64
"""Commits in a message by which the history is made, each for a group of its own."""
IN_FLIGHT: Final = 4
"""Such messages at once."""
LOOK_S: Final = 0.2
QUIET_S: Final = 15.0
"""How long no node may have sealed a segment before anything is measured."""
PATIENCE_S: Final = 900.0
GOAL: Final = most(2)


async def backup(bench: Bench) -> None:
    """Callers commit; a long history is backed up, restored, and given to one more node."""
    async with bench.cluster("backup") as running:
        await running.talk.create_topic(changes.TOPIC, changes.PARTITIONS)
        to = bench.folder / "run" / "backup" / "copy"
        made = await _history(bench, running)
        async with Steady(running, CALLERS, PACE_S) as steady:
            await _until_quiet(bench, running, steady)
            calm = await steady.during(bench.sizes.calm_s)
            await _measure(bench, running, steady, _Case(made, to, calm))
        await _restore(bench, running, to)
        await running.talk.find_leader()
        async with Steady(running, CALLERS, PACE_S) as steady:
            calm = await steady.during(bench.sizes.calm_s)
            await joining.measure(bench, running, steady, calm)


class _Case(NamedTuple):
    """What the backup meets: about so many events, a place for it, and calls without it."""

    events: int
    to: Path
    calm: list[float]


class _History:
    """Events, made until there are enough or the time is over."""

    def __init__(self, wanted: int, seconds: float) -> None:
        self.made = 0
        self._wanted, self._until = wanted, time.perf_counter() + seconds
        self._messages = itertools.count()

    @property
    def is_made(self) -> bool:
        """Whether no more are to be made."""
        return self.made >= self._wanted or time.perf_counter() >= self._until

    async def go_on(self, line: Line) -> None:
        """Make them on a Session, some messages at once; raises what ends one of them."""
        async with sessions([line]) as (on,):
            tasks = [asyncio.create_task(self._fill(on, at * A_MESSAGE)) for at in range(IN_FLIGHT)]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _fill(self, on: Session, first: int) -> None:
        while not self.is_made:
            number = next(self._messages)
            requests = [changes.commit(first + place, number) for place in range(A_MESSAGE)]
            for answer in await on.ask_all(requests):
                changes.check(response_of(answer))
            self.made += A_MESSAGE


async def _history(bench: Bench, running: Running) -> int:
    """Make a long history, whoever leads; return how many events it has."""
    history = _History(bench.sizes.events, bench.sizes.history_s)
    while not history.is_made:
        try:
            async with running.talk.lines(1) as (line,):
                await history.go_on(line)
        except (Refused, Unexpected, grpc.aio.AioRpcError, EOFError) as error:
            bench.say(f"backup: goes on where another node leads: {error}")
            await running.talk.find_leader()
    bench.say(f"backup: {history.made:,} events are made")
    return history.made


async def _until_quiet(bench: Bench, running: Running, steady: Steady) -> None:
    """Wait until no segment is being sealed. Raises TimeoutError if that takes too long.

    A node that is late seals two segments' events as one, so nodes are compared by the entry up to
    which they have sealed, and not by the number of their segments.
    """
    nodes, began = running.cluster.nodes, time.perf_counter()
    ends, since = [0], began
    while (now := time.perf_counter()) < since + QUIET_S or len({*ends}) > 1:
        if now > began + PATIENCE_S:
            raise TimeoutError(f"the nodes still sealed segments after {PATIENCE_S:.0f} s")
        await steady.during(LOOK_S)
        if (found := [sealing.sealed_up_to(node) for node in nodes]) != ends:
            ends, since = found, time.perf_counter()
            bench.say(f"backup: sealed up to entry {', '.join(f'{end:,}' for end in ends)}")


async def _measure(bench: Bench, running: Running, steady: Steady, case: _Case) -> None:
    before, watch, began = await sealing.moment(running), Watch(running), time.perf_counter()
    first = len(steady.times)
    command = ("backup", "create", "--cluster", str(_home(running)), "--to", str(case.to))
    taking = asyncio.create_task(commands.run(bench, *command))
    while not taking.done():
        await steady.during(LOOK_S)
    await taking
    seconds, effort, times = time.perf_counter() - began, watch.effort(), steady.times[first:]
    term = (await sealing.moment(running)).term
    ratio = quantile(times, 0.99) / quantile(case.calm, 0.99)
    p50, p99 = quantile(times, 0.5) * 1000, quantile(times, 0.99) * 1000
    more: dict[str, object] = {
        "calls": len(times),
        "calm_p50_ms": quantile(case.calm, 0.5) * 1000,
        "calm_p99_ms": quantile(case.calm, 0.99) * 1000,
        "calm_longest_ms": max(case.calm) * 1000,
    }
    what = f"p99 of commits, {case.events:,} events are backed up / none"
    bench.add(Figure("backup", what, ratio, "times", GOAL, p50, p99, effort=effort, more=more))
    bench.add(Figure("backup", "the longest of these commits", max(times) * 1000, "ms"))
    bench.add(Figure("backup", "elections meanwhile", term - before.term, "", most(0)))
    bench.add(Figure("backup", "until it was taken and verified", seconds, "s"))
    bench.add(Figure("backup", "its size", _bytes(case.to) / 2**20, "MiB"))


async def _restore(bench: Bench, running: Running, backup: Path) -> None:
    """Lose all disks; time the command that makes new ones, and the start from them."""
    cluster = running.cluster
    nodes = {node.name: node.directory / "data" for node in cluster.nodes}
    await asyncio.to_thread(cluster.stop)
    for data in nodes.values():
        shutil.rmtree(data)
    places = [word for name, data in nodes.items() for word in ("--to", f"{name}={data}")]
    began = time.perf_counter()
    await commands.run(bench, "backup", "restore", str(backup), *places, "--recovery-number", "1")
    seconds = time.perf_counter() - began
    bench.add(Figure("backup", "a restore, verified, onto three new disks", seconds, "s"))
    began = time.perf_counter()
    await asyncio.to_thread(cluster.start)
    seconds = time.perf_counter() - began
    bench.add(Figure("backup", "from there until the cluster serves", seconds, "s"))


def _home(running: Running) -> Path:
    return running.cluster.nodes[0].directory.parent


def _bytes(backup: Path) -> int:
    """The bytes of all files that the manifest lists."""
    manifest = json.loads((backup / "manifest.json").read_text())
    return sum(file["size"] for file in (manifest["state"], *manifest["files"]))
