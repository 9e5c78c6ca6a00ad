"""One line that says how far a long run has come, and rewrites itself; for people at a terminal.

A run is a row of steps; within a step the share of tasks that are done is told by whoever knows
them. How long it will take follows from the steps' usual shares of the time, so it is rough. Knows
a stream and a clock, no Spark.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Final, Protocol, TextIO

_CLEAR: Final = "\r\x1b[K"
_GUESS_AFTER_S: Final = 5.0
"""Earlier than this nothing is said of the time that is left."""
_GUESS_SHARE: Final = 0.03
_ROUND: Final = 2 / 3
"""Of what is left of a step, a round of tasks is taken for so much: how many come nobody knows."""
_MINUTE_S: Final = 90
"""From so many seconds on, minutes are told."""


class Steps(Protocol):
    """Hears which step begins, and how many tasks of it are done."""

    def step(self, name: str) -> None:
        """Take in that a step begins."""

    def tasks(self, done: int, total: int) -> None:
        """Take in how many tasks of the step are done, as far as they are known."""


class Silent:
    """Says nothing."""

    def step(self, name: str) -> None:
        """Do nothing."""

    def tasks(self, done: int, total: int) -> None:
        """Do nothing."""


SILENT: Final = Silent()


class Line:
    """The line. Threads may tell it what they know."""

    def __init__(
        self, out: TextIO, shares: Mapping[str, float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`shares`: of the time that each step takes as a rule; others take none."""
        self._out, self._clock, self._shares = out, clock, dict(shares)
        self._whole = sum(shares.values()) or 1.0
        self._passed, self._name = set[str](), ""
        self._done, self._total = 0, 0
        self._rounds = 0.0
        self._began: float | None = None
        self._lock = Lock()

    def step(self, name: str) -> None:
        """Begin the next step. The clock runs from the first one that takes a share."""
        with self._lock:
            self._passed.add(self._name)
            self._name, self._done, self._total, self._rounds = name, 0, 0, 0.0
            if self._began is None and name in self._shares:
                self._began = self._clock()
            self._draw()

    def tasks(self, done: int, total: int) -> None:
        """Show how many tasks are done; a step may have several rounds of them, one by one."""
        with self._lock:
            if (done, -total) < (self._done, -self._total):
                self._rounds += (1 - self._rounds) * _ROUND
            self._done, self._total = done, total
            self._draw()

    def end(self) -> None:
        """Leave an empty line behind."""
        with self._lock:
            self._out.write(_CLEAR)
            self._out.flush()

    def _draw(self) -> None:
        columns = shutil.get_terminal_size().columns
        self._out.write(_CLEAR + self._text()[: max(columns - 1, 1)])
        self._out.flush()

    def _text(self) -> str:
        if not self._name:
            return ""
        share = self._share()
        tasks = f"{self._done} of {self._total} tasks" if self._total else ""
        parts = [self._name, tasks, f"{share:.0%}" if self._began is not None else ""]
        return ", ".join(part for part in (*parts, self._left(share)) if part)

    def _share(self) -> float:
        passed = sum(part for name, part in self._shares.items() if name in self._passed)
        if self._name in self._passed:
            return passed / self._whole
        tasks = self._done / self._total if self._total else 0.0
        part = self._rounds + (1 - self._rounds) * _ROUND * tasks
        return (passed + self._shares.get(self._name, 0.0) * part) / self._whole

    def _left(self, share: float) -> str:
        if self._began is None or share < _GUESS_SHARE:
            return ""
        taken = self._clock() - self._began
        if taken < _GUESS_AFTER_S:
            return ""
        left = taken * (1 - share) / share
        return (
            f"about {left / 60:.0f} min left" if left >= _MINUTE_S else f"about {left:.0f} s left"
        )


@contextmanager
def line(out: TextIO | None, shares: Mapping[str, float]) -> Iterator[Steps]:
    """Show a line for the body, if there is a stream for it; it is gone afterwards."""
    if out is None:
        yield SILENT
        return
    shown = Line(out, shares)
    try:
        yield shown
    finally:
        shown.end()
