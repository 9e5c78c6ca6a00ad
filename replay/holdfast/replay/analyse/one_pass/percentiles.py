"""Medians of whole numbers: of an even number of values the lower of the two in the middle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def median(values: Sequence[int]) -> int | None:
    """Return the median; None if there are no values."""
    return sorted(values)[(len(values) - 1) // 2] if values else None


def median_of_counts(counts: Iterable[tuple[int, int]]) -> int:
    """Return the median of values that are given with how often each occurs; there are some."""
    order = sorted(counts)
    left = (sum(number for _, number in order) + 1) // 2
    for value, number in order:
        left -= number
        if left <= 0:
            return value
    raise ValueError("nothing has no median")
