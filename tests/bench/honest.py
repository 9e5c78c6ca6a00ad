"""Callers that commit at an even pace while something else happens, and what they notice of it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from bench import changes
from bench.figures import Effort, quantile
from bench.rig import Running, Watch
from bench.talk import Line

HONEST: Final = 4
PACE_S: Final = 0.01


@dataclass(slots=True)
class Part:
    """What honest callers saw in all turns of one part: seconds of each call, and the effort."""

    times: list[float] = field(default_factory=list)
    efforts: list[Effort] = field(default_factory=list)

    @property
    def p99_ms(self) -> float:
        """All turns together."""
        return quantile(self.times, 0.99) * 1000

    @property
    def p50_ms(self) -> float:
        """All turns together."""
        return quantile(self.times, 0.5) * 1000

    @property
    def effort(self) -> Effort:
        """The mean of all turns; they are equally long."""
        return Effort(*(sum(each) / len(each) for each in zip(*self.efforts, strict=True)))


async def commit_until(done: Callable[[], bool], running: Running, part: Part) -> None:
    """One turn: each caller commits for a group of its own, over a connection of its own."""
    numbers = itertools.count()
    watch = Watch(running)

    async def caller(at: int, line: Line) -> None:
        while not done():
            began = time.perf_counter()
            changes.check(await line.offset.OffsetCommit(changes.commit(at, next(numbers))))
            part.times.append(time.perf_counter() - began)
            await asyncio.sleep(PACE_S)

    async with running.talk.lines(HONEST) as lines:
        await asyncio.gather(*(caller(at, line) for at, line in enumerate(lines)))
    part.efforts.append(watch.effort())


def passed(seconds: float) -> Callable[[], bool]:
    """Whether so many seconds have passed since now."""
    until = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= until
