"""The world of the replica's tests: a scripted engine, a diary, and a clock."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from holdfast.coordinator.model.events import (
    Cause,
    GroupCreated,
    Part,
    Proposed,
    Record,
)
from holdfast.coordinator.model.state import State
from holdfast.raft.api import (
    Applied,
    Item,
    ProposalId,
    RoleChanged,
    Status,
)
from holdfast.raft.membership import Change, Membership
from holdfast.runtime.replica.log_time import Clocks
from holdfast.runtime.replica.replica import Replica
from holdfast.runtime.replica.state_machine import AppliedEntry, StateMachine


class ScriptedEngine:
    """Holds proposals until the test says what becomes of them."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.proposed: list[tuple[ProposalId, bytes]] = []
        self.changes: list[tuple[ProposalId, Change]] = []
        self.membership = Membership.of(("n1", "n2", "n3"))
        self.tell_membership: Callable[[Membership], None]
        self.evolved_to = 0
        self.published: list[tuple[int, bytes]] = []
        self.lease = 0
        self._notify: Callable[[], None] = lambda: None
        self._numbers = iter(range(1, 1000))

    def push(self, *items: Item) -> None:
        self.items.extend(items)
        self._notify()

    def commit(self, index: int, term: int = 1, at: int = 0) -> None:
        """The proposal number `at` of those under way is committed."""
        proposal, payload = self.proposed.pop(at)
        self.push(Applied(index, term, payload, proposal))

    def propose(self, payload: bytes, term: int) -> ProposalId:
        proposal = ProposalId(term, next(self._numbers))
        self.proposed.append((proposal, payload))
        return proposal

    def change(self, change: Change, term: int) -> ProposalId:
        self.changes.append((ProposalId(term, next(self._numbers)), change))
        return self.changes[-1][0]

    def on_membership(self, tell: Callable[[Membership], None]) -> None:
        self.tell_membership = tell

    def take(self, limit: int) -> list[Item]:
        taken, self.items = self.items[:limit], self.items[limit:]
        return taken

    def on_items(self, notify: Callable[[], None]) -> None:
        self._notify = notify

    def lease_valid(self, now: float) -> int:
        return self.lease if now >= 0 else 0

    def read_barrier(self) -> int:
        return next(self._numbers)

    begin_probe = read_barrier

    def transfer(self, to: str) -> None:
        self.push(RoleChanged("follower", 1, to))

    def evolved(self, index: int) -> None:
        self.evolved_to = index

    def publish(self, index: int, digest: bytes) -> None:
        self.published.append((index, digest))

    def status(self) -> Status:
        raise NotImplementedError


class NoSnapshots:
    """Snapshots that are never due; `reload` gives what the test put there."""

    def __init__(self) -> None:
        self.next_machine = StateMachine(State())

    def note(self, outcome: AppliedEntry, size: int) -> None:
        assert size >= 0
        assert outcome is not None

    def maybe_take(self, machine: StateMachine, term: int) -> None:
        assert machine.state.applied_index >= 0
        assert term >= 0

    async def take_now(self, machine: StateMachine, term: int) -> None:
        del machine, term

    async def reload(self) -> StateMachine:
        return self.next_machine

    async def close(self, machine: StateMachine, term: int) -> None:
        del machine, term


class Diary:
    """A listener that writes everything down."""

    def __init__(self) -> None:
        self.entries: list[object] = []

    def open(self, replica: Replica) -> None:
        replica.subscribe(
            on_leading=self.on_leading,
            on_not_leading=self.on_not_leading,
            on_applied=self.on_applied,
            on_stopped=self.on_stopped,
        )

    def on_leading(self, term: int) -> None:
        self.entries.append(("leading", term))

    def on_not_leading(self) -> None:
        self.entries.append("not leading")

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        self.entries.append((index, tuple(record.group_id for record in records)))

    def on_stopped(self, reason: str) -> None:
        self.entries.append(("stopped", reason))


class World:
    """A replica that leads term 1, its engine, and its only listener."""

    def __init__(self) -> None:
        self.boot, self.wall = 0.0, 5_000.0
        self.engine, self.snapshots, self.diary = ScriptedEngine(), NoSnapshots(), Diary()
        clocks = Clocks(boot=lambda: self.boot, wall=lambda: self.wall)
        self.replica = Replica("n1", self.engine, StateMachine(State()), self.snapshots, clocks)
        self.diary.open(self.replica)
        self.replica.start()

    async def lead(self, term: int = 1) -> None:
        self.engine.push(Applied(1, term, b""), RoleChanged("leader", term, "n1"))
        await settle()


async def settle() -> None:
    """Let everything that is ready run."""
    for _ in range(10):
        await asyncio.sleep(0)


def part(group: str, term: int = 1, version: int = 0) -> Part:
    created = Proposed(GroupCreated(), Cause("A1", "JoinGroup"))
    return Part(group, term, version, (created,))


def in_loop(story: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test of a world in a loop of its own."""

    async def run() -> None:
        await story(World())

    def test() -> None:
        asyncio.run(run())

    test.__name__, test.__doc__ = story.__name__, story.__doc__
    return test


def each_part_fills_an_entry(
    story: Callable[[World], Coroutine[Any, Any, None]],
) -> Callable[[World], Coroutine[Any, Any, None]]:
    """So that several entries are under way without a quarter of a MiB in each."""

    @functools.wraps(story)
    async def run(world: World) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("holdfast.runtime.replica.group_commit.COALESCED_BYTES", 1)
            await story(world)

    return run
