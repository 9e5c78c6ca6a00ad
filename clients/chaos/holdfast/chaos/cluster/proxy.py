"""Links through which nodes and clients reach a node: TCP proxies in user space, with faults.

There is a link for each direction between two nodes, since a node sends its messages on connections
that it dialled itself: a link that is cut is a one-way partition. Clients have a link to each node.
TLS goes through untouched. Knows no Holdfast, only bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from random import Random
from typing import Final, Self

CLIENTS: Final = "clients"
_HOST: Final = "127.0.0.1"
_CHUNK: Final = 64 * 1024
_QUEUED_MAX: Final = 64
"""Chunks under way on one connection in one direction; a full queue stops the sender."""
_RESET: Final = struct.pack("ii", 1, 0)
"""The SO_LINGER with which a close sends a reset."""


class Link:
    """A listening port that forwards to one address, with faults on the way."""

    def __init__(self, source: str, to: str, random: Random) -> None:
        self.source, self.to = source, to
        self._random = random
        self._address = (_HOST, 0)
        self._flows = asyncio.Event()
        self._flows.set()
        self._delay_s = self._jitter_s = 0.0
        self._left: int | None = None
        self._refuses = False
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    @property
    def name(self) -> str:
        """The link's name in reports."""
        return f"{self.source}>{self.to}"

    async def listen(self) -> int:
        """Begin to accept connections; return the port."""
        self._server = await asyncio.start_server(self._accept, _HOST, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def lead_to(self, address: str) -> None:
        """Set the address to which connections are forwarded, as host:port."""
        host, _, port = address.rpartition(":")
        self._address = (host, int(port))

    # --- weather ---

    def stall(self) -> None:
        """Stop all bytes silently: what was sent waits, as in a lost network."""
        self._flows.clear()

    def slow(self, delay_s: float, jitter_s: float) -> None:
        """Delay each chunk by `delay_s` and up to `jitter_s` more; the order stays, as in TCP."""
        self._delay_s, self._jitter_s = delay_s, jitter_s

    def refuse(self) -> None:
        """Reset all connections, present and new ones."""
        self._refuses = True
        self.reset()

    def cut_after(self, size: int) -> None:
        """Reset the connections after `size` more bytes, even in the middle of a message."""
        self._left = size

    def reset(self) -> None:
        """Reset the present connections."""
        for connection in list(self._connections):
            connection.reset()

    def clear(self) -> None:
        """End all faults: bytes pass again, those that waited first."""
        self._refuses, self._left = False, None
        self._delay_s = self._jitter_s = 0.0
        self._flows.set()

    # --- what a connection asks ---

    async def passed(self, size: int) -> bool:
        """Wait until bytes may pass; return False if the connection must be reset before."""
        await self._flows.wait()
        if self._left is None:
            return True
        self._left -= size
        if self._left >= 0:
            return True
        self._left = None
        return False

    def travel_s(self) -> float:
        """Return the delay of a chunk that comes now, in seconds."""
        return self._delay_s + self._random.uniform(0, self._jitter_s)

    async def close(self) -> None:
        """Close the port and all connections."""
        self._flows.set()
        if self._server is not None:
            self._server.close()
        self.reset()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            _reset(writer)
            return
        try:
            onward = await asyncio.open_connection(*self._address)
        except OSError:
            _reset(writer)  # nobody listens there: the caller gets a reset, as without a proxy
            return
        connection = _Connection(self, (reader, writer), onward)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)


class _Connection:
    """Two sockets, and the chunks under way between them."""

    def __init__(
        self,
        link: Link,
        near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._link = link
        self._writers = (near[1], far[1])
        self._ways = ((near[0], far[1]), (far[0], near[1]))

    async def run(self) -> None:
        """Forward in both directions until one side ends."""
        tasks = [asyncio.create_task(self._carry(*way)) for way in self._ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for writer in self._writers:
                writer.close()

    def reset(self) -> None:
        """Reset both sockets at once."""
        for writer in self._writers:
            _reset(writer)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_QUEUED_MAX)
        reading = asyncio.create_task(self._read(reader, queue))
        loop = asyncio.get_running_loop()
        try:
            while True:
                due, piece = await queue.get()
                if not piece:
                    return
                if (wait := due - loop.time()) > 0:
                    await asyncio.sleep(wait)
                if not await self._link.passed(len(piece)):
                    self.reset()
                    return
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            return
        finally:
            reading.cancel()

    async def _read(
        self, reader: asyncio.StreamReader, queue: asyncio.Queue[tuple[float, bytes]]
    ) -> None:
        loop, last = asyncio.get_running_loop(), 0.0
        piece = b"begin"
        while piece:
            try:
                piece = await reader.read(_CHUNK)
            except ConnectionError:
                piece = b""
            last = max(last, loop.time() + self._link.travel_s())
            await queue.put((last, piece))


def _reset(writer: asyncio.StreamWriter) -> None:
    sock: socket.socket | None = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


class Network:
    """All links of a cluster whose nodes are configured to reach each other through them."""

    def __init__(self, names: tuple[str, ...], seed: int) -> None:
        random = Random(f"{seed} network")  # noqa: S311 - a seed gives the same delays
        pairs = [(a, b) for a in (*names, CLIENTS) for b in names if a != b]
        self._links = {pair: Link(*pair, random) for pair in pairs}
        self.ports: dict[tuple[str, str], int] = {}
        self.names = names

    async def __aenter__(self) -> Self:
        for pair, link in self._links.items():
            self.ports[pair] = await link.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        for link in self._links.values():
            await link.close()

    def link(self, source: str, to: str) -> Link:
        """Return the link from a node, or from the clients, to a node."""
        return self._links[source, to]

    def address(self, source: str, to: str) -> str:
        """Return the address at which `source` reaches `to`."""
        return f"{_HOST}:{self.ports[source, to]}"

    def between(self, one: str, other: str) -> list[Link]:
        """Return the links of both directions between two nodes."""
        return [self._links[one, other], self._links[other, one]]

    def of_peers(self) -> list[Link]:
        """Return all links between nodes."""
        return [link for link in self._links.values() if link.source != CLIENTS]

    def clear(self) -> None:
        """End all faults of all links."""
        for link in self._links.values():
            link.clear()
