"""What all kinds of faults use: the cluster, its links, the clients, random numbers, the recorder.

A kind is a coroutine that breaks something, waits, and repairs it. It returns the time from which
the cluster had no leader, or None if the fault does not affect the leader. Knows no kind of
fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.chaos.clock import boot_us
from holdfast.chaos.history.happenings import Fault

if TYPE_CHECKING:
    from holdfast.chaos.cluster.proxy import Network
    from holdfast.chaos.cluster.target import Target
    from holdfast.chaos.workload.prober import Prober
    from holdfast.chaos.workload.recorder import Recorder
    from holdfast.chaos.workload.workers import Workers
    from holdfast.client import Admin


class Kind(NamedTuple):
    """A kind of fault."""

    name: str
    about: str  # for people
    inject: Callable[[FaultContext], Awaitable[int | None]]
    needs: tuple[str, ...] = ()  # tools that must be available, by name
    slow: bool = False  # it starts many nodes


@dataclass(slots=True)
class FaultContext:
    """What the faults of one run share."""

    target: Target
    network: Network | None
    workers: Workers
    prober: Prober
    admin: Admin
    random: Random
    recorder: Recorder
    folder: Path  # for files that faults need
    session_s: float  # the session timeout of the run's members, in seconds
    wrong: list[str] = field(default_factory=list)  # sentences about what went wrong

    @property
    def net(self) -> Network:
        """The links, for kinds that need them."""
        if self.network is None:
            raise RuntimeError("this kind of fault needs proxies between the nodes")
        return self.network

    def begin(self, kind: str, target: str, **details: Any) -> int:  # noqa: ANN401 - JSON values
        """Record that a fault begins now; return the time in µs."""
        now_us = boot_us()
        self.recorder.note(Fault(now_us, kind, target, "begin", details))
        return now_us

    def end(self, kind: str, target: str, **details: Any) -> None:  # noqa: ANN401 - JSON values
        """Record that a fault has ended."""
        self.recorder.note(Fault(boot_us(), kind, target, "end", details))

    @contextmanager
    def fault(self, kind: str, target: str, **details: Any) -> Iterator[int]:  # noqa: ANN401 - JSON values
        """Record a fault for the body's duration; yield the time in µs at which it began."""
        began_us = self.begin(kind, target, **details)
        try:
            yield began_us
        finally:
            self.end(kind, target)

    async def hold(self, least_s: float, most_s: float) -> None:
        """Let the fault last for a random time between the two."""
        await asyncio.sleep(self.random.uniform(least_s, most_s))

    async def follower(self) -> str:
        """Choose a node that does not lead."""
        return self.random.choice(self.target.others(await self.target.leader()))

    async def someone(self) -> tuple[str, bool]:
        """Choose a node, the leader half of the time; return it, and whether it leads."""
        leader = await self.target.leader()
        if self.random.random() < 0.5:  # noqa: PLR2004 - half of the time
            return leader, True
        return self.random.choice(self.target.others(leader)), False

    async def served_again(self, moment_us: int) -> None:
        """Wait until a change begun after this time is accepted, while the fault lasts."""
        await self.prober.accepted_after(moment_us)
