"""S4: one bounded FIFO from the engine's thread to the consumer's, and nothing beside it.

Entries wait outside while it is full; all other items always fit, which adjacent role changes
and hints repay by merging.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from holdfast.raft.api import Applied, Item, LeaderSeen, RoleChanged

if TYPE_CHECKING:
    from collections.abc import Callable


class ApplyQueue:
    """Pushed by the tick thread, taken by one consumer thread."""

    def __init__(self, items_max: int, bytes_max: int) -> None:
        """Bound what waits, in entries and in bytes of payload."""
        self._items: deque[Item] = deque()
        self._lock = threading.Lock()
        self._items_max, self._bytes_max = items_max, bytes_max
        self._entries = self._bytes = 0
        self.on_items: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        """Count what waits."""
        return len(self._items)

    @property
    def has_room(self) -> bool:
        """Whether another entry may be pushed."""
        return self._entries < self._items_max and self._bytes < self._bytes_max

    def push(self, item: Item) -> None:
        """Append an item; tell the consumer if it had nothing."""
        with self._lock:
            was_empty = not self._items
            self._append(item)
        if was_empty:
            self.on_items()

    def _append(self, item: Item) -> None:
        last = self._items[-1] if self._items else None
        if isinstance(item, RoleChanged) and isinstance(last, RoleChanged):
            unknown = last.unknown + item.unknown
            self._items[-1] = RoleChanged(item.role, item.term, item.leader, unknown)
        elif isinstance(item, LeaderSeen) and isinstance(last, LeaderSeen):
            self._items[-1] = item
        else:
            self._items.append(item)
        if isinstance(item, Applied):
            self._entries += 1
            self._bytes += len(item.payload)

    def take(self, limit: int) -> list[Item]:
        """Return the oldest items, at most `limit`, and make room for as many."""
        with self._lock:
            items = [self._items.popleft() for _ in range(min(limit, len(self._items)))]
            for item in items:
                if isinstance(item, Applied):
                    self._entries -= 1
                    self._bytes -= len(item.payload)
        return items
