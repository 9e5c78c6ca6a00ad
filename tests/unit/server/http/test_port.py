"""The socket of the HTTP port: strangers cost the node a bounded number of connections and time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, cast

import pytest
import uvloop

from holdfast.server.config.address import Address
from holdfast.server.config.node_config import CannotStart
from holdfast.server.http import port as http_port
from holdfast.server.http.port import HttpPort, listen
from unit.server.http_calls import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

FREE = Address("127.0.0.1", 0)
MORE_THAN_BUFFERS_TAKE = 64 << 20


class Greeting(asyncio.Protocol):
    """Writes something at once, and notes when its connection has ended."""

    def __init__(self, greeting: bytes = b"hello") -> None:
        self.greeting = greeting
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.WriteTransport", transport).write(self.greeting)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.ended.set_result(None)


class Served:
    """A port that serves, and the protocols that it made."""

    def __init__(self, greeting: bytes) -> None:
        listening = listen(FREE)
        self.number: int = listening.getsockname()[1]
        self.port = HttpPort(listening, lambda: None)
        self.made: list[Greeting] = []
        self._greeting = greeting

    def protocol(self) -> Greeting:
        self.made.append(Greeting(self._greeting))
        return self.made[-1]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.number)


@asynccontextmanager
async def served(greeting: bytes = b"hello") -> AsyncIterator[Served]:
    made = Served(greeting)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield made
    finally:
        await made.port.close()


def run(test: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run it as a node does."""
    uvloop.run(test())


def test_s9_a_caller_that_says_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_port, "LIFE_S", 0.05)

    async def test() -> None:
        async with served() as it:
            it.port.serve(it.protocol)
            reader, writer = await it.connect()
            with suppress(ConnectionError):  # the rest is cut off, however the system shows that
                assert await reader.read() == b"hello"
            writer.close()

    run(test)


def test_s9_a_slow_reader_does_not_hold_its_answer_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_port, "LIFE_S", 0.2)

    async def test() -> None:
        async with served(bytes(MORE_THAN_BUFFERS_TAKE)) as it:
            it.port.serve(it.protocol)
            _, writer = await it.connect()  # it reads no more than its buffer takes
            while not it.made:  # noqa: ASYNC110 - the port makes it in a turn of this loop
                await asyncio.sleep(0)
            await it.made[0].ended
            writer.close()

    run(test)


def test_the_oldest_connection_ends_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else strangers that hold connections open would keep a probe out, and the node be killed."""
    monkeypatch.setattr(http_port, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(http_port, "PACE_S", 0.0)

    async def test() -> None:
        async with served() as it:
            it.port.serve(it.protocol)
            callers = []
            for _ in range(3):
                reader, writer = await it.connect()
                assert await reader.readexactly(5) == b"hello"
                callers.append(writer)
            await it.made[0].ended
            assert not it.made[1].ended.done()
            assert not it.made[2].ended.done()
            for writer in callers:
                writer.close()

    run(test)


def test_s9_connections_are_taken_at_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs the loop a handshake: however many wait, the loop does other work in between."""
    monkeypatch.setattr(http_port, "PACE_S", 3_600.0)

    async def test() -> None:
        async with served() as it:
            first, second = await it.connect(), await it.connect()
            it.port.serve(it.protocol)
            assert await first[0].readexactly(5) == b"hello"
            first[1].close()
            await it.made[0].ended
            assert len(it.made) == 1
            second[1].close()

    run(test)


def test_a_port_in_use_is_told_with_the_key_to_change() -> None:
    with listen(FREE) as taken:
        address = Address("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(CannotStart, match=rf"{address}.*http\.address"):
            listen(address)
