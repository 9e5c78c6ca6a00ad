"""The one thread that runs an event loop for all blocking members and admins of a process.

So heartbeats go on while the user's threads block. Knows asyncio, and nothing of the protocol.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

ResultT = TypeVar("ResultT")
_END_SECONDS_MAX = 5.0


class LoopThread:
    """An event loop in a daemon thread, made when it is first needed and kept for the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="holdfast-client", daemon=True)

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run in the loop's thread and wait; what it raises is raised here."""
        future = asyncio.run_coroutine_threadsafe(work, self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()  # a KeyboardInterrupt here must not leave the work running there
            raise

    def make(self, make: Callable[[], ResultT]) -> ResultT:
        """Call in the loop's thread: what belongs to a loop must be made there."""

        async def made() -> ResultT:
            return make()

        return self.run(made())

    def soon(self, act: Callable[[], None]) -> None:
        """Call in the loop's thread and wait for nothing, not even a lock: for signal handlers."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(act)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread.start()
                atexit.register(self._end)
            return self._loop

    def _serve(self) -> None:
        self._started().run_forever()

    def _end(self) -> None:
        """Stop with the interpreter: it would wait two seconds for gRPC under a running loop."""
        loop = self._started()
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(_END_SECONDS_MAX)


THREAD = LoopThread()
