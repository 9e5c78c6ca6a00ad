"""The one clock of a history of real processes: CLOCK_BOOTTIME, in microseconds.

All processes of one machine share it, and no change of the wall clock moves it. Processes of a run
read it; a judge reads a history, and no clock.
"""

from __future__ import annotations

import time
from typing import Final

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
US_PER_MS: Final = 1_000
US_PER_S: Final = 1_000_000


def boot_us() -> int:
    """Return the microseconds since the machine started; never goes back."""
    return time.clock_gettime_ns(_CLOCK) // 1_000


def wall_behind_us() -> int:
    """Return the wall clock's microseconds less `boot_us`, at this moment."""
    return time.time_ns() // 1_000 - boot_us()
