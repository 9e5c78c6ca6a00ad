"""S4: one bounded FIFO from the engine's thread to the consumer's, and nothing beside it.

Entries wait outside while it is full; all other items always fit, which adjacent role changes
and hints repay by merging. Whoever delivers asks for room first and pushes later; that a push finds
room again, and that a take makes room, is told, so that no entry waits for a timer.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from holdfast.raft.api import Applied, Item, LeaderSeen, RoleChanged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Room(NamedTuple):
    """How much may still be pushed."""

    entries: int
    """In entries."""
    bytes: int
    """In bytes of entries; the last entry may exceed it."""

    def __bool__(self) -> bool:
        """Return whether another entry may be pushed."""
        return self.entries > 0 and self.bytes > 0

    def less(self, size: int) -> Room:
        """Return the room that is left after an entry of `size` bytes."""
        return Room(self.entries - 1, self.bytes - size)


class ApplyQueue:
    """A FIFO: the tick thread pushes, one consumer thread takes."""

    def __init__(
        self, items_max: int, bytes_max: int, on_room: Callable[[], None] = lambda: None
    ) -> None:
        """Set the bounds, in entries and bytes of payload.

        `on_room`: called when it is full no more.
        """
        self._items: deque[Item] = deque()
        self._lock = threading.Lock()
        self._room = Room(items_max, bytes_max)
        self._on_room = on_room
        self.on_items: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        """Count the items that wait."""
        return len(self._items)

    @property
    def room(self) -> Room:
        """What may be pushed now; it grows when the consumer takes meanwhile."""
        return self._room

    def push(self, items: Sequence[Item]) -> None:
        """Append items; notify the consumer if the queue was empty."""
        with self._lock:
            was_empty = not self._items
            for item in items:
                self._append(item)
        if was_empty and items:
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
            self._room = self._room.less(len(item.payload))

    def take(self, limit: int) -> list[Item]:
        """Remove and return the oldest items, at most `limit`."""
        with self._lock:
            was_full = not self._room
            items = [self._items.popleft() for _ in range(min(limit, len(self._items)))]
            entries = [len(item.payload) for item in items if isinstance(item, Applied)]
            self._room = Room(self._room.entries + len(entries), self._room.bytes + sum(entries))
        if was_full and items:
            self._on_room()
        return items
