"""Rows against nodes that lack a call: the part is named, and the others are measured."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from bench import bare_server, changes
from bench.rig import Bench, Say
from bench.sizes import QUICK
from bench.talk import Line
from holdfast.v1 import admin_pb2_grpc, group_pb2_grpc, offset_pb2_grpc

SIZES = replace(QUICK, seconds=0.01, warm_up_s=0.0)


class NoNodes:
    """Nobody whose effort could be watched."""

    leader_name = "n1"

    def pids(self) -> dict[str, int]:
        return {}


@asynccontextmanager
async def served(add: Callable[[grpc.aio.Server], None]) -> AsyncIterator[Line]:
    server = grpc.aio.server()
    add(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
    yield Line(
        channel,
        group_pb2_grpc.GroupServiceStub(channel),
        offset_pb2_grpc.OffsetServiceStub(channel),
        admin_pb2_grpc.AdminServiceStub(channel),
    )
    await channel.close()
    await server.stop(0)


def nothing(server: grpc.aio.Server) -> None:
    """Without a handler every call is UNIMPLEMENTED."""
    del server


def measure(
    folder: Path, add: Callable[[grpc.aio.Server], None], part: Callable[[Bench, Line], Any]
) -> Bench:
    bench = Bench(SIZES, folder, Say())

    async def run() -> None:
        async with served(add) as line:
            one: Awaitable[None] = part(bench, line)
            await bench.attempt("commit", "on a stream", one)

    asyncio.run(run())
    return bench


@pytest.mark.parametrize("window", [1, 64])
def test_a_stream_that_the_nodes_do_not_have_is_noted(tmp_path: Path, window: int) -> None:
    """With many messages in flight, too, where the end of the stream meets a write."""

    async def part(bench: Bench, line: Line) -> None:
        await changes.streamed(bench, NoNodes(), line, window)

    bench = measure(tmp_path, nothing, part)
    assert list(bench.lacking) == ["commit: on a stream"]


def test_a_call_that_the_nodes_do_not_have_is_noted(tmp_path: Path) -> None:
    async def part(bench: Bench, line: Line) -> None:
        await changes.unary(bench, NoNodes(), [line], 2)

    bench = measure(tmp_path, nothing, part)
    assert list(bench.lacking) == ["commit: on a stream"]


def test_what_the_nodes_have_is_measured(tmp_path: Path) -> None:
    """The answers of the bare server are the wanted ones."""

    async def part(bench: Bench, line: Line) -> None:
        for window in (1, 8):
            assert (await changes.streamed(bench, NoNodes(), line, window)).times
        assert (await changes.large(bench, NoNodes(), [line])).times

    bench = measure(tmp_path, bare_server.add_services, part)
    assert bench.lacking == {}


def test_another_error_ends_the_row(tmp_path: Path) -> None:
    """Only a call that the nodes do not have is passed over."""

    async def part(bench: Bench, line: Line) -> None:
        del bench, line
        nothing_told = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, nothing_told, nothing_told)

    with pytest.raises(grpc.aio.AioRpcError) as raised:
        measure(tmp_path, bare_server.add_services, part)
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
