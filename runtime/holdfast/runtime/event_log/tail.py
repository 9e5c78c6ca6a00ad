"""The newest records of the event log: applied, and not yet in the state store (S18).

The loop adds records, the snapshot writer's thread removes durable ones, and the history reads
them. A record leaves only after it is in the store, so it is always in at least one place. Kept are
bytes, as the store will have them: the values that they encode take several times the memory, and
the garbage collector would walk them. Knows no disk and no loop.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from holdfast.storage.state.state_store import EventRecord


class Captured(NamedTuple):
    """The tail at one moment: all applied records of entries behind `floor`."""

    floor: int
    records: list[EventRecord]


class Tail:
    """Records behind the newest durable snapshot. Any thread may call any method."""

    def __init__(self) -> None:
        self._floor = 0
        self._records: list[EventRecord] = []
        self._lock = Lock()

    def add(self, records: Sequence[EventRecord]) -> None:
        """Add the records of an applied entry."""
        with self._lock:
            self._records.extend(records)

    def through(self, index: int) -> list[EventRecord]:
        """Return what a snapshot at `index` has to make durable, after failed attempts, too."""
        with self._lock:
            return self._records[: self._find((index + 1, 0))]

    def durable(self, index: int) -> None:
        """Drop the records up to and including entry `index`: the store holds them now."""
        with self._lock:
            del self._records[: self._find((index + 1, 0))]
            self._floor = max(self._floor, index)

    def begin_at(self, index: int) -> None:
        """Start over: another state was loaded, and the store holds all up to entry `index`."""
        with self._lock:
            self._records, self._floor = [], index

    def since(self, start: tuple[int, int], limit: int | None = None) -> Captured:
        """Return the records from `start` on, at most `limit` of them."""
        with self._lock:
            first = self._find(start)
            end = None if limit is None else first + limit
            return Captured(self._floor, self._records[first:end])

    def _find(self, start: tuple[int, int]) -> int:
        return bisect_left(self._records, start, key=lambda record: (record.index, record.ordinal))
