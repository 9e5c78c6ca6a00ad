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

import grpc
import grpc.aio

from bench import machine
from bench.figures import Effort, Figure, Goal, quantile
from bench.nodes import OWN, Cluster, Program
from bench.sizes import Sizes
from bench.spent import Snapshot, Spent, between
from bench.talk import Talk

INITIAL_DELAY_MS = 1_000
"""Long enough for all members of a new group to be in its first generation."""


class Say:
    """Prints progress with the seconds since the start and the load average."""

    def __init__(self, label: str = "", began: float | None = None) -> None:
        self._label = label
        self._began = time.monotonic() if began is None else began

    def within(self, label: str) -> Say:
        """The same clock, with a label before each text."""
        return Say(f"{label}: ", self._began)

    def __call__(self, text: str) -> None:
        seconds = time.monotonic() - self._began
        print(f"[{seconds:6.1f} s, load {machine.load():4.1f}] {self._label}{text}", flush=True)


class Measured(Protocol):
    """Nodes whose effort is watched: ours, or a peer's."""

    @property
    def leader_name(self) -> str:
        """Which of them leads."""

    def pids(self) -> dict[str, int]:
        """Process id of each node, by its name."""


class Running(NamedTuple):
    """A cluster that serves, and how to speak to it."""

    cluster: Cluster
    talk: Talk

    @property
    def leader_name(self) -> str:
        """Which node leads, as found last."""
        return self.talk.leader.name

    def pids(self) -> dict[str, int]:
        """Process id of each node, by its name."""
        return {node.name: node.pid for node in self.cluster.nodes}


class Watch:
    """What nodes and load have used since it was made."""

    def __init__(self, running: Measured) -> None:
        self._leader, self._pids = running.leader_name, running.pids()
        switches = self._switches()  # reading them costs time of our own: outside of the stretch
        self._before = Snapshot(*self._clocks(), switches)

    def _clocks(self) -> tuple[float, float, float, dict[str, float]]:
        nodes = {}
        for name, pid in self._pids.items():
            with contextlib.suppress(OSError):  # a node that was killed meanwhile
                nodes[name] = machine.cpu_seconds(pid)
        return time.perf_counter(), time.process_time(), machine.busy_seconds(), nodes

    def _switches(self) -> dict[str, dict[int, int]]:
        return {name: machine.switches(pid) for name, pid in self._pids.items()}

    def spent(self) -> Spent:
        """All of it."""
        clocks = self._clocks()
        after = Snapshot(*clocks, self._switches())
        return between(self._before, after, self._leader, machine.load())

    def effort(self) -> Effort:
        """Cores that were used since then, by whom."""
        return self.spent().effort


class Work(NamedTuple):
    """What a closed loop did: seconds of every call, in order of completion, and what it took."""

    times: list[float]
    spent: Spent

    @property
    def effort(self) -> Effort:
        """The same in cores."""
        return self.spent.effort

    @property
    def rate(self) -> float:
        """Calls per second."""
        return len(self.times) / self.spent.seconds


@dataclass(slots=True)
class Bench:
    """One run. `program`: what starts the nodes, if not this checkout's.

    `lacking`: parts of rows whose calls the nodes do not know, and what they said.
    """

    sizes: Sizes
    folder: Path
    say: Say
    peers: bool = False
    program: Program | None = None
    figures: list[Figure] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def cluster(
        self, row: str, settings: dict[str, int] | None = None
    ) -> AsyncIterator[Running]:
        """Three nodes for one row; gone afterwards."""
        wanted = {"group.initial_rebalance_delay_ms": INITIAL_DELAY_MS, **(settings or {})}
        cluster = Cluster(self.folder / "run" / row, wanted, program=self.program or OWN)
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

    def add_work(  # noqa: PLR0913 - keyword-only, each with a default
        self,
        row: str,
        what: str,
        work: Work,
        *,
        unit: str,
        goal: Goal | None = None,
        each: int = 1,
        system: str = "holdfast",
        shape: str = "",
        instead: str = "",
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
                work.spent.cost(operations),
                work.effort,
                system,
                shape,
                instead,
            )
        )

    async def attempt(self, row: str, what: str, part: Awaitable[None]) -> None:
        """Measure a part of a row; note in `lacking` if the nodes do not know its calls."""
        try:
            await part
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise
            self.lacking[f"{row}: {what}"] = "the nodes do not have the call"
            self.say(f"{row}: {what}: the nodes do not have the call")

    async def closed(
        self, running: Measured, callers: int, one: Callable[[int], Awaitable[None]]
    ) -> Work:
        """`callers` at once, each one call after another: first to warm up, then measured."""
        await _loop(callers, one, self.sizes.warm_up_s)
        watch = Watch(running)
        times = await _loop(callers, one, self.sizes.seconds)
        return Work(times, watch.spent())


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
