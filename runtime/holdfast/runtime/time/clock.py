"""The node's clock, and how long the process stood still.

CLOCK_BOOTTIME, so that a suspended machine's time counts (S9, S10). A stall (SIGSTOP, a starved
processor, a blocked loop) is measured by a tick that comes late; whoever keeps deadlines is told
and shifts them, since members could not be heard meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

TICK_MS: Final = 50
"""How often the watchdog looks."""
STALL_MIN_MS: Final = 20
"""Lateness below this is an ordinary loop's and is not called a stall."""


def boot_ms() -> int:
    """Milliseconds since the machine started, suspension included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def boot_s() -> float:
    """The same in seconds, to the nanosecond."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Watchdog:
    """Measures stalls of the loop and tells `on_stall` their length in milliseconds."""

    def __init__(
        self, on_stall: Callable[[int], None], now_ms: Callable[[], int] = boot_ms
    ) -> None:
        self._on_stall, self._now_ms = on_stall, now_ms
        self._expected = 0
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to tick in the running loop."""
        self._expected = self._now_ms() + TICK_MS
        self._handle = asyncio.get_running_loop().call_later(TICK_MS / 1000, self._tick)

    def stop(self) -> None:
        """Tick no more."""
        if self._handle is not None:
            self._handle.cancel()

    def look(self) -> None:
        """Measure now, before anything is judged by the clock; nothing before the start."""
        if self._handle is None:
            return
        late = self._now_ms() - self._expected
        if late > STALL_MIN_MS:
            self._expected += late
            self._on_stall(late)

    def _tick(self) -> None:
        self.look()
        self.start()
