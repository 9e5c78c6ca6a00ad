"""The node's clock, and how long the process stood still.

The clock is CLOCK_BOOTTIME, so that the time of a suspended machine counts (S9, S10). A stall
(SIGSTOP, a starved processor, a blocked loop) is measured by a tick that comes late. Deadlines are
shifted by it, since no heartbeat could be processed meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

TICK_MS: Final = 50
"""Interval of the watchdog's ticks."""
STALL_MIN_MS: Final = 20
"""Lateness below this is usual for a loop and does not count as a stall."""


def boot_ms() -> int:
    """Return the milliseconds since the machine started, suspension included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def boot_s() -> float:
    """Return the same in seconds, to the nanosecond."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Watchdog:
    """Measures stalls of the loop and calls `on_stall` with their length in milliseconds."""

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
        """Stop ticking."""
        if self._handle is not None:
            self._handle.cancel()

    def look(self) -> None:
        """Measure now, before anything is judged by the clock; does nothing before `start`."""
        if self._handle is None:
            return
        late = self._now_ms() - self._expected
        if late > STALL_MIN_MS:
            self._expected += late
            self._on_stall(late)

    def _tick(self) -> None:
        self.look()
        self.start()
