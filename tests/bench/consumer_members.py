"""Members of a group of the heartbeat protocol, those of a connection on one HeartbeatStream.

They beat when they are pushed to, let go and take up at once, and say so; nothing else makes them
beat. So a row sees what pushes and the service do, and no interval.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import grpc.aio

from bench.talk import OK, Line, Unexpected
from holdfast.v1 import events_pb2, log_pb2, log_pb2_grpc
from holdfast.v1 import group_pb2 as g

Answer: TypeAlias = "asyncio.Future[g.ConsumerGroupHeartbeatResponse]"
REBALANCE_MS = 60_000
WITHIN_S = 60.0


class Tally:
    """How many partitions the members of a group own together, and how many they are to own."""

    def __init__(self) -> None:
        self.owned = self._wanted = 0
        self._reached = asyncio.Event()

    def add(self, more: int) -> None:
        """Count partitions that a member owns now, or does not any more."""
        self.owned += more
        if self.owned == self._wanted:
            self._reached.set()

    async def all_owned(self, partitions: int) -> None:
        """Wait until every one of these has an owner. Raises TimeoutError."""
        self._wanted = partitions
        self._reached.clear()
        if self.owned != partitions:
            async with asyncio.timeout(WITHIN_S):
                await self._reached.wait()


class Stream:
    """The heartbeats of all members of a connection: what is ready together travels together."""

    def __init__(self, line: Line) -> None:
        self.members: dict[str, Member] = {}
        self._call = line.group.HeartbeatStream()
        self._ready: list[tuple[g.ConsumerGroupHeartbeatRequest, Answer]] = []
        self._sent: deque[list[Answer]] = deque()
        self._opened = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None
        self._reader = asyncio.create_task(self._read())

    async def open(self) -> None:
        """Wait until the node serves it."""
        await self._call.write(g.HeartbeatBatch(batch=1))
        await self._opened.wait()

    async def ask(
        self, request: g.ConsumerGroupHeartbeatRequest
    ) -> g.ConsumerGroupHeartbeatResponse:
        """Send a heartbeat, with those that are ready in this turn of the loop."""
        answer: Answer = asyncio.get_running_loop().create_future()
        self._ready.append((request, answer))
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())
        return await answer

    def close(self) -> None:
        """Hang up without a word."""
        self._reader.cancel()
        self._call.cancel()

    async def _send(self) -> None:
        while self._ready:
            ready, self._ready = self._ready, []
            self._sent.append([answer for _, answer in ready])
            beats = [request for request, _ in ready]
            await self._call.write(g.HeartbeatBatch(batch=2, consumer_requests=beats))

    async def _read(self) -> None:
        while (message := await self._call.read()) is not grpc.aio.EOF:
            assert isinstance(message, g.HeartbeatBatchResponse)
            self._opened.set()
            for push in message.pushes:
                self.members[push.member_id].push()
            if message.consumer_responses:
                answers = self._sent.popleft()
                for answer, response in zip(answers, message.consumer_responses, strict=True):
                    answer.set_result(response)


class Member:
    """One member. `pushes`: how often it was told to beat."""

    def __init__(
        self, group_id: str, number: int, topics: Sequence[str], stream: Stream, tally: Tally
    ) -> None:
        self.tally, self.group_id, self.member_id = tally, group_id, f"m-{number:05}"
        self.topics, self.epoch, self.pushes = topics, 0, 0
        self.owned: frozenset[tuple[str, int]] = frozenset()
        self._stream = stream
        self._told, self._turn = asyncio.Event(), asyncio.Lock()
        self._following = asyncio.create_task(self._follow())
        stream.members[self.member_id] = self

    async def join(self) -> None:
        """Join, and take up what is given at once."""
        async with self._turn:
            answer = await self._beat(
                rebalance_timeout_ms=REBALANCE_MS,
                subscribed_topic_names=g.ConsumerGroupTopicNames(names=self.topics),
                topic_partitions=g.ConsumerGroupAssignment(),
            )
            await self._go_on(answer)

    def push(self) -> None:
        """Hear a push."""
        self.pushes += 1
        self._told.set()

    def end(self) -> None:
        """Beat no more."""
        self._following.cancel()

    def forget(self) -> None:
        """Beat no more, and own nothing: it was removed."""
        self.tally.add(-len(self.owned))
        self.owned = frozenset()
        self.end()

    async def _beat(self, **said: Any) -> g.ConsumerGroupHeartbeatResponse:  # noqa: ANN401 - of the message
        request = g.ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch, **said
        )
        answer = await self._stream.ask(request)
        if answer.error_code != OK:
            raise Unexpected("a heartbeat", answer.error_code, answer.error_message)
        self.epoch = answer.member_epoch
        return answer

    async def _go_on(self, answer: g.ConsumerGroupHeartbeatResponse) -> None:
        """Own what the answer says, and tell the group, until it says nothing new."""
        while answer.HasField("assignment"):
            given = answer.assignment.topic_partitions
            owned = frozenset((t.topic, number) for t in given for number in t.partitions)
            self.tally.add(len(owned) - len(self.owned))
            self.owned = owned
            answer = await self._beat(topic_partitions=answer.assignment)

    async def _follow(self) -> None:
        while await self._told.wait():
            async with self._turn:  # a push while a heartbeat is open counts after its answer
                self._told.clear()
                await self._go_on(await self._beat())


@asynccontextmanager
async def members(
    group_id: str, lines: Sequence[Line], topics: Sequence[str], count: int
) -> AsyncIterator[list[Member]]:
    """So many members on these connections, none of which has joined."""
    tally, streams = Tally(), [Stream(line) for line in lines]
    on = [streams[number % len(streams)] for number in range(count)]
    made = [Member(group_id, number, topics, stream, tally) for number, stream in enumerate(on)]
    try:
        await asyncio.gather(*(stream.open() for stream in streams))
        yield made
    finally:
        for each in made:
            each.end()
        for stream in streams:
            stream.close()


async def targets(line: Line, group_id: str) -> int:
    """How many targets the log has for a group."""
    log, start, found = log_pb2_grpc.LogServiceStub(line.channel), None, 0
    while True:
        page = await log.ReadEvents(log_pb2.ReadEventsRequest(group_id=group_id, start=start))
        found += sum(_is_target(each) for each in page.records)
        if page.end:
            return found
        start = page.next


def _is_target(record: events_pb2.EventRecord) -> bool:
    return record.event.WhichOneof("body") == "target_stored"
