"""A Session stream as the load uses it: lists of calls, and calls of many callers in one message.

What is ready in one turn of the loop is sent as one message, as `holdfast.client` does; nothing is
held back for company.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import grpc.aio

from bench.talk import Line, served
from holdfast.v1 import group_pb2 as g

Answers = list[g.SessionAnswer]
_FIELDS: Final = {
    "JoinGroupRequest": "join",
    "SyncGroupRequest": "sync",
    "OffsetCommitRequest": "commit",
}


class Refused(Exception):
    """A call ended with a status, and a row wanted its response."""


class _List:
    """Calls that are asked for together."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.answers: Answers = []
        self.all: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()

    def add(self, answer: g.SessionAnswer) -> None:
        """Take one more answer; the last one completes them."""
        self.answers.append(answer)
        self.left -= 1
        if not self.left and not self.all.done():
            self.all.set_result(self.answers)


class Session:
    """One stream."""

    def __init__(self, line: Line) -> None:
        self._call = line.group.Session()
        self._last = 0
        self._next: list[g.SessionCall] = []
        self._asked: dict[int, _List] = {}
        self._sender: asyncio.Task[None] | None = None
        self._reader = asyncio.ensure_future(self._read())

    async def ask(self, request: Any) -> Any:  # noqa: ANN401 - of any kind
        """Make a call; its response. Raises Refused."""
        (answer,) = await self.ask_all([request])
        return response_of(answer)

    async def ask_all(self, requests: Iterable[Any]) -> Answers:
        """Make calls that travel together; their answers, in whatever order they come."""
        calls = []
        for request in requests:
            self._last += 1
            field = _FIELDS[type(request).__name__]
            calls.append(g.SessionCall(number=self._last, **{field: request}))
        asked = _List(len(calls))
        for call in calls:
            self._asked[call.number] = asked
        self._next += calls
        if self._sender is None or self._sender.done():
            self._sender = asyncio.ensure_future(self._send())
        return await asked.all

    async def _send(self) -> None:
        while self._next:
            calls, self._next = self._next, []
            await self._call.write(g.SessionRequest(calls=calls))

    async def _read(self) -> None:
        try:
            async for message in self._call:
                for answer in message.answers:
                    self._asked.pop(answer.number).add(answer)
        except grpc.aio.AioRpcError as error:
            self._fail(error)
        else:
            self._fail(EOFError("a node has ended a stream that a row still uses"))

    def _fail(self, error: Exception) -> None:
        for asked in set(self._asked.values()):
            if not asked.all.done():
                asked.all.set_exception(error)

    async def close(self) -> None:
        """End the stream; every call on it was answered."""
        await self._call.done_writing()
        await self._reader


def response_of(answer: g.SessionAnswer) -> Any:  # noqa: ANN401 - of any kind
    """The response in an answer. Raises Refused for a status."""
    field = answer.WhichOneof("response") or "status"
    if field == "status":
        raise Refused(answer.status.message)
    return getattr(answer, field)


@contextlib.asynccontextmanager
async def sessions(lines: Iterable[Line]) -> AsyncIterator[list[Session]]:
    """A stream on each of these lines. Raises AioRpcError if the nodes do not have the call."""
    on = list(lines)
    await served(on[0].group.Session(iter(())))
    opened = [Session(line) for line in on]
    try:
        yield opened
    finally:
        await asyncio.gather(*(session.close() for session in opened))
