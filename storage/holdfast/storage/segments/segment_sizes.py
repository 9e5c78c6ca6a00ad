"""How large and how old each sealed segment is, for retention (S24).

A segment never changes, so each is looked at once: the bytes of its files, and from their footers
the newest log time. Knows folders and Parquet's footers; reads no record.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from holdfast.coordinator.cluster.retention import SealedPart
from holdfast.coordinator.model.ids import Position
from holdfast.storage.segments.segments import MANIFEST, Manifest, read_manifest, segments_in

_TIME: Final = "log_time_ms"


class SegmentSizes:
    """The segments of one folder. Used by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        """`folder`: of the node's segments; it need not exist yet."""
        self._folder = folder
        self._known: dict[Path, SealedPart] = {}

    def parts(self) -> list[SealedPart]:
        """Describe the segments, in the order of the log. Raises OSError, ValueError."""
        known = self._known
        self._known = {path: known.get(path) or _part(path) for path in segments_in(self._folder)}
        return list(self._known.values())


def _part(path: Path) -> SealedPart:
    manifest = read_manifest(path)
    files = [path / name for name in (*manifest.files, MANIFEST)]
    size = sum(file.stat().st_size for file in files)
    return SealedPart(Position(*manifest.last), _newest_ms(path, manifest), manifest.count, size)


def _newest_ms(path: Path, manifest: Manifest) -> int:
    """Return the log time of the last record, which is the highest one (S8)."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to load, and no start needs it

    newest = 0
    for name in manifest.files:
        footer = pq.read_metadata(path / name)
        column = footer.schema.names.index(_TIME)
        for number in range(footer.num_row_groups):
            statistics = footer.row_group(number).column(column).statistics
            newest = max(newest, statistics.max)
    return newest
