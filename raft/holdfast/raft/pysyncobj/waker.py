"""Where the tick waits: woken by proposals, messages and the consumer, from any thread.

Stands in for the engine's poller. What the thread waits on is a `Park`: a transport that selects
its own sockets brings one. Without, it is a queue, since no node of the simulator has a descriptor
to wait for.
"""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.raft.api import Park


class QueuePark:
    """Waits on a queue. `SimpleQueue` and not `Event`, whose waits are written in Python."""

    def __init__(self) -> None:
        """Begin with nobody waiting."""
        self._calls: SimpleQueue[None] = SimpleQueue()

    def park(self, seconds: float) -> None:
        """Wait at most so long for a call; calls made before it end it at once (api.Park)."""
        with suppress(Empty):
            if seconds > 0:
                self._calls.get(timeout=seconds)
            else:
                self._calls.get_nowait()

    def unpark(self) -> None:
        """End the present wait, or the next one. Any thread (api.Park)."""
        self._calls.put(None)


class Waker:
    """`wake` from any thread; `poll` by the tick thread only."""

    def __init__(self, work: Callable[[], None], park: Park) -> None:
        """`work` takes in what has arrived; each poll calls it once. `park`: where it waits."""
        self._park = park
        self._called = False
        self._work = work
        self._thread = 0
        """The thread that polled last: it needs nobody to end a wait that it does not begin."""

    def wake(self) -> None:
        """End the present wait, or the next one."""
        if not self._called:
            self._called = True
            if self._thread != get_ident():
                self._park.unpark()

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
        self._thread = get_ident()
        self._park.park(0.0 if self._called else timeout)
        self._called = False
        self._work()
