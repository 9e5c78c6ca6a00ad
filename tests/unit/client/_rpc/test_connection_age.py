"""Connections that a node ages, and credentials whose files are replaced while a program runs."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from harness.poll import until_async
from holdfast.client import Tls
from holdfast.client._rpc import connection_age
from holdfast.client._rpc.caller import Caller
from holdfast.client._rpc.connection_age import FileWatch, watch_connection
from holdfast.server.security.authority_folder import AuthorityFolder, create
from holdfast.server.security.certificates import Party

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def echo(request: bytes, _: object) -> bytes:
    """Answer with the request."""
    return request


async def repeat(requests: AsyncIterator[bytes], _: object) -> AsyncIterator[bytes]:
    """Answer each message with itself."""
    async for each in requests:
        yield each


@asynccontextmanager
async def ageing(age_ms: int) -> AsyncIterator[str]:
    """A node that asks for a new connection after this time."""
    options = [("grpc.max_connection_age_ms", age_ms)]
    server = grpc.aio.server(options=options)
    unary: Any = grpc.unary_unary_rpc_method_handler(echo)
    stream: Any = grpc.stream_stream_rpc_method_handler(repeat)
    handler = grpc.method_handlers_generic_handler("t.T", {"U": unary, "S": stream})
    server.add_generic_rpc_handlers((handler,))
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield address
    finally:
        await server.stop(0)


def test_whoever_has_a_stream_is_told_that_its_connection_takes_no_new_calls() -> None:
    """The stream itself goes on, so nothing else would tell."""

    async def story() -> None:
        told: list[None] = []
        async with ageing(200) as address, grpc.aio.insecure_channel(address) as channel:
            stream: Any = channel.stream_stream("/t.T/S")()
            await stream.write(b"1")
            assert await stream.read() == b"1"
            watch = asyncio.create_task(watch_connection(channel, lambda: told.append(None)))
            await until_async(lambda: told, "the node's word")
            await stream.write(b"2")
            assert await stream.read() == b"2"
            watch.cancel()

    asyncio.run(story())


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    """A client's files; the authority is beside them."""
    create(tmp_path, "c")
    AuthorityFolder(tmp_path).issue(tmp_path / "x", Party("x", "holdfast://client/x"), 365)
    return Tls(*(tmp_path / "x" / f"{name}.pem" for name in ("ca", "certificate", "key")))


def renew(tmp_path: Path, days: int = 365) -> None:
    """Replace the client's certificate and key."""
    authority = AuthorityFolder(tmp_path)
    authority.renew(authority.find(tmp_path / "x"), days)


def test_new_files_are_taken_once_they_rest(
    tmp_path: Path, tls: Tls, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watch = FileWatch(tls)
    assert not watch.look()
    renew(tmp_path)

    assert [watch.look() for _ in range(4)] == [False, True, False, False]
    (told,) = caplog.messages
    assert "fingerprint" in told
    assert "valid until" in told


@pytest.mark.parametrize("file", ["ca", "certificate", "key"])
def test_a_broken_file_is_told_once_and_changes_nothing(
    tmp_path: Path, tls: Tls, caplog: pytest.LogCaptureFixture, file: str
) -> None:
    watch = FileWatch(tls)
    (tmp_path / "x" / f"{file}.pem").write_text("half")

    assert [watch.look() for _ in range(4)] == [False] * 4
    (told,) = caplog.messages
    assert "cannot be used" in told


def test_a_certificate_out_of_date_is_not_taken(
    tmp_path: Path, tls: Tls, caplog: pytest.LogCaptureFixture
) -> None:
    watch = FileWatch(tls)
    renew(tmp_path, days=0)

    assert not any(watch.look() for _ in range(4))
    assert "expired" in caplog.text


def test_files_that_vanish_while_they_are_judged_do_not_end_the_watch(
    tmp_path: Path, tls: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADR 27: they are looked at for as long as there is a channel."""
    watch, path = FileWatch(tls), tmp_path / "x" / "certificate.pem"
    renew(tmp_path)
    content = path.read_bytes()

    def sound_until_it_is_gone(_: Tls) -> str:
        path.unlink()
        return ""

    with monkeypatch.context() as patch:
        patch.setattr(connection_age, "date_flaw", sound_until_it_is_gone)
        assert [watch.look() for _ in range(2)] == [False, False]
    path.write_bytes(content)

    assert [watch.look() for _ in range(3)] == [False, True, False]


def test_new_credentials_get_a_new_channel_and_calls_on_the_old_one_go_on() -> None:
    async def story() -> None:
        async with ageing(60_000) as address:
            caller = Caller(address)
            assert await caller.connect(address)
            old = caller.channel(address)
            stream: Any = old.stream_stream("/t.T/S")()
            await stream.write(b"1")
            aged: list[str] = []
            caller.on_connection_ages = aged.append
            caller._renew_channels()

            assert aged == [address]
            assert caller.channel(address) is not old
            assert await caller.connect(address)
            assert await stream.read() == b"1"
            await stream.write(b"2")
            assert await stream.read() == b"2"
            await caller.close()

    asyncio.run(story())
