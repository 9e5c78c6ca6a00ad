"""Heartbeats on one open stream, on which the service also pushes what cannot wait.

A message on an open stream costs a third of a unary call, and a push tells of a rebalance at once
instead of at the next heartbeat. A service without the stream gets unary heartbeats.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from holdfast.client.errors import IncompatibleServer, OutcomeUnknown
from holdfast.client.signals import Failure, FailureKind
from holdfast.v1 import group_pb2
from holdfast.v1.group_pb2_grpc import GroupServiceStub

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

    from holdfast.client.caller import Caller


class HeartbeatStream:
    """Heartbeats of one member to whichever node leads; `on_push` hears what is told unasked."""

    def __init__(self, caller: Caller, on_push: Callable[[group_pb2.HeartbeatPush], None]) -> None:
        self._caller = caller
        self._on_push = on_push
        self._address = ""
        self._call: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[group_pb2.HeartbeatResponse]] = {}
        self._batch = 0
        self._unary = False

    async def attempt(
        self, request: group_pb2.HeartbeatRequest, timeout_ms: int
    ) -> Message | Failure:
        """One heartbeat, once; a failure ends the stream, and the next heartbeat opens another."""
        if self._unary:
            return await self._caller.attempt(request, timeout_ms)
        address = self._caller.endpoints.current
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                if not await self._open(address):
                    return self._caller.not_connected(address)
                response = await self._exchange(request)
        except TimeoutError:
            return self._given_up(address, f"no answer within {timeout_ms} ms")
        except asyncio.InvalidStateError as error:
            return self._given_up(address, str(error))
        except grpc.aio.AioRpcError as error:
            self.close()
            failure = self._caller.broken(address, error, request)
            if not isinstance(failure.error, IncompatibleServer):
                return failure
            self._unary = True
            return await self._caller.attempt(request, timeout_ms)
        return self._caller.judged(address, response)

    def close(self) -> None:
        """End the stream; a heartbeat in flight fails."""
        if self._call is not None:
            self._call.cancel()
        if self._reader is not None:
            self._reader.cancel()
        self._fail(asyncio.InvalidStateError("the heartbeat stream was closed"))
        self._call = self._reader = None
        self._address = ""

    async def _open(self, address: str) -> bool:
        if self._address == address and self._reader is not None and not self._reader.done():
            return True
        self.close()
        if not await self._caller.connect(address):
            return False
        stub = GroupServiceStub(self._caller.channel(address))
        self._call = stub.HeartbeatStream(metadata=self._caller.metadata)
        self._address = address
        self._reader = asyncio.create_task(self._read(self._call))
        return True

    async def _exchange(self, request: group_pb2.HeartbeatRequest) -> group_pb2.HeartbeatResponse:
        self._batch += 1
        batch = self._batch
        future: asyncio.Future[group_pb2.HeartbeatResponse]
        future = self._waiting[batch] = asyncio.get_running_loop().create_future()
        try:
            await self._call.write(group_pb2.HeartbeatBatch(batch=batch, requests=[request]))
            return await future
        finally:
            self._waiting.pop(batch, None)

    async def _read(self, call: Any) -> None:  # noqa: ANN401 - grpc.aio's stream call is untyped
        try:
            async for message in call:
                waiting = self._waiting.pop(message.batch, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(message.responses[0])
                for push in message.pushes:
                    self._on_push(push)
        except grpc.aio.AioRpcError as error:
            self._fail(error)
        else:
            self._fail(asyncio.InvalidStateError("the service ended the heartbeat stream"))

    def _fail(self, error: BaseException) -> None:
        waiting = list(self._waiting.values())
        self._waiting.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(error)

    def _given_up(self, address: str, why: str) -> Failure:
        self.close()
        error = OutcomeUnknown(f"Heartbeat at {address}: {why}.")
        return Failure(FailureKind.RETRY, error, self._caller.endpoints.failed(address))
