"""Where the tick waits: woken by proposals, messages and the consumer, from any thread.

Stands in for the engine's poller. An event takes the place of the pipe that a poller would need:
nothing here polls a descriptor, and no node of the simulator needs one.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Pulse:
    """`wake` from any thread; `poll` by the tick thread only."""

    def __init__(self, work: Callable[[], None]) -> None:
        """`work` takes in what has arrived; it runs once per poll."""
        self._event = threading.Event()
        self._work = work

    def wake(self) -> None:
        """End the present wait, or the next one."""
        if not self._event.is_set():
            self._event.set()

    def poll(self, timeout: float) -> None:
        """Wait at most `timeout` seconds, then work.

        The flag is cleared before the work: a wake-up that comes during the work ends the next
        wait, so none is lost.
        """
        if timeout > 0:
            self._event.wait(timeout)
        self._event.clear()
        self._work()
