"""Row about hostile callers: what honest ones notice of them, and what a node's memory does."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import AsyncIterator
from typing import Final

from bench import changes, machine
from bench.figures import Figure, most, quantile
from bench.rig import Bench, Running
from bench.talk import Line
from harness.hostile import KINDS

HONEST: Final = 4
PACE_S: Final = 0.01
EACH: Final = 4
"""Attackers of each kind that have a client's certificate; one of each kind has none."""


async def hostile(bench: Bench) -> None:
    """Honest callers beside hostile ones: floods, half calls, slow ones, garbage on both ports."""
    async with bench.cluster("hostile") as running:
        await running.talk.create_topic(changes.TOPIC, changes.PARTITIONS)
        await _honest(bench, running)
        calm = await _honest(bench, running)
        before = _memory(running)
        async with _beset(running):
            beset = await _honest(bench, running)
        grown = (_memory(running) - before) / 2**20
    p99 = quantile(calm, 0.99), quantile(beset, 0.99)
    more: dict[str, object] = {"calm_p99_ms": p99[0] * 1000, "beset_p99_ms": p99[1] * 1000}
    what = f"p99 of honest commits beside {(EACH + 1) * len(KINDS)} attackers"
    bench.add(Figure("hostile", what, p99[1] / p99[0], "times", most(2.0), more=more))
    bench.add(Figure("hostile", "the leader's memory grew by", grown, "MiB", most(64)))


async def _honest(bench: Bench, running: Running) -> list[float]:
    """Commits at an even pace; seconds of each."""
    times: list[float] = []
    numbers = itertools.count()
    until = time.perf_counter() + bench.sizes.seconds

    async def caller(at: int, line: Line) -> None:
        while (began := time.perf_counter()) < until:
            changes.check(await line.offset.OffsetCommit(changes.commit(at, next(numbers))))
            times.append(time.perf_counter() - began)
            await asyncio.sleep(PACE_S)

    async with running.talk.lines(HONEST) as lines:
        await asyncio.gather(*(caller(at, line) for at, line in enumerate(lines)))
    return times


@contextlib.asynccontextmanager
async def _beset(running: Running) -> AsyncIterator[None]:
    """Attackers in a process of their own, so that only the node has them in common with us."""
    tls = running.cluster.tls_files()
    command = ["nice", sys.executable, "-m", "harness.hostile"]
    command += [running.talk.leader.address, str(EACH), *tls]
    attackers = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert attackers.stdout is not None
        await attackers.stdout.readline()
        yield
    finally:
        attackers.kill()
        await attackers.wait()


def _memory(running: Running) -> int:
    return machine.memory_bytes(running.talk.leader.pid)
