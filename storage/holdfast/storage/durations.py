"""Counts durations in classes, as plain numbers that anybody may read at any time.

For paths where each microsecond counts; whoever shows them to people or programs translates them.
Reads no clock. One thread adds.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

BOUNDS_S: Final = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
"""The longest duration of each class in seconds; what is longer is in one more class."""


class Durations:
    """How many durations were in each class, and their sum in seconds."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds
