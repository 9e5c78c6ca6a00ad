"""A stream of calls, many in flight, answered in the order in which they came.

The calls of one stream in flight are bounded in number and bytes; the rest waits in gRPC's flow
control.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeVar

from holdfast.runtime.errors import Crashed
from holdfast.server.rpc.callers import Context, end
from holdfast.server.rpc.errors import ENDED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

logger = logging.getLogger(__name__)

IN_FLIGHT_MAX: Final = 1_024
BYTES_MAX: Final = 4 << 20
"""Bytes of requests in flight on one stream; a longer request goes alone."""

Request = TypeVar("Request")
Response = TypeVar("Response")


async def serve(
    requests: AsyncIterator[Request],
    context: Context,
    answer: Callable[[Request], Awaitable[Response]],
    size: Callable[[Request], int] = lambda _: 0,
) -> None:
    """Serve a stream until it ends; the first call that fails ends it with its status.

    `size`: returns the bytes of a request. The calls behind the one that failed get no answers, so
    the outcome of all is unknown (S5).
    """
    calls: asyncio.Queue[asyncio.Future[Response] | None] = asyncio.Queue(IN_FLIGHT_MAX)
    window = _Window()

    async def one(request: Request, taken: int) -> Response:
        try:
            return await answer(request)
        finally:
            window.leave(taken)

    async def begin(request: Request) -> asyncio.Future[Response]:
        taken = size(request)
        await window.enter(taken)
        return asyncio.ensure_future(one(request, taken))

    reader = asyncio.ensure_future(_read(requests, begin, calls))
    try:
        while (call := await calls.get()) is not None:
            await context.write(await call)
        await reader
    except ENDED as error:
        reader.cancel()  # a call begun after this would not be counted
        await end(context, error, "unknown" if _cancel_all(calls) else "not-applied")
    except asyncio.CancelledError:
        raise
    except Exception:
        logger.exception("a stream failed inside")
        await end(context, Crashed("a stream"))
    finally:
        reader.cancel()
        _cancel_all(calls)


class _Window:
    """Bytes in flight."""

    def __init__(self) -> None:
        self._used = 0
        self._freed = asyncio.Event()

    async def enter(self, size: int) -> None:
        """Wait until there is room, and take it."""
        while self._used and self._used + size > BYTES_MAX:
            self._freed.clear()
            await self._freed.wait()
        self._used += size

    def leave(self, size: int) -> None:
        """Give the room back."""
        self._used -= size
        self._freed.set()


async def _read(
    requests: AsyncIterator[Request],
    begin: Callable[[Request], Awaitable[asyncio.Future[Response]]],
    calls: asyncio.Queue[asyncio.Future[Response] | None],
) -> None:
    try:
        async for request in requests:
            call = await begin(request)
            try:
                await calls.put(call)
            except asyncio.CancelledError:
                call.cancel()
                raise
    finally:
        await calls.put(None)


def _cancel_all(calls: asyncio.Queue[asyncio.Future[Response] | None]) -> int:
    """Cancel all waiting calls; return how many there were."""
    waiting = [call for _ in range(calls.qsize()) if (call := calls.get_nowait()) is not None]
    for call in waiting:
        if not call.cancel() and not call.cancelled():
            call.exception()  # it has ended already: mark its error as read
    return len(waiting)
