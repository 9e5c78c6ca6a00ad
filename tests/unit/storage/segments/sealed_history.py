"""A busy log in sealed segments: every boundary is a record of it, as on a node.

The log goes through the coordinator's own rules, so its state is known at every boundary: what a
fold of the segments has to lead to.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from holdfast.coordinator.model.events import SegmentSealed
from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.event_codec import CHAIN_START
from holdfast.storage.codec.state_image import digest_of
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.state.rules import StateMeta
from holdfast.storage.state.state_store import EventRecord, StateStore
from spark.event_logs import EventLog, busy_log, committed

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.storage.segments.segments import Row


class History(NamedTuple):
    """A node's folders, and the log that is in them."""

    segments: Path
    state: Path
    boundaries: tuple[Position, ...]
    log: EventLog
    live: dict[Position, bytes]

    def digest_at(self, last: Position) -> bytes:
        """The digest of what was live at a boundary, when its last record had been applied."""
        return self.live[last]

    def rows_through(self, last: Position) -> list[Row]:
        return [row for row in self.log.rows if row.position <= last]

    def rows_behind(self, last: Position) -> list[Row]:
        return [row for row in self.log.rows if row.position > last]


def history(path: Path, *, node: str = "n1", segments: int = 3) -> History:
    """Write so many segments, and the records behind the last boundary to `state/`."""
    log, boundaries = busy_log(groups=2, commits=12), [Position(0, 0)]
    live: dict[Position, bytes] = {}
    for nth in range(segments):
        boundaries.append(log.records[-1].position)
        live[boundaries[-1]] = digest_of(log.state).to_bytes(8, "big") + log.heads[""]
        log.entry("", SegmentSealed(boundaries[-1]))
        for offset in range(8):
            log.entry(f"g{offset % 2}", committed(0, 100 * nth + offset), request=f"{nth}-{offset}")
    for after, last in pairwise(boundaries):
        write_segment(
            path / "segments", [row for row in log.rows if after < row.position <= last], "c", node
        )
    rest = [row for row in log.rows if row.position > boundaries[-1]]
    StateStore.create(path / "state")
    store = StateStore(path / "state", map_bytes=64 << 20)
    events = [EventRecord(*row.position, row.content) for row in rest]
    store.write_snapshot([], events, StateMeta(log.index, 1, log.now_ms, CHAIN_START))
    store.close()
    return History(path / "segments", path / "state", tuple(boundaries[1:]), log, live)
