"""Read sealed segments page by page, in the order of the log, for a node that serves its history.

Files are sorted by group, pages by position: Arrow sorts, outside of the interpreter, and the
segment read last is kept, since the next page is probably from it. A segment also tells where the
one before it ends, so that a missing segment is noticed (S22).
"""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from threading import Lock
from typing import Any, Final

from holdfast.coordinator.model.events import ClusterFormed, SegmentSealed
from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.event_codec import append_chain, decode_record
from holdfast.storage.segments.archive_path import ArchivePath
from holdfast.storage.segments.segments import (
    Manifest,
    Row,
    bucket_file,
    bucket_of,
    naming,
    read_manifest,
    segments_in,
)

ORDINAL_MAX: Final = (1 << 32) - 2

_COLUMNS: Final = ["idx", "ordinal", "payload", "chain"]
CLUSTER_FILE: Final = bucket_file(bucket_of(""))


class SegmentReader:
    """The sealed segments in one folder. Any thread may call any method."""

    def __init__(self, folder: Path) -> None:
        """`folder`: the folder of the node's segments; it need not exist yet."""
        self._folder = folder
        self._manifests: dict[Path, Manifest] = {}
        self._boundaries: dict[Path, Position | None] = {}
        self._opened: tuple[Path, Any] | None = None
        self._lock = Lock()

    def segments(self) -> list[tuple[Path, Manifest]]:
        """List the finished segments in order. Raises SegmentUnreadable.

        FileNotFoundError: one was removed at this moment.
        """
        return [(path, self.manifest(path)) for path in segments_in(self._folder)]

    def manifest(self, segment: Path) -> Manifest:
        """Return the manifest of a segment in the folder, finished or not. Raises as `segments`."""
        if segment not in self._manifests:
            with naming(segment):
                self._manifests[segment] = read_manifest(segment)
        return self._manifests[segment]

    def boundary_before(self, segment: Path) -> Position | None:
        """Return what `boundary_before` does; it is looked up once."""
        if segment not in self._boundaries:
            self._boundaries[segment] = boundary_before(segment, self.manifest(segment))
        return self._boundaries[segment]

    def page(self, segment: Path, start: Position, limit: int) -> list[Row]:
        """Return at most `limit` rows of a segment from `start` on, in order, with chain hashes.

        Nothing but these is copied: to a segment's end there may be hundreds of pages.
        """
        table = self._sorted(segment)
        index, ordinal = table.column("idx"), table.column("ordinal")
        first = bisect_left(
            range(table.num_rows),
            start,
            key=lambda nth: Position(index[nth].as_py(), ordinal[nth].as_py()),
        )
        rows = table.slice(first, limit).to_pylist()
        return [
            Row(Position(row["idx"], row["ordinal"]), append_chain(row["payload"], row["chain"]))
            for row in rows
        ]

    def release(self) -> None:
        """Drop the segment read last, when nobody reads sealed history."""
        with self._lock:
            self._opened = None

    def _sorted(self, segment: Path) -> Any:  # noqa: ANN401 - pyarrow is published without types
        import pyarrow as pa  # noqa: PLC0415 - slow to load, and no start needs it

        with self._lock:
            if self._opened is None or self._opened[0] != segment:
                files = [segment / name for name in self._manifests[segment].files]
                tables = [_parquet(file).read(columns=_COLUMNS) for file in files]
                whole = pa.concat_tables(tables)
                order = [("idx", "ascending"), ("ordinal", "ascending")]
                self._opened = (segment, whole.sort_by(order))
            return self._opened[1]


def _parquet(path: ArchivePath) -> Any:  # noqa: ANN401 - pyarrow is published without types
    """Open a data file; a page that is not what was sealed is refused where it has a checksum."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to load, and no start needs it

    file = path if isinstance(path, Path) else path.open("rb")
    return pq.ParquetFile(file, page_checksum_verification=True)


def boundary_before(segment: ArchivePath, manifest: Manifest) -> Position | None:
    """Return the position at which the segment before this one ends; None if this is the first.

    Every boundary is itself a record on the log, right behind the records that it seals: the first
    boundary in a segment is that of its predecessor. Raises what reading a segment may raise.
    """
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to load, and no start needs it

    first = Position(*manifest.first)
    if CLUSTER_FILE not in manifest.files:
        return just_before(first)
    table = _parquet(segment / CLUSTER_FILE).read(columns=["idx", "type", "payload"])
    if ClusterFormed.__name__ in table.column("type").to_pylist():
        return None
    rows = table.filter(pc.field("type") == SegmentSealed.__name__).sort_by("idx")
    told = boundary_in(rows.slice(0, 1).column("payload").to_pylist(), first)
    return told or just_before(first)


def just_before(first: Position) -> Position:
    """Return the last position that may be before a record.

    It is for a record that neither begins the log nor follows a boundary: the log that it was
    copied from was being shortened at that moment (S22).
    """
    if first.ordinal:
        return Position(first.index, first.ordinal - 1)
    return Position(first.index - 1, ORDINAL_MAX)


def boundary_in(payloads: list[bytes], first: Position) -> Position | None:
    """Find the boundary before `first` in some records: the first boundary tells where it is.

    Returns None if nothing was sealed before `first`, so that it begins the log.
    """
    for payload in payloads:
        event = decode_record(payload).event
        if isinstance(event, SegmentSealed):
            return event.last if event.last < first else None
    return None
