"""Backups over gRPC: who may read one, from its first byte to its last."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import pytest

from harness.no_copies import NoCopies
from holdfast.coordinator.model.access import DENY
from holdfast.v1.backup_pb2 import ReadBackupRequest, ReadBackupResponse
from holdfast.v1.backup_pb2_grpc import BackupServiceStub
from unit.server.nodes import served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.runtime.backup.source import Piece

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
