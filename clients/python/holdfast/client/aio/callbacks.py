"""Tells the user what the session decided, one thing after another, in the order it happened.

A thing is told by a callback, by `owned`, and by the handlers of `run`: these have ended before
`on_revoked` or `on_lost` is called. Performs no call.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING

from holdfast.client._session.session_io import Assigned, Lost, Revoke, Stopped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any, TypeAlias

    from holdfast.client._session.session_io import Output
    from holdfast.client.aio.handlers import Handlers
    from holdfast.client.aio.user_partitions import Holding

    Listener: TypeAlias = Callable[[Sequence[Any]], Awaitable[None] | None]

_NAMES = {Assigned: "on_assigned", Revoke: "on_revoked", Lost: "on_lost"}


class Telling:
    """A queue of news, and the one task that tells them.

    `let_go` hears that the user has heard a Revoke, and all before it; `crash`, what the user's
    code has raised.
    """

    def __init__(
        self,
        holding: Holding[Any],
        handlers: Handlers,
        listeners: Mapping[type, Listener | None],
        *,
        let_go: Callable[[], None],
        crash: Callable[[Exception], None],
    ) -> None:
        self._let_go = let_go
        self._crash = crash
        self._holding = holding
        self._handlers = handlers
        self._listeners = listeners
        self._queue: asyncio.Queue[Output] = asyncio.Queue()
        self.news = asyncio.Event()

    def put(self, output: Output) -> None:
        """To be told in its turn; whoever works on what goes hears it at once."""
        if isinstance(output, Revoke | Lost):
            self._holding.warn(output)
        if isinstance(output, Lost):
            self._handlers.lost(output.partitions)
        self._queue.put_nowait(output)

    async def run(self) -> None:
        """Tell everything, until the session has stopped."""
        while not isinstance(output := await self._queue.get(), Stopped):
            if isinstance(output, Assigned | Revoke | Lost):
                await self._tell(output)

    async def _tell(self, output: Assigned | Revoke | Lost) -> None:
        concerned = self._holding.concerned(output)
        self._holding.begin(output, concerned)
        if not isinstance(output, Assigned):
            await self._handlers.ended(partition.name for partition in concerned)
        if concerned or isinstance(output, Assigned):
            await self._call(type(output), concerned)
        self._holding.finish(output, concerned)
        if isinstance(output, Revoke):
            self._let_go()
        self.news.set()

    async def _call(self, kind: type, concerned: Sequence[Any]) -> None:
        listener = self._listeners.get(kind)
        try:
            answer = listener(concerned) if listener is not None else None
            if inspect.isawaitable(answer):
                await answer
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # the loop ends, and with it the member
            wrapped = RuntimeError(f"{_NAMES[kind]} was cancelled from inside: {error!r}")
            wrapped.__cause__ = error
            self._crash(wrapped)
        except Exception as error:  # noqa: BLE001 - the user's code; told and raised by the member
            self._crash(error)
