"""Members of a group of the heartbeat protocol, each with a HeartbeatStream of its own.

They beat when they are pushed to, let go and take up at once, and say so; nothing else makes them
beat. So a row sees what pushes and the service do, and no interval.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio

from bench.talk import OK, Line, Unexpected
from holdfast.v1 import events_pb2, log_pb2, log_pb2_grpc
from holdfast.v1 import group_pb2 as g

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


class Member:
    """One member. `pushes`: how often it was told to beat; `beats`: how often it did."""

    def __init__(
        self, group_id: str, number: int, topics: Sequence[str], line: Line, tally: Tally
    ) -> None:
        self.tally, self.group_id, self.member_id = tally, group_id, f"m-{number:05}"
        self.topics, self.epoch, self.pushes, self.beats = topics, 0, 0, 0
        self.owned: frozenset[tuple[str, int]] = frozenset()
        self._call = line.group.HeartbeatStream()
        self._answers: asyncio.Queue[g.ConsumerGroupHeartbeatResponse] = asyncio.Queue()
        self._told, self._turn = asyncio.Event(), asyncio.Lock()
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._follow())]

    async def join(self) -> None:
        """Join, and take up what is given at once."""
        async with self._turn:
            answer = await self._beat(
                rebalance_timeout_ms=REBALANCE_MS,
                subscribed_topic_names=g.ConsumerGroupTopicNames(names=self.topics),
                topic_partitions=g.ConsumerGroupAssignment(),
            )
            await self._go_on(answer)

    def close(self) -> None:
        """Hang up without a word."""
        for task in self._tasks:
            task.cancel()
        self._call.cancel()

    def forget(self) -> None:
        """Count what it owns no more: it was removed."""
        self.tally.add(-len(self.owned))
        self.owned = frozenset()
        self.close()

    async def _beat(self, **said: Any) -> g.ConsumerGroupHeartbeatResponse:  # noqa: ANN401 - of the message
        self.beats += 1
        request = g.ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch, **said
        )
        await self._call.write(g.HeartbeatBatch(batch=self.beats, consumer_requests=[request]))
        answer = await self._answers.get()
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

    async def _read(self) -> None:
        while (message := await self._call.read()) is not grpc.aio.EOF:
            assert isinstance(message, g.HeartbeatBatchResponse)
            self.pushes += len(message.pushes)
            if message.pushes:
                self._told.set()
            for answer in message.consumer_responses:
                self._answers.put_nowait(answer)

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
    tally = Tally()
    on = [lines[number % len(lines)] for number in range(count)]
    made = [Member(group_id, number, topics, line, tally) for number, line in enumerate(on)]
    try:
        yield made
    finally:
        for each in made:
            each.close()


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
