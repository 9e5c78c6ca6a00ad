"""The calls and streams that are open, and which certificates their callers have shown.

A certificate is looked at in the handshake alone, and a call may stand for as long as its
connection: a join that waits for others, a stream. Those of a certificate that is revoked are ended
from here. Knows no service and judges no certificate.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from holdfast.server.rpc.callers import end

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from holdfast.server.rpc.callers import Context
    from holdfast.server.rpc.errors import CallFailed

Result = TypeVar("Result")


class _Open:
    """One call: who makes it, and the task that serves it."""

    __slots__ = ("context", "task", "why")

    def __init__(self, context: Context) -> None:
        self.context, self.task = context, asyncio.current_task()
        self.why: CallFailed | None = None
        """Why it was ended before its time; None: it was not."""


class OpenStreams:
    """All of a node's. The loop's thread only."""

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}

    async def served(self, context: Context, call: Coroutine[object, object, Result]) -> Result:
        """Count a call while it is served; one that `end_where` has ended ends with its error."""
        mine = self._open[id(context)] = _Open(context)
        try:
            return await call
        except asyncio.CancelledError:
            if mine.why is None or mine.task is None:
                raise
            mine.task.uncancel()
            await end(context, mine.why)
        finally:
            del self._open[id(context)]

    async def streamed(
        self, context: Context, serve: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        """Serve a stream as `served` does, once its initial metadata is sent.

        grpc.aio sends it with the first message, and notes that afterwards. A call that was ended
        in between would send it again with its status, which then never leaves: the caller, and
        what is held for it, would wait for as long as the connection lives.
        """

        async def begun() -> None:
            sending = asyncio.ensure_future(context.send_initial_metadata(()))
            try:
                await asyncio.shield(sending)
            except asyncio.CancelledError:
                await asyncio.gather(sending, return_exceptions=True)
                raise
            await serve()

        await self.served(context, begun())

    def end_where(self, why: Callable[[Context], CallFailed | None]) -> int:
        """End the calls of which `why` returns an error; return how many there are."""
        ended = 0
        for each in tuple(self._open.values()):
            if each.why is None and (error := why(each.context)) is not None:
                each.why = error
                ended += 1
                if each.task is not None:
                    each.task.cancel()
        return ended

    def certificates(self) -> set[bytes]:
        """Return the certificates of those who have calls or streams open, in PEM."""
        shown = (each.context.auth_context() for each in self._open.values())
        return {pem for auth in shown for pem in auth.get("x509_pem_cert", ())}
