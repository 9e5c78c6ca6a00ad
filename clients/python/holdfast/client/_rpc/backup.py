"""Read a backup from one node: its copy is named once, its files are read in order.

A transfer that breaks off goes on at the next byte, as long as the node keeps its copy. Knows no
files of its own side.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc.aio

from holdfast.v1 import backup_pb2
from holdfast.v1.backup_pb2_grpc import BackupServiceStub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.client._rpc.caller import Caller
    from holdfast.client._session.session_io import Failure


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
    while True:
        address = caller.endpoints.current
        failure: Failure | None = None
        if not await caller.connect(address):
            failure = caller.not_connected(address)
        else:
            stub = BackupServiceStub(caller.channel(address))
            try:
                async for message in stub.ReadBackup(request, metadata=caller.metadata):
                    caller.succeeded(address)
                    retries.begin()
                    yield message.content
                    request.offset += len(message.content)
            except grpc.aio.AioRpcError as error:
                failure = caller.call_failed(address, error, request)
        if failure is None:
            return
        await asyncio.sleep(retries.pause_ms(failure, nobody=caller.nobody_connects) / 1000)
