"""Expire offsets after their retention: the leader asks every group from time to time.

Log time decides what is old, not this node's clock (S8); the interval is a setting (S23). Each
group gets a command of its own, a few at a time, so that other calls are not delayed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.model.commands import ExpireOffsets

if TYPE_CHECKING:
    from holdfast.runtime.groups.actors import Actors
    from holdfast.runtime.ports import ReplicaLike

GROUPS_A_TURN: Final = 100


class OffsetRetention:
    """Expires offsets while this node leads. A listener of the replica."""

    def __init__(self, replica: ReplicaLike, actors: Actors) -> None:
        self._replica, self._actors = replica, actors
        self._task: asyncio.Task[None] | None = None

    def listen(self) -> None:
        """Subscribe to the replica."""
        self._replica.subscribe(
            on_leading=self.on_leading,
            on_not_leading=self.on_not_leading,
            on_stopped=self.on_stopped,
        )

    def on_leading(self, term: int) -> None:
        """Start the task that asks the groups."""
        del term
        self.on_not_leading()
        self._task = asyncio.ensure_future(self._run())

    def on_not_leading(self) -> None:
        """Stop the task."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def on_stopped(self, reason: str) -> None:
        """Stop the task."""
        del reason
        self.on_not_leading()

    async def _run(self) -> None:
        while True:
            interval = settings.of_cluster(self._replica.state).retention_check_interval_ms
            await asyncio.sleep(interval / 1000)
            await self._ask_all()

    async def _ask_all(self) -> None:
        for number, group_id in enumerate(self._replica.state.groups):
            self._actors.submit(ExpireOffsets(group_id, self._replica.log_time_ms()))
            if number % GROUPS_A_TURN == GROUPS_A_TURN - 1:
                await asyncio.sleep(0)
