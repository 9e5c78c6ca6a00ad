"""Decide when a segment of old events is due: the leader sets boundaries on the log (S22, S23).

The settings say after how many records, bytes or milliseconds. Every node then seals up to the same
position (`event_log.seal`). Every node counts, so that a new leader goes on where the old one was:
in a cluster whose leader changes often there would else never be enough. A process that has just
started counts from then on, so a boundary may come late, but never twice for the same records.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.model.commands import SealSegment
from holdfast.coordinator.model.events import SegmentSealed
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.background import unsealed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.model.events import Record
    from holdfast.runtime.groups.actors import Actors
    from holdfast.runtime.ports import HistoryLike, ReplicaLike

logger = logging.getLogger(__name__)


class SegmentRoll:
    """Sets boundaries while this node leads. A listener of the replica."""

    def __init__(self, replica: ReplicaLike, actors: Actors, history: HistoryLike) -> None:
        self._replica, self._actors, self._history = replica, actors, history
        self._asked = Position(0, 0)
        self._newest: Record | None = None
        """The last record that is something to seal."""
        self._looking: asyncio.Task[None] | None = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._count = 0
        self._bytes_before = self._replica.record_bytes
        self._oldest_ms: int | None = None

    def listen(self) -> None:
        """Subscribe to the replica."""
        self._replica.subscribe(
            on_leading=self.on_leading,
            on_not_leading=self.on_not_leading,
            on_applied=self.on_applied,
        )

    def on_leading(self, term: int) -> None:
        """Look how old the rest is; a boundary submitted in an older term may have been lost."""
        self._asked = Position(0, 0)
        self._oldest_ms = None  # that of before an install, perhaps
        self._looking = asyncio.ensure_future(self._look_back(term, self._replica.state.sealed))

    def on_not_leading(self) -> None:
        """Look back no more."""
        if self._looking is not None:
            self._looking.cancel()

    async def _look_back(self, term: int, sealed: Position) -> None:
        """Find out how old the oldest record is that older leaders have left unsealed."""
        try:
            oldest = await unsealed.oldest(self._history, sealed)
        except unsealed.UNREADABLE as error:
            logger.info("the age of what is not sealed counts from now on: %s", error)
            return
        same = (self._replica.leading_term, self._replica.state.sealed) == (term, sealed)
        if oldest is not None and same:
            self._oldest_ms = oldest.log_time_ms  # what was applied since then is younger

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        """Count records, and submit a boundary behind this entry when one is due."""
        del index
        others = list(unsealed.others(records))
        if others:
            self._newest = others[-1]
        if any(isinstance(record.event, SegmentSealed) for record in records):
            self._asked = Position(0, 0)  # one that is under way comes to nothing now
            self._begin_anew()
            self._keep_what_came_meanwhile()
            return
        self._count += len(others)
        if others and self._oldest_ms is None:
            self._oldest_ms = others[0].log_time_ms
        if records and self._replica.leading_term:
            self._set_if_due(records[-1])

    def _keep_what_came_meanwhile(self) -> None:
        """Count the age from a record that was applied before the boundary was, or with it."""
        if self._newest is not None and self._newest.position > self._replica.state.sealed:
            self._oldest_ms = self._newest.log_time_ms

    def _set_if_due(self, last: Record) -> None:
        sealed = self._replica.state.sealed
        if self._asked <= sealed and self._due(last.log_time_ms):
            self._asked = last.position
            self._actors.submit(SealSegment(last.position, sealed))

    def _due(self, now_ms: int) -> bool:
        bounds = settings.of_cluster(self._replica.state)
        size = self._replica.record_bytes - self._bytes_before
        age_ms = now_ms - (now_ms if self._oldest_ms is None else self._oldest_ms)
        return (
            self._count >= bounds.segment_events_max
            or size >= bounds.segment_bytes_max
            or age_ms >= bounds.segment_age_ms_max
        )
