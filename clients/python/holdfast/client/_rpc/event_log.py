"""Read the event log of a cluster from any node that answers, without gap or duplicate.

If a node ends a watch or does not answer, the next node continues from `next`: positions are the
same on every node. If a node does not hold a position, a peer may hold it.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from holdfast.client._rpc.caller import CALL_TIMEOUT_MS
from holdfast.client._rpc.resumed_stream import resumed
from holdfast.v1 import log_pb2
from holdfast.v1.log_pb2_grpc import LogServiceStub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import grpc.aio

    from holdfast.client._rpc.caller import Caller
    from holdfast.v1.extras_pb2 import Position


async def pages(
    caller: Caller,
    start: Position | None,
    group: str | None,
    *,
    timeout_ms: int = CALL_TIMEOUT_MS,
) -> AsyncIterator[log_pb2.ReadEventsResponse]:
    """Yield pages from a position (None: the first held) to the end of the log at that time.

    `group`: only this group's events; "" only the cluster's own. Raises as `Caller.call`, for each
    page anew; InvalidArgument where no node holds the position.
    """
    end = False
    while not end:
        page = await caller.call(
            log_pb2.ReadEventsRequest(start=start, group_id=group),
            log_pb2.ReadEventsResponse,
            timeout_ms=timeout_ms,
        )
        yield page
        start, end = page.next, page.end


async def watch(
    caller: Caller,
    start: Position | None,
    group: str | None,
    *,
    timeout_ms: int = CALL_TIMEOUT_MS,
) -> AsyncIterator[log_pb2.WatchResponse]:
    """Yield events from a position (None: from now) on, without end; arguments as `pages`."""
    request = log_pb2.WatchRequest(start=start, group_id=group)
    retries = caller.retries(request, timeout_ms)

    def move(message: log_pb2.WatchResponse) -> None:
        request.start.CopyFrom(message.next)

    while True:
        async with aclosing(resumed(caller, retries, request, _watch, move)) as messages:
            async for message in messages:
                yield message


def _watch(channel: grpc.aio.Channel) -> Any:  # noqa: ANN401 - a stub's method
    return LogServiceStub(channel).Watch
