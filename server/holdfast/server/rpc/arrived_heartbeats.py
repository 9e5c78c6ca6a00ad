"""Batches of heartbeats that have arrived and are not heard to their end.

A batch of thousands is heard in slices. What has arrived counts as heard before a session ends (S9
a), so whoever ends a session waits first until the batches that speak for its member are heard. It
waits for no other batch: else a caller who sends large ones without end would stop all sessions of
the cluster from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from holdfast.coordinator.model.ids import GroupId, MemberId
    from holdfast.v1.group_pb2 import HeartbeatRequest


class _Batch:
    """One that is being heard. `over`: it is heard, or given up."""

    def __init__(self, requests: Sequence[HeartbeatRequest]) -> None:
        self.over = asyncio.Event()
        self._requests = requests
        self._members: frozenset[tuple[GroupId, MemberId]] | None = None

    def speaks_for(self, members: Iterable[tuple[GroupId, MemberId]]) -> bool:
        """Whether it holds a heartbeat of one of them; looked up once, and only if asked."""
        if self._members is None:
            self._members = frozenset((one.group_id, one.member_id) for one in self._requests)
        return not self._members.isdisjoint(members)


class ArrivedHeartbeats:
    """The batches of a node that are being heard."""

    def __init__(self) -> None:
        self._under_way: dict[_Batch, None] = {}

    @contextlib.contextmanager
    def hearing(self, requests: Sequence[HeartbeatRequest]) -> Iterator[Callable[[], None]]:
        """A batch is being heard while the body runs, or until it calls what it is given."""
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

        Those that come meanwhile have come later.
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
                await asyncio.sleep(0)  # it took some milliseconds to look through a large one
