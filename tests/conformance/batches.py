"""Heartbeats of one client as batches of one on a HeartbeatStream, each with its answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import grpc

from holdfast.v1 import group_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

BEATS = (group_pb2.HeartbeatRequest, group_pb2.ConsumerGroupHeartbeatRequest)


def takes(request: Message, client: str) -> bool:
    """Return whether a request goes in a batch: the heartbeats of every other client do."""
    return isinstance(request, BEATS) and sum(client.encode()) % 2 == 0


class Batches:
    """One client's stream; another one is opened after its end."""

    def __init__(self, open_call: Callable[[], Any]) -> None:
        self._open_call = open_call
        self._call: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._number, self._writing = 0, asyncio.Lock()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.pushes = 0

    async def ask(self, request: Message) -> Any:  # noqa: ANN401 - the response of its protocol
        """Send a heartbeat and return its answer; raises AioRpcError."""
        if self._reader is None or self._reader.done():
            self._call = self._open_call()
            self._reader = asyncio.create_task(self._read(self._call))
        self._number += 1
        number = self._number
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        field = "requests" if isinstance(request, BEATS[0]) else "consumer_requests"
        batch: Any = group_pb2.HeartbeatBatch(batch=number)
        getattr(batch, field).append(request)
        with suppress(grpc.aio.AioRpcError):  # its reader says why
            async with self._writing:  # gRPC takes one message at a time
                await self._call.write(batch)
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def _read(self, call: Any) -> None:  # noqa: ANN401 - grpc.aio's call is untyped
        error: Exception = grpc.aio.AioRpcError(
            grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "it ended"
        )
        try:
            async for message in call:
                self.pushes += len(message.pushes)
                for response in (*message.responses, *message.consumer_responses):
                    answer = self._waiting.get(message.batch)
                    if answer is not None:  # nobody waits any more: its transcript is over
                        answer.set_result(response)
        except grpc.aio.AioRpcError as ended:
            error = ended
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(error)

    def close(self) -> None:
        """Hang up."""
        if self._reader is not None:
            self._reader.cancel()
            self._call.cancel()
