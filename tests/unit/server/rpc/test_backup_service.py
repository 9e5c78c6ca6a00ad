"""Backups over gRPC: who may read one, from its first byte to its last."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import grpc
import pytest

from harness.no_copies import NoCopies
from holdfast.coordinator.model.access import DENY
from holdfast.runtime.backup.source import BadOffset
from holdfast.v1.backup_pb2 import BeginBackupRequest, ReadBackupRequest, ReadBackupResponse
from holdfast.v1.backup_pb2_grpc import BackupServiceStub
from unit.runtime.fake_replica import FakeReplica
from unit.server.nodes import served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from holdfast.runtime.backup.source import Piece
    from unit.server.nodes import Served

    Reading = grpc.aio.UnaryStreamCall[ReadBackupRequest, ReadBackupResponse]


class _Endless(NoCopies):
    """A file that has no end."""

    async def read(self, piece: Piece) -> AsyncIterator[bytes]:
        del piece
        while True:
            await asyncio.sleep(0)
            yield b"secret"


async def _to_its_end(reading: Reading) -> None:
    while await reading.read():
        pass


def test_a_file_is_read_no_further_once_the_right_is_gone() -> None:
    """What is left of a file may be hours: the role is not asked for at its beginning alone."""

    async def story() -> None:
        async with served() as node:
            node.node._backups._copies = _Endless()
            reading = BackupServiceStub(node.channel).ReadBackup(ReadBackupRequest(), timeout=20)
            first = await reading.read()
            assert isinstance(first, ReadBackupResponse)
            assert first.content == b"secret"
            node.replica.state = node.replica.state._replace(access_mode=DENY)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await _to_its_end(reading)
            assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED

    asyncio.run(story())


class _Ended(NoCopies):
    """A file that is shorter than what is asked for."""

    async def read(self, piece: Piece) -> AsyncIterator[bytes]:
        raise BadOffset(f"it is {piece.offset}, and the file has 7 bytes")
        yield b""


def test_an_offset_behind_the_end_of_a_file_is_wrong_usage() -> None:
    async def story() -> None:
        async with served() as node:
            node.node._backups._copies = _Ended()
            asked = ReadBackupRequest(offset=(1 << 64) - 1)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await BackupServiceStub(node.channel).ReadBackup(asked, timeout=20).read()
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert "the file has 7 bytes" in str(caught.value.details())

    asyncio.run(story())


def _begun(node: Served) -> Awaitable[object]:
    return BackupServiceStub(node.channel).BeginBackup(BeginBackupRequest(), timeout=20)


def _read(node: Served) -> Awaitable[object]:
    return BackupServiceStub(node.channel).ReadBackup(ReadBackupRequest(), timeout=20).read()


@pytest.mark.parametrize("ask", [_begun, _read])
def test_adr38_a_node_that_was_started_gives_no_backup_before_it_has_caught_up(
    ask: Callable[[Served], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not know yet which grants were taken back, and with no state at all it knows none."""
    status = FakeReplica.status
    goal: list[int | None] = [None]
    monkeypatch.setattr(
        FakeReplica, "status", lambda self: replace(status(self), catch_up_index=goal[0])
    )

    async def code(node: Served) -> grpc.StatusCode:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await ask(node)
        return caught.value.code()

    async def story() -> None:
        async with served(leading=False) as node:
            for applied, goal[0] in ((0, None), (5, None), (5, 6)):
                node.replica.state = node.replica.state._replace(applied_index=applied)
                assert await code(node) is grpc.StatusCode.UNAVAILABLE
            goal[0] = 5
            assert await code(node) is grpc.StatusCode.FAILED_PRECONDITION, "there is no disk"

    asyncio.run(story())
