"""Where one thread waits for its sockets, and any other thread can end the wait.

epoll, and an eventfd as the bell. The bell is edge-triggered: each ring is an event by itself, so
nobody has to read it. Knows descriptors, and not what they carry.
"""

from __future__ import annotations

import os
import select
import threading
from typing import Final

READABLE: Final = select.EPOLLIN
WRITABLE: Final = select.EPOLLOUT


class Poller:
    """`ring` and `close` by any thread, the rest by the thread that waits."""

    def __init__(self) -> None:
        """Open the descriptors."""
        self._epoll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._bell, select.EPOLLIN | select.EPOLLET)
        self._closing = threading.Lock()
        self._is_closed = False

    def watch(self, descriptor: int, events: int = READABLE) -> None:
        """Have `wait` tell of these events from now on."""
        self._epoll.register(descriptor, events)

    def change(self, descriptor: int, events: int) -> None:
        """Have `wait` tell of other events of a descriptor that is watched."""
        self._epoll.modify(descriptor, events)

    def forget(self, descriptor: int) -> None:
        """Stop watching a descriptor that is still open."""
        self._epoll.unregister(descriptor)

    def wait(self, seconds: float) -> list[tuple[int, int]]:
        """Wait until something is ready, or the bell rings; return descriptors with events.

        What is not dealt with is returned again by the next wait.
        """
        found = self._epoll.poll(seconds)
        return [each for each in found if each[0] != self._bell]

    def ring(self) -> None:
        """End the present wait, or the next one.

        Under a lock, since a number that is closed may be another file's a moment later.
        """
        with self._closing:
            if not self._is_closed:
                os.eventfd_write(self._bell, 1)

    def close(self) -> None:
        """Close the descriptors; nobody may wait any more."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            self._epoll.close()
            os.close(self._bell)
