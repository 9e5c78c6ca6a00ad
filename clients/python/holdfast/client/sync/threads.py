"""Threads of the blocking shell: the one event loop of a process, and those for the user's code.

The loop serves all blocking members and admins, so heartbeats go on while the user's threads block.
All are daemons: code of the user that hangs must not keep a process from its end. Knows asyncio,
and nothing of the protocol.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from concurrent.futures import CancelledError, Future
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import TypeAlias

    _Calls: TypeAlias = SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]

ResultT = TypeVar("ResultT")
_END_SECONDS_MAX = 5.0
LOOK_SECONDS: Final = 0.5
"""The most by which a blocking call notices a signal late: Python checks for signals before it
begins to wait, and a signal after the check wakes no thread."""
_RUNNING = threading.local()
_ALTERED = (StopIteration, CancelledError)
"""Exceptions that asyncio does not pass on as they are: no future takes the first, and the second
would cancel the task that awaits it."""


class LoopThread:
    """An event loop in a daemon thread, made when it is first needed and kept for the process."""

    def __init__(self) -> None:
        self._begin()
        atexit.register(self._end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Reset to a state without a thread, also in the child of a fork, which has none."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="holdfast-client", daemon=True)

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run in the loop's thread and wait; what it raises is raised here."""
        future = asyncio.run_coroutine_threadsafe(work, self._started())
        try:
            return _result(future)
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
            return self._loop

    def _serve(self) -> None:
        self._started().run_forever()

    def _end(self) -> None:
        """Stop the loop at the interpreter's end, which else waits two seconds for gRPC."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_SECONDS_MAX)


def _result(future: Future[ResultT]) -> ResultT:
    """Wait in turns: a signal just before an endless wait would not end it."""
    while True:
        try:
            return future.result(LOOK_SECONDS)
        except TimeoutError:
            if future.done():  # the work's own, or it ended in this moment
                return future.result()


THREAD = LoopThread()


class UserThread:
    """A daemon thread for calls of the user's code, one after another; begins with the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._calls: _Calls | None = None

    async def call(self, act: Callable[[], ResultT]) -> ResultT:
        """Call a function in the thread; what it raises is raised here."""
        done: Future[ResultT] = Future()
        with self._lock:
            if self._calls is None:
                self._calls = SimpleQueue()
                serve = partial(self._serve, self._calls)
                threading.Thread(target=serve, name=self._name, daemon=True).start()
            self._calls.put((done, act))
        return await asyncio.wrap_future(done)

    def close(self) -> None:
        """End the thread after the calls it has; a later call begins another thread."""
        with self._lock:
            if self._calls is not None:
                self._calls.put(None)
            self._calls = None

    def is_current(self) -> bool:
        """Whether the caller runs in this thread."""
        return getattr(_RUNNING, "thread", None) is self

    def _serve(self, calls: _Calls) -> None:
        _RUNNING.thread = self
        while (item := calls.get()) is not None:
            done, act = item
            if done.set_running_or_notify_cancel():
                self._do(done, act)

    def _do(self, done: Future[Any], act: Callable[[], Any]) -> None:
        try:
            done.set_result(act())
        except _ALTERED as error:
            done.set_exception(self._wrapped(error))
        except Exception as error:  # noqa: BLE001 - the user's code; raised where it is awaited
            done.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - as above; as it is, it ended the loop
            done.set_exception(self._wrapped(error))

    def _wrapped(self, error: BaseException) -> RuntimeError:
        wrapped = RuntimeError(f"{error!r} was raised in the thread {self._name!r}")
        wrapped.__cause__ = error
        return wrapped
