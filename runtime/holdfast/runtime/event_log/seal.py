"""Seal a segment on this node's disk for each boundary on the log (S22).

The boundary is a record on the log and the same on every node. Sealing follows in the background,
at each node in its turn: first the state is made durable up to it, then a child process writes the
segment, and only when that is synced are the records dropped from LMDB. The next start completes
what a crash or a stop interrupts. Of boundaries that have come by then, each ends a segment of its
own, so that all nodes have the same ones: the child finds them in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final

from holdfast.coordinator.model.events import Record, SegmentSealed
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.child import run_child
from holdfast.runtime.event_log.rests import Rests
from holdfast.storage.disk.priority import idle_disk
from holdfast.storage.errors import StorageError, WriteOvertaken
from holdfast.storage.segments.seal import told
from holdfast.storage.segments.segments import format_at
from holdfast.storage.state.state_store import StateStore

logger = logging.getLogger(__name__)

TURN_SECONDS_AN_EVENT: Final = 0.000_1
"""How long a turn lasts for each record that waits: about what a node takes that has little to do.
A slower one overlaps with the next."""

AGAIN_SECONDS: Final = 60.0
"""Until what could not be sealed is tried again: the next boundary may be a day away."""


@dataclass(frozen=True, slots=True)
class SealingPlace:
    """The folders between which a node seals, and the ids of the node."""

    state: Path
    segments: Path
    cluster_id: str
    node_id: str
    turn: int = 0
    """How many nodes seal before this one, by the order of their names."""


class Sealing:
    """Runs one child at a time. A listener of the replica; all methods belong to the loop."""

    def __init__(
        self,
        place: SealingPlace,
        store: StateStore,
        make_durable: Callable[[], Awaitable[None]],
        level: Callable[[], int],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`make_durable`: takes a snapshot of the applied state and waits for it.

        `level`: returns the level in force, by which peers can read what is sealed. `pause`: waits
        for so many seconds.
        """
        self._place, self._store, self._make_durable = place, store, make_durable
        self._level = level
        self._pause = pause
        self._wanted = Position(0, 0)
        self.problem = ""
        """Why the last try failed; empty: it did not, or there was none."""
        self._task: asyncio.Task[None] | None = None
        self._ending = Event()

    def start(self, sealed: Position) -> None:
        """Seal up to the last boundary on the log, if a crash left that undone.

        Called again when a snapshot was installed: it may hold records before that boundary, and
        the record which tells the boundary is never applied here.
        """
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

    async def close(self) -> None:
        """Stop at once, wherever it is: the next start completes it."""
        self._ending.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _want(self, last: Position) -> None:
        self._wanted = max(self._wanted, last)
        if self._ending.is_set():
            return
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        done = Position(0, 0)
        while done < self._wanted:
            await self._wait_for_turn()
            done = self._wanted
            try:
                await self._seal(done)
                self.problem = ""
            except WriteOvertaken:
                logger.info("a snapshot was installed while records up to %s were sealed", done)
                done = Position(0, 0)  # its own records before the boundary are not sealed yet
            except (TimeoutError, StorageError, OSError) as error:
                self.problem = str(error)
                logger.exception(
                    "records up to %s could not be sealed; they stay in the event log, and it is "
                    "tried again in %.0f s",
                    done,
                    AGAIN_SECONDS,
                )
                await self._pause(AGAIN_SECONDS)
                done = Position(0, 0)

    async def _wait_for_turn(self) -> None:
        """Wait while other nodes seal: all at once they would cost callers more than in turn."""
        if self._place.turn:
            count = await asyncio.to_thread(self._store.event_count)
            await self._pause(self._place.turn * count * TURN_SECONDS_AN_EVENT)

    async def _seal(self, last: Position) -> None:
        """Seal and drop the same records: an install in between changes the generation.

        Of a child that failed, the segments that it had made until then count all the same.
        """
        generation = self._store.generation
        await self._make_durable()
        place = self._place
        try:
            ended = await run_child(
                *("holdfast.storage.segments.seal", str(place.state), str(place.segments)),
                *(str(last.index), str(last.ordinal), place.cluster_id, place.node_id),
                str(format_at(self._level())),
            )
        finally:
            await asyncio.to_thread(self._store.release_dead_readers)
        made, failed = told(ended.output), ended.code != 0
        for each in made:
            logger.info("sealed segment %s", each.name)
        if made or not failed:
            await asyncio.to_thread(self._drop, made[-1].last if failed else last, generation)
        if failed:
            logger.info("the sealing process said: %s", ended.complaint)
            raise OSError(f"the sealing process ended with {ended.code}: {ended.reason}")

    def _drop(self, last: Position, generation: int) -> None:
        """Drop what is sealed, in slices, until the node stops. In a thread."""
        rests = Rests()

        def go_on() -> bool:
            rests.rest()
            return not self._ending.is_set()

        with idle_disk():
            self._store.drop_events(last, generation=generation, go_on=go_on)
