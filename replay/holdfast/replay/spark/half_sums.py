"""Sum up numbers of 64 bits in the JVM as two halves: the sum of the whole overflows, and fails.

Knows columns, not what the numbers are.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as f

_LOW: Final = (1 << 32) - 1


def half_sums(name: str, low: str, high: str) -> tuple[Column, Column]:
    """Return the sums of a column's low halves and of its high ones, under these names."""
    lows, highs = f.col(name).bitwiseAND(_LOW), f.shiftrightunsigned(name, 32)
    return f.sum(lows).alias(low), f.sum(highs).alias(high)
