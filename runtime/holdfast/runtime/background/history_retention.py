"""Have old history cut off: the leader looks from time to time what is due (S24, S23).

Settings say how old and how large the history may become. The leader makes a checkpoint first and
then proposes the cut with its digest; whether it is allowed is decided on the log. A history that
cannot be folded stays. Knows no files.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from holdfast.coordinator.cluster import retention, settings
from holdfast.coordinator.model.events import SettingsChanged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.cluster.retention import SealedPart
    from holdfast.coordinator.model.commands import CutHistory
    from holdfast.coordinator.model.events import Record
    from holdfast.coordinator.model.ids import Position
    from holdfast.runtime.groups.actors import Actors
    from holdfast.runtime.ports import ReplicaLike

logger = logging.getLogger(__name__)


class Cuts(Protocol):
    """The part of `Cutting` that is needed."""

    async def sealed(self) -> list[SealedPart]:
        """Describe the segments here, in the order of the log."""

    async def prepare(self, last: Position) -> CutHistory:
        """Make a checkpoint at a position."""


class HistoryRetention:
    """Has history cut off while this node leads. A listener of the replica."""

    def __init__(self, replica: ReplicaLike, actors: Actors, cuts: Cuts) -> None:
        self._replica, self._actors, self._cuts = replica, actors, cuts
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self.problem = ""
        """Why this leader could propose no cut when one was due last; empty: it could, or does not
        lead."""

    def listen(self) -> None:
        """Subscribe to the replica."""
        self._replica.subscribe(
            on_leading=self.on_leading,
            on_not_leading=self.on_not_leading,
            on_applied=self.on_applied,
            on_stopped=self.on_stopped,
        )

    def on_leading(self, term: int) -> None:
        """Start the task that looks."""
        del term
        self.on_not_leading()
        self._task = asyncio.ensure_future(self._run())

    def on_not_leading(self) -> None:
        """Stop the task."""
        self.problem = ""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        """Begin to wait anew when settings change: the time between two looks may be another."""
        del index
        if any(isinstance(record.event, SettingsChanged) for record in records):
            self._changed.set()

    def on_stopped(self, reason: str) -> None:
        """Stop the task."""
        del reason
        self.on_not_leading()

    async def _run(self) -> None:
        while True:
            await self._rest()
            try:
                await self.look()
                self.problem = ""
            except Exception as error:
                self.problem = f"the history cannot be cut off: {error}"
                logger.exception(
                    "retention is due, and the history cannot be cut off: nothing was deleted. "
                    "Check this node with `holdfast log verify`, or hand the leadership to another"
                )

    async def _rest(self) -> None:
        """Wait as long as the settings say, counted from their last change."""
        while True:
            self._changed.clear()
            interval = settings.of_cluster(self._replica.state).history_check_interval_ms
            try:
                await asyncio.wait_for(self._changed.wait(), interval / 1000)
            except TimeoutError:
                return

    async def look(self) -> None:
        """Propose a cut, if one is due. Raises OSError, ValueError, TimeoutError; all is kept."""
        if retention.off(self._replica.state):
            return
        parts = await self._cuts.sealed()
        last = retention.due(self._replica.state, parts, self._replica.log_time_ms())
        if last is not None:
            self._actors.submit(await self._cuts.prepare(last))
