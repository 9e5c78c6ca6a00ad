"""The load of an upgrade: commits, static members that bounce, and dynamic members beside them.

The dynamic ones have no instance id: one that joined anew would move partitions at once.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Final

from cluster.load import CREW, PARTITIONS, SESSION_MS, TOPIC, Load
from cluster.processes import poll
from harness.poll import until_async
from holdfast.client import Member

DYNAMIC: Final = "dynamic"
DYNAMIC_SIZE: Final = 3
GROUPS: Final = (CREW, DYNAMIC)
"""The groups whose partitions must not move."""


@dataclass
class MixedLoad(Load):
    """The workload, with a group of dynamic members beside the static ones."""

    _dynamic_ready: threading.Event = field(default_factory=threading.Event)

    def await_crew(self) -> None:
        """Wait until the members of both groups own their shares."""
        super().await_crew()
        poll(lambda: self._dynamic_ready.is_set() or self._failure, "the dynamic members own all")

    async def _crew(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(super()._crew())
            group.create_task(self._dynamic_members())

    async def _dynamic_members(self) -> None:
        members = [self._dynamic_member(number) for number in range(DYNAMIC_SIZE)]
        async with asyncio.TaskGroup() as group:
            for member in members:
                group.create_task(self._stay_in(member))
            group.create_task(self._note_when_shared_out(members))

    def _dynamic_member(self, number: int) -> Member:
        async def note(partitions: object) -> None:
            if not self._ending.is_set():
                self.lost.append(f"{DYNAMIC}-{number}: {partitions}")

        return Member(
            self.endpoints,
            group=DYNAMIC,
            topics=[TOPIC],
            client_id=f"{DYNAMIC}-{number}",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=500,
            credentials=self.credentials,
            on_lost=note,
        )

    async def _stay_in(self, member: Member) -> None:
        async with member:
            await until_async(self._ending.is_set, "the end", within_s=self.seconds_max)

    async def _note_when_shared_out(self, members: list[Member]) -> None:
        share = PARTITIONS // DYNAMIC_SIZE
        await self._until(lambda: all(len(member.assignment) == share for member in members))
        self._dynamic_ready.set()
