"""A group of static members, as its members see it: join, sync, and take a member's place.

Members subscribe to one topic and get real assignments, so that messages have the size they have
in life. Timeouts are long: a row that wants heartbeats sends them itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.talk import OK, Line, Unexpected
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g

Ask = Callable[[Any], Awaitable[Any]]
"""Sends a request and returns its response."""
SESSION_MS = 1_800_000
REBALANCE_MS = 60_000
TOPIC = "work"
PROTOCOL = "range"
PARTITIONS_EACH = 10
_METADATA = g.ConsumerProtocolSubscription(topics=[TOPIC]).SerializeToString()


@dataclass(slots=True)
class Members:
    """A stable group. `ids`, `assignments`: by number of the member."""

    group_id: str
    count: int
    session_ms: int = SESSION_MS
    generation: int = -1
    ids: list[str] = field(default_factory=list)
    assignments: list[bytes] = field(default_factory=list)

    def instance(self, number: int) -> str:
        """A member's instance id."""
        return f"m-{number:05}"

    async def form(self, lines: Sequence[Line]) -> None:
        """All members join at once, and the group leader assigns. Raises Unexpected."""
        on = [lines[number % len(lines)] for number in range(self.count)]
        joined = await asyncio.gather(
            *(self.join(on[number], number) for number in range(self.count))
        )
        self.generation = joined[0].generation_id
        self.ids = [join.member_id for join in joined]
        head = next(number for number, join in enumerate(joined) if join.leader == join.member_id)
        assigned = [
            g.SyncGroupRequestAssignment(member_id=member, assignment=assignment_of(number))
            for number, member in enumerate(self.ids)
        ]
        synced = await asyncio.gather(
            *(
                self.sync(on[number], number, assigned if number == head else ())
                for number in range(self.count)
            )
        )
        self.assignments = [sync.assignment for sync in synced]
        await self._check(lines[0])

    async def _check(self, line: Line) -> None:
        """Make sure that everybody is in one generation."""
        answer = await line.admin.DescribeGroups(a.DescribeGroupsRequest(groups=[self.group_id]))
        group = answer.groups[0]
        if group.group_state != "Stable" or len(group.members) != self.count:
            raise RuntimeError(
                f"{self.group_id} is {group.group_state} with {len(group.members)} members instead "
                f"of Stable with {self.count}: not all of them were in its first generation"
            )

    async def join(self, line: Line, number: int, member_id: str = "") -> g.JoinGroupResponse:
        """Join; with an empty member id this takes the place of whoever holds the instance id."""
        return _joined(await line.group.JoinGroup(self._join(number, member_id)))

    def _join(self, number: int, member_id: str = "") -> g.JoinGroupRequest:
        return g.JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=member_id,
            group_instance_id=self.instance(number),
            protocol_type="consumer",
            protocols=[g.JoinGroupRequestProtocol(name=PROTOCOL, metadata=_METADATA)],
        )

    async def sync(
        self,
        line: Line,
        number: int,
        assignments: Sequence[g.SyncGroupRequestAssignment] = (),
    ) -> g.SyncGroupResponse:
        """Hand in the assignments, or ask for one's own."""
        return _synced(await line.group.SyncGroup(self._sync(number, assignments)))

    def _sync(
        self, number: int, assignments: Sequence[g.SyncGroupRequestAssignment] = ()
    ) -> g.SyncGroupRequest:
        return g.SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.ids[number],
            group_instance_id=self.instance(number),
            protocol_type="consumer",
            protocol_name=PROTOCOL,
            assignments=assignments,
        )

    async def replace(self, line: Line, number: int) -> None:
        """A member's process was started again: a join without a member id, and a sync."""
        self._replaced(number, await self.join(line, number))
        await self.sync(line, number)

    async def replace_on(self, ask: Ask, number: int) -> None:
        """As `replace`, by calls of another way."""
        self._replaced(number, await self.join_on(ask, number))
        await self.sync_on(ask, number)

    async def join_on(self, ask: Ask, number: int, member_id: str = "") -> g.JoinGroupResponse:
        """As `join`, by calls of another way."""
        return _joined(await ask(self._join(number, member_id)))

    async def sync_on(
        self, ask: Ask, number: int, assignments: Sequence[g.SyncGroupRequestAssignment] = ()
    ) -> g.SyncGroupResponse:
        """As `sync`, by calls of another way."""
        return _synced(await ask(self._sync(number, assignments)))

    def _replaced(self, number: int, joined: g.JoinGroupResponse) -> None:
        self.ids[number] = joined.member_id
        if joined.generation_id != self.generation:
            raise RuntimeError(f"a replacement in {self.group_id} began a rebalance")

    def heartbeat(self, number: int) -> g.HeartbeatRequest:
        """A member's sign of life."""
        return g.HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.ids[number],
            group_instance_id=self.instance(number),
        )


def _joined(answer: g.JoinGroupResponse) -> g.JoinGroupResponse:
    """Raise Unexpected unless it has joined."""
    if answer.error_code != OK:
        raise Unexpected("a join", answer.error_code, answer.holdfast.message)
    return answer


def _synced(answer: g.SyncGroupResponse) -> g.SyncGroupResponse:
    """Raise Unexpected unless it has its assignment."""
    if answer.error_code != OK:
        raise Unexpected("a sync", answer.error_code, answer.holdfast.message)
    return answer


def assignment_of(number: int) -> bytes:
    """Ten partitions for each member, in order."""
    first = number * PARTITIONS_EACH
    partitions = g.ConsumerProtocolTopicPartitions(
        topic=TOPIC, partitions=range(first, first + PARTITIONS_EACH)
    )
    return g.ConsumerProtocolAssignment(assigned_partitions=[partitions]).SerializeToString()
