"""Log time (S8): the cluster's own time, which no wall clock can push forwards or back.

It starts at the wall time of the bootstrap. A leader continues from the last applied entry and
adds what its boot clock measured since it began to lead; it never goes back, and a leader whose
wall clock is a year ahead changes nothing. Clocks are given; this file reads none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a replica, in seconds."""

    boot: Callable[[], float]
    """Also counts time that the machine was suspended."""
    wall: Callable[[], float]
    """For people."""


class LogTime:
    """A node's view of log time, in milliseconds.

    The leader's is in force, a follower's a guess.
    """

    def __init__(self, boot_seconds: Callable[[], float]) -> None:
        """`boot_seconds`: a clock that also counts suspended time (CLOCK_BOOTTIME)."""
        self._boot_seconds = boot_seconds
        self._base_ms = 0
        self._base_at = boot_seconds()

    def continue_from(self, applied_ms: int) -> None:
        """Continue from now on from the log time of the last applied entry."""
        self._base_ms = applied_ms
        self._base_at = self._boot_seconds()

    def now_ms(self, applied_ms: int) -> int:
        """Return the log time now; never below that of the last applied entry."""
        advanced = self._base_ms + int((self._boot_seconds() - self._base_at) * 1000)
        return max(advanced, applied_ms)
