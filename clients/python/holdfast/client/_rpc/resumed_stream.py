"""Reads a stream of answers to its end, however often it breaks off: each time it goes on behind.

Where it goes on is the caller's: it moves the request forward. Knows no message by name.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import grpc.aio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from google.protobuf.message import Message

    from holdfast.client._rpc.caller import Caller
    from holdfast.client._rpc.retries import Retries
    from holdfast.client._session.session_io import Failure

MessageT = TypeVar("MessageT")


async def resumed(
    caller: Caller,
    retries: Retries,
    request: Message,
    begin: Callable[[grpc.aio.Channel], Any],
    move: Callable[[MessageT], None],
) -> AsyncGenerator[MessageT, None]:
    """Yield the messages until the node ends the stream; to be closed. Raises as `Caller.call`.

    `begin`: the method of the stream, on a channel. `move`: moves `request` behind a message that
    was taken, so that an attempt after a failure, which may be at another node, goes on there.
    """
    while True:
        address = caller.endpoints.current
        failure: Failure | None = None
        if not await caller.connect(address):
            failure = caller.not_connected(address)
        else:
            method = begin(caller.channel(address))
            try:
                async for message in method(request, metadata=caller.shown.metadata):
                    caller.succeeded(address)
                    retries.begin()
                    yield message
                    move(message)
            except grpc.aio.AioRpcError as error:
                failure = caller.call_failed(address, error, request)
        if failure is None:
            return
        await asyncio.sleep(retries.pause_ms(failure, nobody=caller.nobody_connects) / 1000)
