"""What every kind of fault may use: the cluster, its links, the clients, the dice, and the record.

A kind is a coroutine that breaks something, waits, and mends it. It returns the moment from which
the cluster had to do without its leader, or None if it was not meant to lose it. Knows no kind of
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
    """A kind of fault. `needs`: what must be there, by name. `slow`: it starts many nodes."""

    name: str
    about: str
    inject: Callable[[FaultContext], Awaitable[int | None]]
    needs: tuple[str, ...] = ()
    slow: bool = False


@dataclass(slots=True)
class FaultContext:
    """What the faults of one run share.

    `folder` is for files that faults need; `wrong` collects sentences about what went wrong.
    """

    target: Target
    network: Network | None
    workers: Workers
    prober: Prober
    admin: Admin
    random: Random
    recorder: Recorder
    folder: Path
    session_s: float
    wrong: list[str] = field(default_factory=list)

    @property
    def net(self) -> Network:
        """The links; only for kinds that need them."""
        if self.network is None:
            raise RuntimeError("this kind of fault needs proxies between the nodes")
        return self.network

    def begin(self, kind: str, target: str, **details: Any) -> int:  # noqa: ANN401 - JSON values
        """Write that something is broken from now on; the moment."""
        now_us = boot_us()
        self.recorder.note(Fault(now_us, kind, target, "begin", details))
        return now_us

    def end(self, kind: str, target: str, **details: Any) -> None:  # noqa: ANN401 - JSON values
        """Write that it is mended."""
        self.recorder.note(Fault(boot_us(), kind, target, "end", details))

    @contextmanager
    def fault(self, kind: str, target: str, **details: Any) -> Iterator[int]:  # noqa: ANN401 - JSON values
        """Broken for as long as the block runs; gives the moment at which it began."""
        began_us = self.begin(kind, target, **details)
        try:
            yield began_us
        finally:
            self.end(kind, target)

    async def hold(self, least_s: float, most_s: float) -> None:
        """Let the fault last, for a time that the dice choose."""
        await asyncio.sleep(self.random.uniform(least_s, most_s))

    async def follower(self) -> str:
        """A node that does not lead."""
        return self.random.choice(self.target.others(await self.target.leader()))

    async def someone(self) -> tuple[str, bool]:
        """A node, and whether it leads; the leader half of the time."""
        leader = await self.target.leader()
        if self.random.random() < 0.5:  # noqa: PLR2004 - half of the time
            return leader, True
        return self.random.choice(self.target.others(leader)), False

    async def served_again(self, moment_us: int) -> None:
        """Wait until a change begun after the moment is accepted, while the fault lasts."""
        await self.prober.accepted_after(moment_us)
