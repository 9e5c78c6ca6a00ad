"""When a segment is due: after so many records, bytes or milliseconds, as the settings say (S22).

A leading node counts alike (`runtime.background.segment_roll`), but for one thing: there the count
starts over with each leader. Here it goes on, for segments are to be as long as was asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.cluster import settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.model.state import State
    from holdfast.replay.generate.leader import Written


class Boundaries:
    """Counts what was written since the last boundary."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin anew: a boundary was set."""
        self._count = self._bytes = 0
        self._oldest_ms: int | None = None

    def wrote(self, written: Sequence[Written]) -> None:
        """Count the records of an entry."""
        if self._oldest_ms is None and written:
            self._oldest_ms = written[0].record.log_time_ms
        self._count += len(written)
        self._bytes += sum([len(each.row.content) for each in written])

    def due(self, state: State) -> bool:
        """Return whether a boundary is due behind the last entry."""
        if self._oldest_ms is None:
            return False
        bounds = settings.of_cluster(state)
        return (
            self._count >= bounds.segment_events_max
            or self._bytes >= bounds.segment_bytes_max
            or state.log_time_ms - self._oldest_ms >= bounds.segment_age_ms_max
        )
