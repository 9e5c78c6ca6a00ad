"""The place of a row as one number, which grows with the log; and the entry of such a place.

One number of 64 bits keeps Spark's aggregates on hashes; of a pair it would have to sort. Ordinals
below 0 are of rows that stand for a checkpoint; `nth` tells rows apart that are made of one record.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as f

_NTH_BITS: Final = 3
_BITS: Final = 24
"""Of what is told of a place within its entry."""
_BEFORE: Final = 1 << (_BITS - _NTH_BITS - 1)
"""So many ordinals lie below 0, and as many do not: more than an entry can hold records."""


def place() -> Column:
    """Make the place of a row of the log."""
    within = (f.col("ordinal").cast("bigint") + _BEFORE) * (1 << _NTH_BITS)
    return f.col("idx") * (1 << _BITS) + within


def entry(at: str | Column) -> Column:
    """Return the index of the entry in which a place is."""
    return f.shiftright(at, _BITS)


def ordinal(at: str | Column) -> Column:
    """Return the ordinal of the record at a place."""
    column = f.col(at) if isinstance(at, str) else at
    within = column.bitwiseAND((1 << _BITS) - 1)
    return f.shiftright(within, _NTH_BITS) - _BEFORE
