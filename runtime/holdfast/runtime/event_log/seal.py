"""Seal a segment on this node's disk for each boundary on the log (S22).

The boundary is a record on the log and the same on every node. Sealing follows in the background:
first the state is made durable up to it, then a child process writes the segment, and only when
that is synced are the records dropped from LMDB. The next start completes what a crash interrupts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.coordinator.model.events import Record, SegmentSealed
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.child import run_child
from holdfast.storage.errors import StorageError
from holdfast.storage.state.state_store import StateStore

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SealingPlace:
    """The folders between which a node seals, and the ids of the node."""

    state: Path
    segments: Path
    cluster_id: str
    node_id: str


class Sealing:
    """Seals one segment at a time. A listener of the replica; all methods belong to the loop."""

    def __init__(
        self, place: SealingPlace, store: StateStore, make_durable: Callable[[], Awaitable[None]]
    ) -> None:
        """`make_durable`: takes a snapshot of the applied state and waits for it."""
        self._place, self._store, self._make_durable = place, store, make_durable
        self._wanted = Position(0, 0)
        self._task: asyncio.Task[None] | None = None

    def start(self, sealed: Position) -> None:
        """Seal up to the last boundary on the log, if a crash left that undone."""
        if sealed > Position(0, 0):
            self._want(sealed)

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        """Seal when a boundary is applied."""
        del index
        for record in records:
            if isinstance(record.event, SegmentSealed):
                self._want(record.event.last)

    async def idle(self) -> None:
        """Wait until nothing is being sealed."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    def _want(self, last: Position) -> None:
        self._wanted = max(self._wanted, last)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        done = Position(0, 0)
        while done < self._wanted:
            done = self._wanted
            try:
                await self._seal(done)
            except (TimeoutError, StorageError, OSError):
                logger.exception(
                    "records up to %s could not be sealed; they stay in the event log, and the "
                    "next boundary or start tries again",
                    done,
                )

    async def _seal(self, last: Position) -> None:
        """Seal while no snapshot can be installed: the records sealed are the records dropped."""
        with self._store.kept() as generation:
            await self._seal_kept(last, generation)

    async def _seal_kept(self, last: Position, generation: int) -> None:
        await self._make_durable()
        place = self._place
        ended = await run_child(
            *("holdfast.storage.segments.seal", str(place.state), str(place.segments)),
            *(str(last.index), str(last.ordinal), place.cluster_id, place.node_id),
        )
        if ended.code != 0:
            raise OSError(f"the sealing process ended with {ended.code}: {ended.complaint!r}")
        await asyncio.to_thread(self._store.drop_events, last, generation=generation)
        logger.info("sealed segment %s", ended.output or "(nothing new)")
