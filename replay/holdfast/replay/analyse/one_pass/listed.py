"""The first rows of a list that is too long to be kept whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

LISTED_MAX: Final = 1_000
_WAITING_MAX: Final = 10_000


class Longest(Generic[T]):
    """Keeps the LISTED_MAX first rows by some order, and counts all."""

    def __init__(self, place: Callable[[T], Any]) -> None:
        """`place`: what rows are ordered by."""
        self._place = place
        self._rows: list[T] = []
        self.total = 0

    def add(self, row: T) -> None:
        """Add a row."""
        self._rows.append(row)
        self.total += 1
        if len(self._rows) >= _WAITING_MAX:
            self._rows = self.rows()

    def rows(self) -> list[T]:
        """Return the first rows, in order."""
        return first_of(self._rows, self._place)


def first_of(rows: Iterable[T], place: Callable[[T], Any]) -> list[T]:
    """Return the LISTED_MAX first rows by an order."""
    return sorted(rows, key=place)[:LISTED_MAX]
