"""Read a backup from one node: its copy is named once, its files are read in order.

A transfer that breaks off goes on at the next byte, as long as the node keeps its copy. Knows no
files of its own side.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from holdfast.client._rpc.resumed_stream import resumed
from holdfast.v1 import backup_pb2
from holdfast.v1.backup_pb2_grpc import BackupServiceStub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import grpc.aio

    from holdfast.client._rpc.caller import Caller


async def begin(caller: Caller, copy_id: str, *, timeout_ms: int) -> backup_pb2.BeginBackupResponse:
    """Have a copy made, or find the one of this id again. Raises as `Caller.call`."""
    request = backup_pb2.BeginBackupRequest(copy_id=copy_id)
    return await caller.call(request, backup_pb2.BeginBackupResponse, timeout_ms=timeout_ms)


async def end(caller: Caller, copy_id: str, *, timeout_ms: int) -> None:
    """Let the node drop its copy. Raises as `Caller.call`."""
    request = backup_pb2.EndBackupRequest(copy_id=copy_id)
    await caller.call(request, backup_pb2.EndBackupResponse, timeout_ms=timeout_ms)


async def read(
    caller: Caller, request: backup_pb2.ReadBackupRequest, *, timeout_ms: int
) -> AsyncIterator[bytes]:
    """Yield the bytes of a file from `request.offset` to its end.

    `timeout_ms`: how long the node may not answer. Raises as `Caller.call`.
    """
    retries = caller.retries(request, timeout_ms)

    def move(message: backup_pb2.ReadBackupResponse) -> None:
        request.offset += len(message.content)

    async with aclosing(resumed(caller, retries, request, _read, move)) as messages:
        async for message in messages:
            yield message.content


def _read(channel: grpc.aio.Channel) -> Any:  # noqa: ANN401 - a stub's method
    return BackupServiceStub(channel).ReadBackup
