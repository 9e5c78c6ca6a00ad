"""gRPC's options: what a hostile caller can take of a node is bounded, and honest ones are served.

A server with our options and raw connections to it. Each bound is made small here, so that it is
reached; that it is large enough for honest callers has a test of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
from typing import TYPE_CHECKING, Any, BinaryIO

import grpc
import pytest

from harness.hostile import (
    ACK,
    END_HEADERS,
    FRAME_HEAD,
    HEADERS,
    PATH,
    PREFACE,
    RESET,
    SETTINGS,
    call_headers,
    frame,
)
from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.server.config.node_config import Tls
from holdfast.server.process.open_files import (
    CONNECTIONS_MAX,
)
from holdfast.server.rpc import grpc_options
from holdfast.server.rpc.grpc_options import server_options
from holdfast.server.security.certificates import issue, make_authority
from holdfast.server.security.client_port import (
    ClientPort,
)
from holdfast.server.security.credentials import read_credentials

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from holdfast.server.config.node_config import Tls


PATIENCE_S = 30.0
"""Longer than any bound here takes, shorter than what the library does by itself (120 s)."""
REFUSED_STREAM = (7).to_bytes(4, "big")
"""RFC 9113, 7."""


class Raw:
    """A connection on which frames are written and read by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def greet(self) -> bool:
        """Exchange settings; whether the other side did, and did not just close."""
        self.writer.write(PREFACE + frame(SETTINGS))
        with contextlib.suppress(ConnectionError, EOFError):
            while (await self.frame())[:2] != (SETTINGS, 0):
                pass
            self.writer.write(frame(SETTINGS, ACK))
            return True
        return False

    async def frame(self) -> tuple[int, int, int, bytes]:
        """The next frame: kind, flags, stream, body. Raises EOFError at the end."""
        async with asyncio.timeout(PATIENCE_S):
            head = await self.reader.readexactly(FRAME_HEAD)
            body = await self.reader.readexactly(int.from_bytes(head[:3], "big"))
        return head[3], head[4], int.from_bytes(head[5:], "big"), body

    async def ends(self) -> bool:
        """Wait until the other side closes."""
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ConnectionError):
                while await self.reader.read(1 << 16):
                    pass
        return True


async def echo(request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
    """Answer what was sent."""
    del context
    return request


@contextlib.asynccontextmanager
async def serving(connections: int = CONNECTIONS_MAX, tls: Tls | None = None) -> AsyncIterator[int]:
    """A server of one method, which is called only once its request is there; its port."""
    options = server_options(int(REGISTRY["log.entry_bytes_max"].default), connections)
    server = grpc.aio.server(options=options)
    service, _, method = PATH[1:].decode().rpartition("/")
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {method: handler}),)
    )
    if tls is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", ClientPort(read_credentials(tls)).credentials)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[Raw]:
    """A raw connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Raw(reader, writer)
    finally:
        writer.close()


def test_a_silent_connection_is_closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It needs no certificate; by itself the library keeps it for two minutes."""
    monkeypatch.setattr(grpc_options, "HANDSHAKE_TIMEOUT_MS", 100)
    tls = issue(make_authority("c"), tmp_path, "node-1", "holdfast://node/node-1", ["127.0.0.1"])

    async def story() -> None:
        async with serving(tls=tls) as port, connected(port) as silent:
            assert await silent.ends()

    asyncio.run(story())


def test_clients_cannot_take_the_last_files() -> None:
    """One connection over the bound is closed unheard; those below are served."""

    async def story() -> None:
        async with serving(connections=2) as port, connected(port) as one, connected(port) as two:
            assert await one.greet()
            assert await two.greet()
            async with connected(port) as third:
                assert not await third.greet()

    asyncio.run(story())


def test_a_place_is_free_again_when_its_connection_has_ended() -> None:
    """Else a node would serve so many clients and then nobody, until it is started again."""

    async def story() -> None:
        async with serving(connections=1) as port:
            for _ in range(3):
                async with asyncio.timeout(PATIENCE_S):
                    await let_in(port)

    asyncio.run(story())


async def let_in(port: int) -> None:
    """Connect again and again until the server speaks with us."""
    greeted = False
    while not greeted:
        async with connected(port) as raw:
            greeted = await raw.greet()


def test_calls_of_one_connection_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that are begun and never finished cost memory; the first over the bound is reset."""
    monkeypatch.setattr(grpc_options, "STREAMS_MAX", 10)

    async def story() -> int:
        async with serving() as port, connected(port) as raw:
            assert await raw.greet()
            for stream in range(1, 2 * 11, 2):
                raw.writer.write(frame(HEADERS, END_HEADERS, stream, call_headers()))
            while True:
                kind, _, stream, body = await raw.frame()
                if kind == RESET and body == REFUSED_STREAM:
                    return stream

    assert asyncio.run(story()) == 2 * 11 - 1


def test_calls_that_are_reset_count_until_python_has_let_go_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CVE-2023-44487: resetting makes room in HTTP/2's own count, so that alone bounds nothing."""
    monkeypatch.setattr(grpc_options, "STREAMS_MAX", 10)

    async def story() -> None:
        async with serving() as port:
            blow_of_resets(port, 1_000, refused=1_000 - 2 * 10 - 1)

    asyncio.run(story())


def blow_of_resets(port: int, count: int, refused: int) -> None:
    """Begin and reset so many calls at once, and wait until so many of them were refused.

    Blocks, and so holds the server's loop as well: meanwhile Python takes up nothing.
    """
    cancel = (8).to_bytes(4, "big")
    calls = b"".join(
        frame(HEADERS, END_HEADERS, stream, call_headers()) + frame(RESET, 0, stream, cancel)
        for stream in range(1, 2 * count, 2)
    )
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as raw,
        raw.makefile("rb") as got,
    ):
        raw.sendall(PREFACE + frame(SETTINGS))
        assert next(frames(got))[0] == SETTINGS
        raw.sendall(frame(SETTINGS, ACK) + calls)
        refusals = (body for kind, body in frames(got) if kind == RESET)
        assert set(itertools.islice(refusals, refused)) == {REFUSED_STREAM}


def frames(got: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Kind and body of what the other side sends. Raises TimeoutError when it falls silent."""
    while head := got.read(FRAME_HEAD):
        yield head[3], got.read(int.from_bytes(head[:3], "big"))


def test_a_burst_is_not_refused_by_the_library() -> None:
    """reference: both limits must be far above 10,000; the default of newer grpcio is 3,000."""
    options = dict(server_options(0))

    assert options["grpc.server.max_pending_requests"] > 10_000
    assert options["grpc.server.max_pending_requests_hard_limit"] > 10_000


def test_a_frozen_peer_is_found_in_seconds() -> None:
    """Keepalive alone does not find it: the ping's own timeout is 60 s by default."""
    options = dict(server_options(0))

    assert options["grpc.http2.ping_timeout_ms"] <= options["grpc.keepalive_time_ms"]


def test_a_message_may_be_as_large_as_an_entry() -> None:
    """S7: gRPC's message limits follow entry_bytes_max."""
    options = dict(server_options(8 << 20))

    assert options["grpc.max_receive_message_length"] > 8 << 20


def test_two_nodes_cannot_share_a_port() -> None:
    assert dict(server_options(0))["grpc.so_reuseport"] == 0


def test_s7_grpc_itself_allows_whatever_may_be_set() -> None:
    """Else a setting could be raised above what any call may bring."""
    options = dict(server_options(REGISTRY["log.entry_bytes_max"].most))

    assert options["grpc.max_receive_message_length"] > REGISTRY["log.entry_bytes_max"].most
