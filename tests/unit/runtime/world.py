"""The world of the actors' tests: one leading node, its log, and a clock that a test turns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self, cast

import pytest

from holdfast.coordinator.consumer.assignors import ASSIGNORS
from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.events import (
    Assigned,
    OffsetCommitted,
    SettingChange,
    TopicSize,
)
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.runtime.groups.actors import Actors
from holdfast.runtime.time.timers import Timers
from unit.runtime.fake_replica import FakeReplica

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.consumer.assignors import Target
    from holdfast.coordinator.model.effects import ComputeTarget
    from holdfast.coordinator.model.events import Event
    from holdfast.coordinator.model.ids import CallId
    from holdfast.coordinator.model.replies import HeartbeatReply, JoinReply, SyncReply
    from holdfast.runtime.groups.actors import Call
    from holdfast.runtime.groups.pending_calls import Answered
    from holdfast.runtime.ports import ComputesTargets

QUICK = (
    SettingChange("group.initial_rebalance_delay_ms", "0"),
    SettingChange("group.min_session_timeout_ms", "100"),
)


async def computed(asked: ComputeTarget) -> Target:
    """Compute a target in the next turn of the loop, as a child process would."""
    await asyncio.sleep(0)
    return ASSIGNORS[asked.assignor](asked.spec, asked.sizes)


class World:
    """One leading node: its actors, its log, and a clock that a test turns."""

    def __init__(self, compute: ComputesTargets = computed) -> None:
        """`compute`: computes the targets of large groups."""
        self.now_ms = 1_000
        self.replica = self._replica()
        self.timers = Timers(self.replica, self._submit, lambda: self.now_ms)
        forming = c.FormCluster("c", QUICK)
        self.actors = Actors(
            self.replica,
            self.timers,
            {"node-1": "127.0.0.1:1"},
            lambda: forming,
            compute=compute,
        )
        self.actors.listen()

    def _replica(self) -> FakeReplica:
        return FakeReplica()

    def _submit(self, command: c.DeadlineFired) -> None:
        self.actors.submit_fired(command)

    async def lead(self) -> Self:
        """Lead, with one topic `t` of four partitions."""
        self.replica.lead()
        await self.until(lambda: bool(self.replica.state.cluster_id))
        return self

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let the loop turn until something holds; a test that waits in vain fails."""
        for _ in range(10_000):
            if holds():
                return
            await asyncio.sleep(0)
        pytest.fail("it did not come about within 10,000 turns of the loop")

    async def settle(self) -> None:
        """Let everything happen that can happen without time or commits."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def at(self, now_ms: int) -> None:
        """Turn the clock, let what is due fire, and let it be judged."""
        self.now_ms = now_ms
        self.timers.wake()
        await self.settle()

    def ask(self, make: Callable[[CallId], c.Command]) -> asyncio.Task[Answered]:
        """A call that is on its way."""
        return asyncio.ensure_future(self._asked(make))

    async def _asked(self, make: Callable[[CallId], c.Command]) -> Answered:
        with self.actors.open() as call:
            return await call.ask(make(call.number))

    def offer(self, make: Callable[[CallId], c.Command]) -> Call:
        """A call that nobody waits for yet."""
        with self.actors.open() as call:
            call.submit(make(call.number))
        return call

    async def join(self, instance: str, member_id: str = "", fresh: str = "") -> JoinReply:
        """A static member's join, answered."""
        answered = await self.ask(joining(instance, member_id, fresh))
        return cast("JoinReply", answered.reply)

    async def member(self, instance: str = "i1") -> JoinReply:
        """Join alone and sync."""
        joined = await self.join(instance)
        assert joined.error is None
        synced = await self.ask(syncing(instance, joined))
        assert cast("SyncReply", synced.reply).error is None
        return joined

    async def beat(self, instance: str, joined: JoinReply) -> HeartbeatReply:
        """A heartbeat, answered."""
        answered = await self.ask(beating(instance, joined))
        return cast("HeartbeatReply", answered.reply)

    def request_id(self) -> str:
        """A UUIDv7 made at the cluster's log time (S15)."""
        digits = f"{self.replica.log_time_ms():012x}"
        return f"{digits[:8]}-{digits[8:]}-7000-8000-000000000001"

    def events(self, kind: str) -> list[Event]:
        """What the log has of a kind."""
        found = (record.event for record in self.replica.records)
        return [event for event in found if type(event).__name__ == kind]


def joining(
    instance: str, member_id: str = "", fresh: str = "", group: str = "g"
) -> Callable[[CallId], c.Command]:
    return lambda call: c.JoinGroup(
        c.Caller(call, "p", "client"),
        group,
        member_id,
        instance,
        10_000,
        10_000,
        "test",
        (Protocol("p", b"m"),),
        fresh or f"{instance}-{call}",
    )


def syncing(instance: str, joined: JoinReply) -> Callable[[CallId], c.Command]:
    given = tuple(Assigned(m.member_id, b"a") for m in joined.members)
    return lambda call: c.SyncGroup(
        c.Caller(call), "g", joined.generation, joined.member_id, instance, "test", "p", given
    )


def beating(
    instance: str, joined: JoinReply, *, release: bool = False
) -> Callable[[CallId], c.Command]:
    return lambda call: c.Heartbeat(
        c.Caller(call), "g", joined.generation, joined.member_id, instance, release
    )


def committing(group: str, offset: int, request_id: str = "") -> Callable[[CallId], c.Command]:
    digest = b"same" if request_id else b""
    return lambda call: c.CommitOffsets(
        c.Caller(call, "p", request_id=request_id, digest=digest),
        group,
        -1,
        "",
        None,
        (OffsetCommitted("t", 0, offset, -1, ""),),
    )


def removing_nobody(group: str) -> Callable[[CallId], c.Command]:
    gone = (c.LeavingMember("nobody", None),)
    return lambda call: c.LeaveGroup(c.Caller(call), group, gone)


def creating(topic: str) -> Callable[[CallId], c.Command]:
    return lambda call: c.CreateTopics(c.Caller(call), (TopicSize(topic, 1),))


def deleting(topic: str) -> Callable[[CallId], c.Command]:
    return lambda call: c.DeleteTopics(c.Caller(call), (topic,))


async def with_topic(world: World) -> None:
    await world.ask(lambda call: c.CreateTopics(c.Caller(call), (TopicSize("t", 4),)))
