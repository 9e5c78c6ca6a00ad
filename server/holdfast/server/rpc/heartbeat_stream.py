"""HeartbeatStream: takes batches, writes their answers, and the pushes to the members it carries.

How a batch is answered is not known here (`heartbeat_batch`), nor what is pushed (`pushes`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.server.guard.request_guard import SHORT_BYTES
from holdfast.server.rpc.callers import end
from holdfast.server.rpc.errors import ENDED, status_named
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from holdfast.server.guard.pace import Pace
    from holdfast.server.rpc.callers import Asker, Callers, Context, Identity
    from holdfast.server.rpc.calls.heartbeat_batch import HeartbeatBatches
    from holdfast.server.rpc.pushes.carriers import Carriers
    from holdfast.server.traces.traces import Traces

WAITING_MAX: Final = 64
"""Messages that wait for a slow reader; above this, pushes (mere hints) are left out."""
ANSWERED_MAX: Final = 4
"""Batches whose answers wait for a slow reader; above this, no more batches are read."""
_PATH: Final = "holdfast.v1.GroupService/HeartbeatStream"
"""What a batch is called in a trace."""


class Stream:
    """One open HeartbeatStream, and the messages to be written on it."""

    def __init__(self, who: Asker) -> None:
        """`who`: reads who calls, once it is asked for; a stream is one call."""
        self._who, self._principal = who, ""
        self._outbox: asyncio.Queue[g.HeartbeatBatchResponse | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(ANSWERED_MAX)
        self.unanswered = 0
        """Batches that are decided and not answered: the client does not know their outcome."""

    def principal(self) -> str:
        """Return who calls."""
        self._principal = self._principal or self._who.principal()
        return self._principal

    def identity(self) -> Identity:
        """Return all that is known of the caller; raises CallFailed for a malformed name."""
        return self._who.identity()

    async def put(self, answers: g.HeartbeatBatchResponse) -> None:
        """Queue a batch's answers for writing; waits for room."""
        self.unanswered += 1
        await self._room.acquire()
        self._outbox.put_nowait(answers)

    @property
    def waiting(self) -> int:
        """The number of messages that wait for the reader."""
        return self._outbox.qsize()

    def close(self) -> None:
        """End the queue: `write` returns after the messages queued before."""
        self._outbox.put_nowait(None)

    def push(self, pushes: Sequence[g.HeartbeatPush]) -> int:
        """Queue pushes as one message, unless too many wait; returns how many were left out."""
        if self._outbox.qsize() >= WAITING_MAX:
            return len(pushes)
        self._outbox.put_nowait(g.HeartbeatBatchResponse(pushes=pushes))
        return 0

    async def write(self, context: Context) -> None:
        """Write the queued messages in order, until `close`."""
        while (message := await self._outbox.get()) is not None:
            await context.write(message)
            if not message.pushes:
                self.unanswered -= 1
                self._room.release()


class HeartbeatStreams:
    """All open streams."""

    def __init__(
        self,
        batches: HeartbeatBatches,
        callers: Callers,
        carriers: Carriers,
        pace: Pace,
        traces: Traces | None = None,
    ) -> None:
        """`traces`: follows some of the batches."""
        self._batches, self._callers, self._carriers = batches, callers, carriers
        self._pace, self._traces = pace, traces
        self._open: dict[Stream, None] = {}

    async def serve(self, batches: AsyncIterator[g.HeartbeatBatch], context: Context) -> None:
        """Serve one stream until the client ends it, or no longer takes its answers."""
        stream = Stream(self._callers.asker(context))
        self._open[stream] = None
        sides = [self._read(stream, batches, context), stream.write(context)]
        tasks = [asyncio.ensure_future(side) for side in sides]
        try:
            await asyncio.gather(*tasks)
        except ENDED as error:
            await end(context, error, "unknown" if stream.unanswered else "not-applied")
        finally:
            for task in tasks:
                task.cancel()
            del self._open[stream]
            self._carriers.close(stream)

    async def _read(
        self, stream: Stream, batches: AsyncIterator[g.HeartbeatBatch], context: Context
    ) -> None:
        async for batch in batches:
            size = (
                batch.ByteSize() if batch.consumer_requests else 0
            )  # it takes as long as encoding
            answering = self._answer(stream, batch, size, context)
            trace = self._traces.begin(_PATH, None) if self._traces else None
            answer = answering if trace is None else trace.follow(answering, status_named)
            await stream.put(await answer)
            if size > SHORT_BYTES * _count(batch):
                await self._pace.turn(context.peer())
        stream.close()

    async def _answer(
        self, stream: Stream, batch: g.HeartbeatBatch, size: int, context: Context
    ) -> g.HeartbeatBatchResponse:
        """Answer a batch. Heartbeats that may say much are charged to their caller.

        `size`: its bytes, if it has any of these.
        """
        answering = self._batches.answer(stream, batch)
        if not size:
            return await answering
        return await self._pace.timed(context.peer(), answering, size, _count(batch))

    @property
    def waiting(self) -> int:
        """The number of messages that wait for readers, answers and pushes."""
        return sum(stream.waiting for stream in self._open)


def _count(batch: g.HeartbeatBatch) -> int:
    return len(batch.requests) + len(batch.consumer_requests)
