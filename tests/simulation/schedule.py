"""What happens next: one queue of everything that will happen, in the order of one true clock.

Time is whole microseconds and moves only from one happening to the next. What is due at one moment
happens in the order in which it was planned, so that nothing is left to chance. Knows nothing of
nodes, clients or networks.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

US: int = 1_000_000
"""Microseconds in a second."""


class Planned:
    """Something that will happen unless it is cancelled."""

    __slots__ = ("act", "arguments")

    def __init__(self, act: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self.act: Callable[..., object] | None = act
        self.arguments = arguments

    def cancel(self) -> None:
        """It will not happen."""
        self.act = None
        self.arguments = ()


class Schedule:
    """The true clock and what is planned on it."""

    def __init__(self) -> None:
        self.now_us = 0
        self.happened = 0
        self._queue: list[tuple[int, int, Planned]] = []
        self._number = 0

    def at(self, at_us: int, act: Callable[..., object], *arguments: object) -> Planned:
        """Plan something for a moment; for one that is past, as soon as possible."""
        planned = Planned(act, arguments)
        self._number += 1
        heappush(self._queue, (max(at_us, self.now_us), self._number, planned))
        return planned

    def after(self, delay_us: int, act: Callable[..., object], *arguments: object) -> Planned:
        """Plan something for so many microseconds from now."""
        return self.at(self.now_us + delay_us, act, *arguments)

    def run(self, until_us: int, done: Callable[[], bool] = lambda: False) -> None:
        """Let everything happen up to a moment, or until `done` after some happening."""
        queue = self._queue
        while queue and queue[0][0] <= until_us:
            at_us, _, planned = heappop(queue)
            if planned.act is None:
                continue
            self.now_us = at_us
            self.happened += 1
            planned.act(*planned.arguments)
            if done():
                return
        self.now_us = max(self.now_us, until_us)

    def clear(self) -> None:
        """Nothing is planned any more."""
        self._queue.clear()
