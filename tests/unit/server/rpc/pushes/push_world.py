"""A leading node in memory, streams that a test reads, and a clock for what is to happen later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from holdfast.coordinator.model.events import LevelRaised, TopicsCreated, TopicSize
from holdfast.server.rpc.callers import Identity
from holdfast.server.rpc.pushes.pushes import Pushes
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from unit.server.consumer_calls import beat, join, places
from unit.server.watched_world import WatchedWorld

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence


class Reader:
    """A stream of one process: what is pushed on it waits here."""

    def __init__(self, principal: str = "p") -> None:
        self.who = principal
        self.pushed: list[g.HeartbeatPush] = []
        self.full = False

    def principal(self) -> str:
        return self.who

    def identity(self) -> Identity:
        return Identity(self.who, "client", "/127.0.0.1")

    def push(self, pushes: Sequence[g.HeartbeatPush]) -> int:
        if self.full:
            return len(pushes)
        self.pushed += pushes
        return 0

    def take(self) -> list[str]:
        """Who was told something since the last look, in order."""
        taken, self.pushed = self.pushed, []
        return [each.member_id for each in taken]


class _Handle:
    def __init__(self, due_s: float, act: Callable[[], None]) -> None:
        self.due_s, self.act, self.over = due_s, act, False

    def cancel(self) -> None:
        self.over = True


class Later:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.handles: list[_Handle] = []

    def __call__(self, seconds: float, act: Callable[[], None]) -> asyncio.TimerHandle:
        self.handles.append(handle := _Handle(self.now_s + seconds, act))
        return handle  # type: ignore[return-value]  # as far as it is used

    def turn(self, seconds: float) -> None:
        """Let time pass, and what is due happen."""
        self.now_s += seconds
        for each in list(self.handles):
            if not each.over and each.due_s <= self.now_s:
                each.over = True
                each.act()

    @property
    def waiting(self) -> int:
        return sum(not each.over for each in self.handles)


class PushWorld(WatchedWorld):
    """The world of the actors' tests, with what pushes to members."""

    def __init__(self) -> None:
        super().__init__()
        self.later = Later()
        self.pushes = Pushes(self.replica, self.carriers, later=self.later)
        self.pushes.listen()
        self.batch = self.batches()
        self.beats = 0

    async def lead(self, **sizes: int) -> Self:
        """Lead, with topics of so many partitions; `t` has four."""
        await super().lead()
        topics = tuple(TopicSize(name, size) for name, size in (sizes or {"t": 4}).items())
        self.replica.slip_in("", LevelRaised(2), TopicsCreated(topics))
        return self

    async def says(
        self, reader: Reader, *beats: g.ConsumerGroupHeartbeatRequest
    ) -> list[g.ConsumerGroupHeartbeatResponse]:
        """Send heartbeats on a stream, in one batch; their answers."""
        self.beats += len(beats)
        made = await self.batch.answer(reader, g.HeartbeatBatch(consumer_requests=beats))
        await self.settle()
        return list(made.consumer_responses)

    async def joins(self, reader: Reader, *members: str, **fields: Any) -> None:  # noqa: ANN401 - of the message
        """Have members join together."""
        answers = await self.says(reader, *(join(each, **fields) for each in members))
        assert [each.error_code for each in answers] == [e.ERROR_CODE_NONE] * len(members)

    def epoch(self, member_id: str) -> int:
        """The epoch that a member is at."""
        epoch: int = self.replica.state.groups["g"].body.members[member_id].epoch
        return epoch

    async def owns(
        self, reader: Reader, member_id: str, *numbers: int
    ) -> g.ConsumerGroupHeartbeatResponse:
        """A heartbeat by which a member says that it owns these partitions of `t`."""
        mine = g.ConsumerGroupTopicPartitions(topic="t", partitions=numbers)
        said = g.ConsumerGroupAssignment(topic_partitions=[mine] if numbers else [])
        (answer,) = await self.says(
            reader, beat(self.epoch(member_id), member_id, topic_partitions=said)
        )
        return answer

    async def plain(self, reader: Reader, member_id: str) -> g.ConsumerGroupHeartbeatResponse:
        """A heartbeat that says no more than that a member lives."""
        (answer,) = await self.says(reader, beat(self.epoch(member_id), member_id))
        return answer


def given(answer: g.ConsumerGroupHeartbeatResponse) -> set[int] | None:
    """The partitions that an answer assigns; None: it assigns nothing."""
    if not answer.HasField("assignment"):
        return None
    return {number for _, number in places(answer.assignment)}
