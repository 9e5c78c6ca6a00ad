"""The event log is read from whichever node answers, without gap or duplicate."""

# ruff: noqa: ANN401, N802 - the generated interface sets the names; its contexts are untyped

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest

from holdfast.client import InvalidArgument, Unavailable
from holdfast.client._rpc import event_log
from holdfast.client._rpc.caller import Caller
from holdfast.v1 import log_pb2 as lg
from holdfast.v1.events_pb2 import EventRecord
from holdfast.v1.extras_pb2 import Position
from holdfast.v1.log_pb2_grpc import LogServiceServicer, add_LogServiceServicer_to_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LAST = 6
"""Index of the last event."""
NOT_HELD = (("holdfast-outcome", "not-applied"),)


class Log(LogServiceServicer):
    """A node that holds the events from `first` on, and breaks each answer off after one event."""

    def __init__(self, first: int = 1) -> None:
        self.first = first
        self.asked: list[int] = []

    async def _begin(self, request: Any, context: Any) -> int:
        start = request.start.index or self.first
        self.asked.append(start)
        if start < self.first:
            await context.abort(grpc.StatusCode.OUT_OF_RANGE, f"from {self.first} on", NOT_HELD)
        return int(start)

    async def ReadEvents(self, request: Any, context: Any) -> Any:
        at = await self._begin(request, context)
        after = Position(index=at + 1)
        return lg.ReadEventsResponse(records=[record(at)], next=after, end=at == LAST)

    async def Watch(self, request: Any, context: Any) -> Any:
        at = await self._begin(request, context)
        if at > LAST:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "enough", NOT_HELD)
        yield lg.WatchResponse(records=[record(at)], next=Position(index=at + 1))
        await context.abort(grpc.StatusCode.UNAVAILABLE, "it stops")

    async def SealLog(self, request: Any, context: Any) -> Any:
        raise NotImplementedError


def record(index: int) -> EventRecord:
    return EventRecord(position=Position(index=index))


@asynccontextmanager
async def served(*logs: Log) -> AsyncIterator[Caller]:
    """Whoever reads these nodes' logs."""
    servers = [grpc.aio.server() for _ in logs]
    addresses = []
    for server, log in zip(servers, logs, strict=True):
        add_LogServiceServicer_to_server(log, server)
        addresses.append(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
        await server.start()
    caller = Caller(addresses)
    try:
        yield caller
    finally:
        await caller.close()
        for server in servers:
            await server.stop(0)


async def indexes(answers: AsyncIterator[Any]) -> list[int]:
    return [each.position.index async for answer in answers for each in answer.records]


def test_pages_go_on_where_the_last_one_ended() -> None:
    async def story() -> list[int]:
        async with served(Log()) as caller:
            return await indexes(event_log.pages(caller, None, None))

    assert asyncio.run(story()) == [1, 2, 3, 4, 5, 6]


def test_a_node_that_does_not_hold_the_position_is_left_for_one_that_does() -> None:
    async def story() -> list[int]:
        async with served(Log(first=4), Log()) as caller:
            return await indexes(event_log.pages(caller, Position(index=2), None))

    assert asyncio.run(story()) == [2, 3, 4, 5, 6]


def test_what_no_node_holds_is_told_at_once_in_the_service_s_words() -> None:
    """Each is asked once: to wait would bring nothing back."""
    logs = (Log(first=4), Log(first=5))

    async def story() -> str:
        async with served(*logs) as caller:
            with pytest.raises(InvalidArgument) as raised:
                await indexes(event_log.pages(caller, Position(index=2), None))
            return raised.value.details

    assert asyncio.run(story()) == "from 5 on"
    assert [log.asked for log in logs] == [[2], [2]]


def test_a_watch_that_breaks_off_goes_on_at_another_node_without_gap_or_duplicate() -> None:
    logs = (Log(), Log())
    seen: list[int] = []

    async def story() -> None:
        async with served(*logs) as caller:
            async for message in event_log.watch(caller, None, None):
                seen.extend(each.position.index for each in message.records)
                if seen[-1] == LAST:
                    return

    asyncio.run(story())
    assert seen == [1, 2, 3, 4, 5, 6]
    assert all(log.asked for log in logs)


def test_a_watch_of_a_cluster_that_is_gone_ends_when_its_time_is_up() -> None:
    async def story() -> None:
        caller = Caller("127.0.0.1:1", connect_timeout_ms=0)
        try:
            await indexes(event_log.watch(caller, None, None))
        finally:
            await caller.close()

    with pytest.raises(Unavailable, match="nobody listens"):
        asyncio.run(story())
