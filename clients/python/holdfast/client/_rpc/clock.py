"""The client's one clock: milliseconds since boot, counting time spent suspended.

S11 needs CLOCK_BOOTTIME: CLOCK_MONOTONIC stands still while a machine sleeps, so a member that
slept through its session would wake up and believe itself an owner. Where the system has no such
clock, its monotonic one stands in, and after a suspend only the fencing token protects.
"""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_NS_PER_MS = 1_000_000


def boot_ms() -> int:
    """Return the milliseconds since boot; they never decrease."""
    return time.clock_gettime_ns(_CLOCK) // _NS_PER_MS


def left_ms(deadline_ms: int) -> int:
    """Return the ms until a deadline, at least 1, for callees that do not take 0."""
    return max(1, deadline_ms - boot_ms())
