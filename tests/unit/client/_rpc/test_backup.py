"""A backup's file is read to its end, however often the transfer breaks off."""

# ruff: noqa: ANN401, N802 - the generated interface sets the names; its contexts are untyped

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest

from holdfast.client import InvalidArgument
from holdfast.client._rpc import backup
from holdfast.client._rpc.caller import Caller
from holdfast.v1 import backup_pb2 as b
from holdfast.v1.backup_pb2_grpc import BackupServiceServicer, add_BackupServiceServicer_to_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CONTENT = bytes(range(100))
NOT_APPLIED = (("holdfast-outcome", "not-applied"),)


class Node(BackupServiceServicer):
    """Sends ten bytes a message, and breaks each transfer off after two messages."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def BeginBackup(self, request: Any, context: Any) -> Any:
        del context
        return b.BeginBackupResponse(copy_id=request.copy_id or "new")

    async def ReadBackup(self, request: Any, context: Any) -> Any:
        if request.copy_id != "new":
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "gone", NOT_APPLIED)
        self.asked.append(request.offset)
        for sent, at in enumerate(range(request.offset, len(CONTENT), 10)):
            if sent == 2:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "it stops", NOT_APPLIED)
            yield b.ReadBackupResponse(content=CONTENT[at : at + 10])

    async def EndBackup(self, request: Any, context: Any) -> Any:
        del request, context
        return b.EndBackupResponse()


@asynccontextmanager
async def served(node: Node) -> AsyncIterator[Caller]:
    server = grpc.aio.server()
    add_BackupServiceServicer_to_server(node, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    caller = Caller(address)
    try:
        yield caller
    finally:
        await caller.close()
        await server.stop(0)


async def read(caller: Caller, copy_id: str, offset: int = 0) -> bytes:
    request = b.ReadBackupRequest(copy_id=copy_id, offset=offset)
    return b"".join([c async for c in backup.read(caller, request, timeout_ms=20_000)])


def test_a_transfer_that_breaks_off_goes_on_at_the_next_byte() -> None:
    async def story() -> None:
        node = Node()
        async with served(node) as caller:
            begun = await backup.begin(caller, "", timeout_ms=20_000)
            assert await read(caller, begun.copy_id, 35) == CONTENT[35:]
        assert node.asked == [35, 55, 75, 95]

    asyncio.run(story())


def test_a_copy_that_is_gone_ends_the_transfer() -> None:
    async def story() -> None:
        async with served(Node()) as caller:
            with pytest.raises(InvalidArgument, match="gone"):
                await read(caller, "old")

    asyncio.run(story())
