"""Three nodes that share one log in memory: what members see when the one that leads dies.

Each node has the real actors and timers on a replica of its own, which applies with the core's
`apply_entry`; only agreement is modelled: what is proposed is committed on all, or dies with its
leader. The clock is turned by the test.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from holdfast.coordinator.classic.state import ClassicGroup
from holdfast.coordinator.kernel.apply import apply_entry
from holdfast.coordinator.kernel.group_types import TYPES
from holdfast.coordinator.model.commands import (
    AlterSettings,
    Caller,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
)
from holdfast.coordinator.model.events import Assigned, LogEntry, Part, SettingChange
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.projections.rebalances import followed
from unit.runtime.fake_replica import FakeReplica
from unit.runtime.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.model.commands import Command
    from holdfast.coordinator.model.events import Record
    from holdfast.coordinator.model.ids import CallId, MemberId
    from holdfast.coordinator.model.replies import HeartbeatReply, JoinReply, LeaveReply, SyncReply
    from holdfast.runtime.groups.pending_calls import Answered

SESSION_MS = 10_000
REBALANCE_MS = 15_000


class SharedReplica(FakeReplica):
    """A node's replica: what it commits, the others apply as well."""

    def __init__(self, trio: Trio) -> None:
        super().__init__()
        self.trio = trio

    def _apply(self, part: Part) -> bool:
        self._now_ms += 1
        entry = LogEntry(self._now_ms, self._now_ms, (part,))
        applied = [each.follow(entry, self.leading_term) for each in self.trio.replicas]
        return all(applied)

    def follow(self, entry: LogEntry, term: int) -> bool:
        """Apply a committed entry."""
        index = self.state.applied_index + 1
        done = apply_entry(self.state, index, term, entry)
        self.state, self._now_ms = done.state, entry.log_time_ms
        self.histories = followed(self.histories, TYPES, done.steps)
        self.records.extend(done.records)
        if done.records:
            self.callbacks.applied(done.records, index)
        return not done.skipped


class Node(World):
    """One node of the three."""

    def __init__(self, trio: Trio) -> None:
        self.trio = trio
        super().__init__()

    def _replica(self) -> FakeReplica:
        return SharedReplica(self.trio)


class Trio:
    """The cluster, and the calls of its members."""

    def __init__(self) -> None:
        self.term = 0
        self.nodes: list[Node] = []
        self.nodes += [Node(self) for _ in range(3)]
        self.now_ms = self.nodes[0].now_ms
        self._open: set[asyncio.Task[Answered]] = set()

    @property
    def replicas(self) -> list[SharedReplica]:
        return [cast("SharedReplica", node.replica) for node in self.nodes]

    @property
    def leader(self) -> Node:
        return next(node for node in self.nodes if node.replica.leading_term)

    @property
    def group(self) -> ClassicGroup:
        return self.leader.replica.state.groups["g"]

    @property
    def records(self) -> list[Record]:
        """The log of the group."""
        return [each for each in self.leader.replica.records if each.group_id == "g"]

    def count(self, kind: str) -> int:
        """How often something has happened."""
        return sum(type(record.event).__name__ == kind for record in self.records)

    async def elect(self) -> None:
        """The first node that is alive leads, in a new term."""
        self.term += 1
        node = self.nodes[0]
        node.replica.lead(self.term)
        for other in self.nodes[1:]:  # the no-op is an entry of everybody's log
            state = other.replica.state
            other.replica.state = state._replace(applied_index=state.applied_index + 1)
        await node.until(lambda: bool(node.replica.state.cluster_id))

    async def fail_over(self) -> None:
        """Kill -9 of the leader: its callers hear nothing, what it had not committed is gone."""
        dead = self.leader
        dead.timers.stop()
        self.nodes.remove(dead)
        self.close()
        await self.elect()
        self.nodes.append(self._rebuilt())

    def _rebuilt(self) -> Node:
        """The dead node is back, with the log of the others."""
        node = Node(self)
        node.now_ms = self.now_ms
        node.replica.state = self.leader.replica.state
        node.replica.histories = self.leader.replica.histories
        node.replica.records = list(self.leader.replica.records)
        return node

    def close(self) -> None:
        """Whoever still waits for the old leader gives up."""
        for call in self._open:
            call.cancel()
        self._open.clear()

    async def advance(self, by_ms: int) -> None:
        """Turn everybody's clock; what is due fires at its moment, to the tenth of a second."""
        for _ in range(by_ms // 100):
            self.now_ms += 100
            for node in self.nodes:
                await node.at(self.now_ms)

    # --- calls ---

    def ask(self, make: Callable[[CallId], Command]) -> asyncio.Task[Answered]:
        call = self.leader.ask(make)
        self._open.add(call)
        call.add_done_callback(self._open.discard)
        return call

    async def sent(self, make: Callable[[CallId], Command]) -> asyncio.Task[Answered]:
        """A call that has reached its group; it may be parked there."""
        call = self.ask(make)
        await self.leader.settle()
        return call


def joining(
    instance: str | None, member_id: MemberId = "", request_id: str = "", protocols: str = "p"
) -> Callable[[CallId], Command]:
    fresh = f"{instance or 'd'}-{request_id or 'x'}"
    return lambda call: JoinGroup(
        Caller(call, "p", "client", request_id=request_id),
        "g",
        member_id,
        instance,
        SESSION_MS,
        REBALANCE_MS,
        "test",
        tuple(Protocol(name, b"m") for name in protocols),
        f"{fresh}-{call}",
    )


def syncing(joined: JoinReply) -> Callable[[CallId], Command]:
    given = tuple(Assigned(m.member_id, m.member_id.encode()) for m in joined.members)
    return lambda call: SyncGroup(
        Caller(call), "g", joined.generation, joined.member_id, None, "test", "p", given
    )


def beating(joined: JoinReply) -> Callable[[CallId], Command]:
    return lambda call: Heartbeat(
        Caller(call), "g", joined.generation, joined.member_id, None, release=False
    )


def leaving(member_id: MemberId) -> Callable[[CallId], Command]:
    return lambda call: LeaveGroup(Caller(call), "g", (LeavingMember(member_id, None),))


def limiting(most: int) -> Callable[[CallId], Command]:
    changes = (SettingChange("group.max_size", str(most)),)
    return lambda call: AlterSettings(Caller(call), "", changes)


async def joined(call: asyncio.Task[Answered]) -> JoinReply:
    return cast("JoinReply", (await call).reply)


async def synced(call: asyncio.Task[Answered]) -> SyncReply:
    return cast("SyncReply", (await call).reply)


async def heard(call: asyncio.Task[Answered]) -> HeartbeatReply:
    return cast("HeartbeatReply", (await call).reply)


async def left(call: asyncio.Task[Answered]) -> LeaveReply:
    return cast("LeaveReply", (await call).reply)
