"""Where the tick waits: woken by proposals, messages and the consumer, from any thread.

Stands in for the engine's poller. A queue takes the place of the pipe that a poller would need:
nothing here polls a descriptor, and no node of the simulator needs one. It is `SimpleQueue` and not
`Event`, whose waits are written in Python: each change of an idle cluster ends two on every node.
"""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Waker:
    """`wake` from any thread; `poll` by the tick thread only."""

    def __init__(self, work: Callable[[], None]) -> None:
        """`work` takes in what has arrived; each poll calls it once."""
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._called = False
        self._work = work

    def wake(self) -> None:
        """End the present wait, or the next one."""
        if not self._called:
            self._called = True
            self._calls.put(None)

    @property
    def is_woken(self) -> bool:
        """Whether the next wait will end at once.

        For a caller that ticks without a thread of its own.
        """
        return self._called

    def poll(self, timeout: float) -> None:
        """Wait at most `timeout` seconds, then work.

        The flag is cleared before the work: a wake-up that comes during the work ends the next
        wait, so none is lost. One that two threads made at once may end one wait too many.
        """
        with suppress(Empty):
            if timeout > 0:
                self._calls.get(timeout=timeout)
            else:
                self._calls.get_nowait()
        self._called = False
        self._work()
