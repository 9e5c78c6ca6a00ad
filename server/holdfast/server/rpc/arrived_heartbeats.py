"""Batches of heartbeats that have arrived and are not processed to their end.

A batch of thousands is processed in slices. A heartbeat that arrived before a session ends must
count (S9 a), so before a session ends the batches with heartbeats of its member are awaited. No
other batch is: else a caller that sends large batches without end would keep all sessions of the
cluster alive.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from holdfast.coordinator.model.ids import GroupId, MemberId
    from holdfast.v1.group_pb2 import ConsumerGroupHeartbeatRequest, HeartbeatRequest

    Beats = Sequence[HeartbeatRequest | ConsumerGroupHeartbeatRequest]


class _Batch:
    """One batch in process. `over` is set when it is processed or given up."""

    def __init__(self, requests: Beats) -> None:
        self.over = asyncio.Event()
        self._requests = requests
        self._members: frozenset[tuple[GroupId, MemberId]] | None = None

    def speaks_for(self, members: Iterable[tuple[GroupId, MemberId]]) -> bool:
        """Return whether it has a heartbeat of one of these members; the first call indexes it."""
        if self._members is None:
            self._members = frozenset((one.group_id, one.member_id) for one in self._requests)
        return not self._members.isdisjoint(members)


class ArrivedHeartbeats:
    """The batches that a node is processing."""

    def __init__(self) -> None:
        self._under_way: dict[_Batch, None] = {}

    @contextlib.contextmanager
    def counted(self, requests: Beats) -> Iterator[Callable[[], None]]:
        """Register a batch while the body runs, or until the body calls the yielded function."""
        batch = _Batch(requests)
        self._under_way[batch] = None

        def heard() -> None:
            self._under_way.pop(batch, None)
            batch.over.set()

        try:
            yield heard
        finally:
            heard()

    async def heard(self, members: Iterable[tuple[GroupId, MemberId]]) -> None:
        """Wait for the batches that are here now and hold heartbeats of these members.

        Batches that arrive meanwhile do not count.
        """
        wanted = frozenset(members)
        if not wanted:
            return
        for batch in tuple(self._under_way):
            if batch.over.is_set():
                continue
            if batch.speaks_for(wanted):
                await batch.over.wait()
            else:
                await asyncio.sleep(0)  # indexing a large batch took some milliseconds
