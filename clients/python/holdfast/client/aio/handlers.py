"""The handlers of `Member.run`: one task for each owned partition.

The handler of a partition that is revoked is told (`Partition.revoking`) and awaited. For a lost
partition there is no time: its handler is cancelled as well, where that is possible. Knows neither
the session nor the group.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING, Any, Final

from holdfast.client.errors import HoldfastError, TopicNotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from holdfast.client._session.session_io import TopicPartition
    from holdfast.client.aio.partition import HeldPartition

_LOGGER = logging.getLogger("holdfast.client")
SLOW_S: Final = 10.0
"""Time after which handlers that delay a revocation are logged."""


def would_wait_for_itself(call: str) -> str:
    """Write the error for a callback or a handler that would wait for its own end."""
    return (
        f"{call} waits until no callback and no handler of the member runs, and this is one: it "
        "would wait for itself. Call begin_restart() here and return, or have other code do it."
    )


class Handlers:
    """Tasks by partition. `failed` gets a handler's error; `cancels`: tasks can be cancelled."""

    def __init__(self, failed: Callable[[Exception], None], *, cancels: bool) -> None:
        self._failed = failed
        self._cancels = cancels
        self._handler: Callable[[Any], Awaitable[None]] | None = None
        self._running: dict[TopicPartition, tuple[HeldPartition, asyncio.Task[None]]] = {}

    def open(self, handler: Callable[[Any], Awaitable[None]]) -> None:
        """Begin `run`. Raises RuntimeError while another one runs, TypeError for no function."""
        if not callable(handler):
            raise TypeError(f"run takes a function that is given a partition, not {handler!r}.")
        if self._handler is not None:
            raise RuntimeError("run is under way; a member has one handler at a time.")
        self._handler = handler

    def start(self, partition: HeldPartition) -> None:
        """Start the handler of a partition."""
        if self._handler is None:
            raise RuntimeError("run has ended")
        work = self._handle(partition, self._handler)
        task = asyncio.create_task(work, name=f"holdfast {partition.topic}/{partition.number}")
        self._running[partition.name] = partition, task
        task.add_done_callback(lambda _: self._running.pop(partition.name, None))

    def check_outside(self, callback_task: asyncio.Task[None] | None, call: str) -> None:
        """Raise RuntimeError in a handler, and in a callback, which runs in `callback_task`.

        The member stops when none of them runs: so none of them can wait for that.
        """
        inside = (callback_task, *(running for _, running in self._running.values()))
        if asyncio.current_task() in inside:
            raise RuntimeError(would_wait_for_itself(call))

    def lost(self, names: Iterable[TopicPartition]) -> None:
        """Cancel the handlers of lost partitions, if they can be cancelled."""
        for name in names:
            if self._cancels and name in self._running:
                self._running[name][1].cancel()

    async def ended(self, names: Iterable[TopicPartition]) -> None:
        """Wait until the handlers of these have ended; log it when that takes long."""
        tasks = {self._running[name][1]: name for name in names if name in self._running}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=SLOW_S)
        if late:
            slow = sorted(tasks[task] for task in late)
            _LOGGER.warning(
                "The handlers of %s have not ended %.0f s after they were told to "
                "(partition.revoking). A rebalance waits for them; when it has waited for 0.8 of "
                "the rebalance timeout, the partitions are lost.",
                ", ".join(f"{topic}/{number}" for topic, number in slow),
                SLOW_S,
            )
            await asyncio.wait(late)

    async def close(self) -> None:
        """End `run`: tell the running handlers to stop, and wait for them."""
        for partition, _ in self._running.values():
            partition.revocation.begin()
        self.lost(tuple(self._running))
        try:
            await self.ended(tuple(self._running))
        finally:
            self._handler = None

    async def _handle(
        self, partition: HeldPartition, handler: Callable[[Any], Awaitable[None]]
    ) -> None:
        try:
            work = handler(partition)
            if not inspect.isawaitable(work):
                raise TypeError(  # noqa: TRY301 - it ends the member like what a handler raises
                    f"run takes an async function, but {handler!r} gave {work!r}: it would "
                    "block the heartbeats. holdfast.client.sync runs plain functions in threads."
                )
            await work
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            wrapped = RuntimeError(
                f"The handler of {partition.topic}/{partition.number} was cancelled from inside: "
                f"{error!r}"
            )
            wrapped.__cause__ = error
            self._failed(wrapped)
        except Exception as error:  # noqa: BLE001 - the user's code; raised by `run`
            if _is_refusal(error) and not partition.owned:
                # Refused because the partition was lost, which ends this handler anyway.
                _LOGGER.info("The handler of %s/%d ended: %s", *partition.name, error)
            elif isinstance(error, TopicNotFound) and _names(error, partition.name):
                # The topic was deleted by force. The group leader looks at its topics again soon.
                _LOGGER.warning("The handler of %s/%d has ended: %s", *partition.name, error)
            else:
                self._failed(error)


def _names(error: TopicNotFound, name: TopicPartition) -> bool:
    """Return whether a refusal is about this partition, and not about a mistyped one."""
    topic, number = name
    return f"{topic}/{number}" in str(error).replace(",", " ").replace(":", " ").split()


def _is_refusal(error: Exception) -> bool:
    """Return whether an error is the client's, also inside a TaskGroup's group."""
    if isinstance(error, ExceptionGroup):
        return all(_is_refusal(each) for each in error.exceptions)
    return isinstance(error, HoldfastError)
