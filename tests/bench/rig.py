"""What every row is given: sizes, a cluster of its own, a stopwatch, a place for figures.

A row gets a fresh cluster, so that what one leaves behind (expiring members, a large log) does not
slow the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from bench import machine
from bench.figures import Effort, Figure, Goal, quantile
from bench.nodes import Cluster
from bench.sizes import Sizes
from bench.talk import Talk

INITIAL_DELAY_MS = 1_000
"""Long enough for all members of a new group to be in its first generation."""


class Say:
    """Prints progress with the seconds since the start and the load average."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        seconds = time.monotonic() - self._began
        print(f"[{seconds:6.1f} s, load {machine.load():4.1f}] {text}", flush=True)


class Measured(Protocol):
    """Nodes whose effort is watched: ours, or a peer's."""

    @property
    def leader_name(self) -> str:
        """Which of them leads."""

    def cpu_seconds(self) -> dict[str, float]:
        """Processor time of each running node so far."""


class Running(NamedTuple):
    """A cluster that serves, and how to speak to it."""

    cluster: Cluster
    talk: Talk

    @property
    def leader_name(self) -> str:
        """Which node leads, as found last."""
        return self.talk.leader.name

    def cpu_seconds(self) -> dict[str, float]:
        """Processor time of each running node so far."""
        return self.cluster.cpu_seconds()


class Watch:
    """Effort since `begin`; read by `effort`."""

    def __init__(self, running: Measured) -> None:
        self._running = running
        self._leader = running.leader_name
        self.begin()

    def begin(self) -> None:
        """Start over."""
        self._nodes = self._running.cpu_seconds()
        self._own, self._busy = time.process_time(), machine.busy_seconds()
        self._at = time.perf_counter()

    def effort(self) -> Effort:
        """Cores that were used since then, by whom."""
        seconds = time.perf_counter() - self._at
        now = self._running.cpu_seconds()
        used = {name: now[name] - before for name, before in self._nodes.items() if name in now}
        leader = used.get(self._leader, 0.0) / seconds
        others = sum(used.values()) / seconds - leader
        client = (time.process_time() - self._own) / seconds
        busy = (machine.busy_seconds() - self._busy) / seconds
        foreign = max(0.0, busy - leader - others - client)
        return Effort(seconds, leader, others, client, foreign, machine.load())


class Work(NamedTuple):
    """What a closed loop did: seconds of every call, in order of completion, and the effort."""

    times: list[float]
    effort: Effort

    @property
    def rate(self) -> float:
        """Calls per second."""
        return len(self.times) / self.effort.seconds


@dataclass(slots=True)
class Bench:
    """One run."""

    sizes: Sizes
    folder: Path
    say: Say
    peers: bool = False
    figures: list[Figure] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def cluster(
        self, row: str, settings: dict[str, int] | None = None
    ) -> AsyncIterator[Running]:
        """Three nodes for one row; gone afterwards."""
        wanted = {"group.initial_rebalance_delay_ms": INITIAL_DELAY_MS, **(settings or {})}
        cluster = Cluster(self.folder / "run" / row, wanted)
        try:
            await asyncio.to_thread(cluster.__enter__)
            talk = Talk(cluster)
            await talk.find_leader()
            yield Running(cluster, talk)
            await talk.close()
        finally:
            await asyncio.to_thread(cluster.__exit__)

    def add(self, figure: Figure) -> None:
        """Keep a figure and show it."""
        self.figures.append(figure)
        goal = f" (goal {figure.goal}: {figure.verdict})" if figure.goal else ""
        self.say(f"{figure.row}: {figure.what}: {figure.value:,.4g} {figure.unit}{goal}")

    def add_work(
        self,
        row: str,
        what: str,
        work: Work,
        *,
        unit: str,
        goal: Goal | None = None,
        each: int = 1,
        system: str = "holdfast",
    ) -> None:
        """Keep what a closed loop did. `each`: operations that one call holds."""
        operations = len(work.times) * each
        self.add(
            Figure(
                row,
                what,
                work.rate * each,
                unit,
                goal,
                quantile(work.times, 0.5) * 1000,
                quantile(work.times, 0.99) * 1000,
                work.effort.leader * work.effort.seconds / operations * 1e6,
                work.effort,
                system,
            )
        )

    async def closed(
        self, running: Measured, callers: int, one: Callable[[int], Awaitable[None]]
    ) -> Work:
        """`callers` at once, each one call after another: first to warm up, then measured."""
        await _loop(callers, one, self.sizes.warm_up_s)
        watch = Watch(running)
        times = await _loop(callers, one, self.sizes.seconds)
        return Work(times, watch.effort())


async def _loop(callers: int, one: Callable[[int], Awaitable[None]], seconds: float) -> list[float]:
    times: list[float] = []
    until = time.perf_counter() + seconds

    async def caller(number: int) -> None:
        while (began := time.perf_counter()) < until:
            await one(number)
            times.append(time.perf_counter() - began)

    await asyncio.gather(*(caller(number) for number in range(callers)))
    return times


def shares(count: int, parts: int) -> Iterator[range]:
    """Split `range(count)` into so many nearly equal runs."""
    for part in range(parts):
        yield range(count * part // parts, count * (part + 1) // parts)
