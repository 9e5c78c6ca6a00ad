"""The links between nodes: what a stalled, slow, refusing or cut link does to the bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import NamedTuple

import pytest

from harness.poll import until_async
from holdfast.chaos.cluster.proxy import CLIENTS, Link, Network

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Echo(NamedTuple):
    """A link to a server that sends back what it gets, and a connection through it."""

    link: Link
    heard: list[bytes]
    connect: Callable[[], Awaitable[Streams]]


@asynccontextmanager
async def echo() -> AsyncIterator[Echo]:
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(1_000):
            heard.append(piece)
            writer.write(piece)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    link = Link("a", "b", Random(1))
    port = await link.listen()
    link.lead_to(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
    opened: list[asyncio.StreamWriter] = []

    async def connect() -> Streams:
        streams = await asyncio.open_connection("127.0.0.1", port)
        opened.append(streams[1])
        return streams

    try:
        yield Echo(link, heard, connect)
    finally:
        for writer in opened:
            writer.close()
        await link.close()
        server.close()


async def said(streams: Streams, text: bytes) -> bytes:
    """What comes back for what was sent."""
    reader, writer = streams
    writer.write(text)
    return await reader.readexactly(len(text))


def test_a_clear_link_carries_both_ways() -> None:
    async def scene() -> bytes:
        async with echo() as net:
            return await said(await net.connect(), b"hello")

    assert asyncio.run(scene()) == b"hello"


def test_what_waits_in_a_stalled_link_arrives_in_order_when_it_clears() -> None:
    """FAULT-4, FAULT-5: a partition says nothing; TCP repeats what was lost, so all arrives."""

    async def scene() -> tuple[list[bytes], bytes]:
        async with echo() as net:
            reader, writer = await net.connect()
            await said((reader, writer), b"1")
            net.link.stall()
            for piece in (b"2", b"3", b"4"):
                writer.write(piece)
                await writer.drain()
            async with echo() as other:  # long enough for bytes to get through, if they could
                streams = await other.connect()
                for _ in range(50):
                    await said(streams, b"x")
            during = list(net.heard)
            net.link.clear()
            return during, await reader.readexactly(3)

    during, after = asyncio.run(scene())
    assert during == [b"1"]
    assert after == b"234"


def test_a_refusing_link_resets_what_is_there_and_what_comes() -> None:
    async def scene() -> None:
        async with echo() as net:
            reader, writer = await net.connect()
            await said((reader, writer), b"1")
            net.link.refuse()
            with pytest.raises(ConnectionResetError):
                await reader.readexactly(1)
            late, late_writer = await net.connect()
            late_writer.write(b"2")
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await late.readexactly(1)
            assert net.heard == [b"1"]
            net.link.clear()
            assert await said(await net.connect(), b"3") == b"3"

    asyncio.run(scene())


def test_a_link_is_cut_after_so_many_bytes_and_then_whole_again() -> None:
    """Whoever reads a message must survive that it ends in the middle."""

    async def scene() -> None:
        async with echo() as net:
            reader, writer = await net.connect()
            await said((reader, writer), b"1")
            net.link.cut_after(3)
            writer.write(b"12345")
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(5)
            assert net.heard == [b"1"]
            assert await said(await net.connect(), b"again") == b"again"

    asyncio.run(scene())


def test_a_slow_link_keeps_the_order() -> None:
    """FAULT-8: delay and jitter never reorder a TCP connection."""

    async def scene() -> bytes:
        async with echo() as net:
            net.link.slow(0.001, 0.02)
            reader, writer = await net.connect()
            for number in range(20):
                writer.write(b"%02d" % number)
                await writer.drain()
            return await reader.readexactly(40)

    assert asyncio.run(scene()) == b"".join(b"%02d" % number for number in range(20))


def test_a_link_to_nobody_resets_its_caller() -> None:
    async def scene() -> None:
        async with echo() as net:
            net.link.lead_to("127.0.0.1:1")
            reader, writer = await net.connect()
            writer.write(b"1")
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)

    asyncio.run(scene())


def test_a_network_has_a_link_each_way_and_one_from_the_clients() -> None:
    async def scene() -> None:
        async with Network(("a", "b", "c"), 1) as network:
            pairs = {(link.source, link.to) for link in network.of_peers()}
            assert pairs == {(x, y) for x in "abc" for y in "abc" if x != y}
            assert {link.name for link in network.between("a", "b")} == {"a>b", "b>a"}
            assert network.link(CLIENTS, "c").name == "clients>c"
            assert len({network.address(x, y) for x, y in (*pairs, (CLIENTS, "a"))}) == 7

    asyncio.run(scene())


def test_closing_ends_stalled_connections() -> None:
    async def scene() -> None:
        async with echo() as net:
            reader, writer = await net.connect()
            await said((reader, writer), b"1")
            net.link.stall()
            await net.link.close()
            await until_async(_ended(reader), "the end")

    asyncio.run(scene())


def _ended(reader: asyncio.StreamReader) -> Callable[[], bool]:
    return lambda: reader.at_eof() or reader.exception() is not None
