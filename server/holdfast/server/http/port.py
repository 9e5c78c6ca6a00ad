"""The socket of the HTTP port: how many connections there may be, how fast, and for how long.

TLS handshakes run in the event loop, and anybody may begin one. So connections are taken at a pace,
and each ends after a few seconds, whatever it is at: the loop has members' heartbeats to answer
(S9). When there are too many, the oldest ends, so that silent ones keep no probe out. Strangers who
come faster than the pace do: only a network's rules prevent that (ADR 28). Knows no HTTP, no node.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from typing import TYPE_CHECKING, Any, Final

from holdfast.server.config.node_config import CannotStart

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from holdfast.server.config.address import Address

    Protocols = Callable[[], asyncio.Protocol]

logger = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 64
BACKLOG: Final = 64
"""Connections that the system keeps until they are taken; further ones are not answered."""
PACE_S: Final = 0.02
"""Pause after each connection is taken. A handshake takes the loop 1 to 2 ms with a key on an
elliptic curve, so strangers get at most a tenth of it."""
LIFE_S: Final = 10.0
"""Seconds from the first byte of the handshake until the last of the answer is taken."""
_HANDSHAKE_FAILED: Final = "SSL handshake failed"
"""What the loop calls it."""
AFTER_ERROR_S: Final = 1.0
"""Pause after the system refused to give a connection: mostly, there are no files left."""


def listen(address: Address) -> socket.socket:
    """Bind the port; raises CannotStart. Connections wait until `HttpPort.serve`."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listening = socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        raise CannotStart(
            f"cannot listen for HTTP on {address}: {error.strerror or error}. Stop what uses it, "
            "or change http.address"
        ) from error
    listening.setblocking(False)  # noqa: FBT003 - its only form
    return listening


class HttpPort:
    """Takes connections from a bound socket; all of it belongs to one event loop."""

    def __init__(
        self, listening: socket.socket, context: Callable[[], ssl.SSLContext | None]
    ) -> None:
        """`context`: asked for each connection, so that it may change; None: no TLS."""
        self._listening, self._context = listening, context
        self._accepting: asyncio.Task[None] | None = None
        self._connections: dict[asyncio.Task[None], None] = {}

    def serve(self, protocols: Protocols) -> None:
        """Take connections from now on; `protocols` makes what speaks on one."""
        asyncio.get_running_loop().set_exception_handler(_told_by_the_loop)
        self._accepting = asyncio.create_task(self._accept(protocols))

    async def close(self) -> None:
        """End all connections and release the port."""
        tasks = [*self._connections, *([self._accepting] if self._accepting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listening.close()

    async def _accept(self, protocols: Protocols) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                taken, _ = await loop.sock_accept(self._listening)
            except OSError as error:
                logger.warning("the HTTP port takes no connection: %s", error)
                await asyncio.sleep(AFTER_ERROR_S)
                continue
            if len(self._connections) >= CONNECTIONS_MAX:
                next(iter(self._connections)).cancel()
            task = asyncio.create_task(self._live(taken, protocols))
            self._connections[task] = None
            task.add_done_callback(self._forget)
            await asyncio.sleep(PACE_S)

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._connections[task]
        if not task.cancelled() and (error := task.exception()):
            logger.error("a connection of the HTTP port failed inside", exc_info=error)

    async def _live(self, taken: socket.socket, protocols: Protocols) -> None:
        """Serve one connection until it ends; what a stranger does wrong is not worth a line."""
        # ssl.SSLError is an OSError; ValueError: names in a certificate that are no text
        with contextlib.suppress(OSError, TimeoutError, ValueError):
            async with asyncio.timeout(LIFE_S):
                await self._serve(taken, protocols)

    async def _serve(self, taken: socket.socket, protocols: Protocols) -> None:
        loop = asyncio.get_running_loop()
        speaking = _Watched(protocols(), loop.create_future())
        transport = None
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: speaking, taken, ssl=self._context()
            )
            await speaking.lost
        finally:
            if transport is None:
                taken.close()
            else:
                transport.abort()  # also what a slow reader has not taken yet


def _told_by_the_loop(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Write down what the loop tells, but for handshakes of strangers, which only this port makes.

    The loop tells of one that fails for another reason than the connection: names in a certificate
    that are no text.
    """
    if context.get("message") != _HANDSHAKE_FAILED:
        loop.default_exception_handler(context)


class _Watched(asyncio.Protocol):
    """Passes everything on to another protocol; `lost` is done when the connection has ended."""

    def __init__(self, inner: asyncio.Protocol, lost: asyncio.Future[None]) -> None:
        self._inner, self.lost = inner, lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass it on."""
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass it on."""
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass it on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the protocol, and the task that waits for the end."""
        self._inner.connection_lost(exc)
        if not self.lost.done():
            self.lost.set_result(None)
