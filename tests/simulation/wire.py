"""The network between machines: how long things take, what is cut, and what goes wrong on the way.

A path leads from one machine to another; each direction has its own, with its own chance, so that
what happens on one does not depend on the others. Connections of calls are in order and lose
nothing while they last (TCP sends again); frames between nodes can be lost, doubled and reordered,
which is more than the real transport may do. Knows no message.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulation.schedule import Schedule

LATENCY_US: Final = (80, 820)
"""One way, on a quiet network: at least, and by how much more; now and then ten times as long."""
SLOW_CHANCE: Final = 0.01
SENT_AGAIN_US: Final = (200_000, 1_000_000)
"""How long TCP takes to send again what was lost."""


class Path:
    """One direction between two machines. What is set here are the faults of the moment."""

    def __init__(self, schedule: Schedule, random: Random) -> None:
        self._schedule, self._random = schedule, random
        self.cuts = 0
        self.delay_us = 0
        self.loss = self.doubling = self.reordering = 0.0
        self._last_us = 0
        self._stalled: list[Callable[[], None]] = []

    @property
    def is_cut(self) -> bool:
        """Whether nothing passes."""
        return self.cuts > 0

    def _latency_us(self) -> int:
        random = self._random
        latency = LATENCY_US[0] + int(random.random() * LATENCY_US[1])
        if random.random() < SLOW_CHANCE:
            latency *= 10
        if self.delay_us:
            latency += random.randint(self.delay_us // 2, self.delay_us)
        return latency

    def stream(self, deliver: Callable[[], None]) -> None:
        """Carry something of a connection: in order, and sent again if it is lost."""
        if self.is_cut:
            self._stalled.append(deliver)
            return
        at_us = self._schedule.now_us + self._latency_us()
        if self.loss and self._random.random() < self.loss:
            at_us += self._random.randint(*SENT_AGAIN_US)
        self._last_us = max(self._last_us + 1, at_us)
        self._schedule.at(self._last_us, deliver)

    def frame(self, deliver: Callable[[], None], departs_us: int) -> None:
        """Carry a message between nodes, which may be lost, doubled or overtaken."""
        random = self._random
        if self.is_cut or (self.loss and random.random() < self.loss):
            return
        at_us = departs_us + self._latency_us()
        if not (self.reordering and random.random() < self.reordering):
            at_us = self._last_us = max(self._last_us + 1, at_us)
        self._schedule.at(at_us, deliver)
        if self.doubling and random.random() < self.doubling:
            self._schedule.at(at_us + random.randint(1, 50_000), deliver)

    def cut(self) -> None:
        """Let nothing through, until as many `mend`s."""
        self.cuts += 1

    def mend(self) -> None:
        """Take one cut back; what connections had under way is sent again."""
        self.cuts -= 1
        if self.cuts:
            return
        stalled, self._stalled = self._stalled, []
        pause_us = self._random.randint(1_000, SENT_AGAIN_US[0])
        for deliver in stalled:
            self._last_us = max(self._last_us + 1, self._schedule.now_us + pause_us)
            self._schedule.at(self._last_us, deliver)


class Wire:
    """All paths between all machines."""

    def __init__(self, schedule: Schedule, seed: str) -> None:
        self._schedule, self._seed = schedule, seed
        self._paths: dict[tuple[str, str], Path] = {}

    def path(self, source: str, target: str) -> Path:
        """The way from one machine to another."""
        path = self._paths.get((source, target))
        if path is None:
            random = Random(f"{self._seed} {source}>{target}")
            path = self._paths[source, target] = Path(self._schedule, random)
        return path

    def both(self, a: str, b: str) -> tuple[Path, Path]:
        """There and back."""
        return self.path(a, b), self.path(b, a)
