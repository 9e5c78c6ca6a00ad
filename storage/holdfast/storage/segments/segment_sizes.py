"""How large and how old each sealed segment is, for retention (S24).

A segment never changes, so each is looked at once: the bytes of its files, and from their footers
the newest log time. As a program, in a child process, since only Arrow reads footers and a node is
to do without it: `python -P -m holdfast.storage.segments.segment_sizes`. Knows folders and
Parquet's footers; reads no record.
"""

from __future__ import annotations

import json
import sys
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
        self._known: dict[str, SealedPart] = {}

    def unknown_after(self) -> str | None:
        """Return the name behind which segments have not been looked at; None: all have been."""
        there = [path.name for path in segments_in(self._folder)]
        self._known = {name: self._known[name] for name in there if name in self._known}
        if len(self._known) == len(there):
            return None
        first = next(at for at, name in enumerate(there) if name not in self._known)
        return there[first - 1] if first else ""

    def learn(self, told: str) -> None:
        """Take in what the program printed. Raises ValueError if it is none of it."""
        for name, (index, ordinal), *rest in json.loads(told):
            self._known[name] = SealedPart(Position(index, ordinal), *rest)

    def parts(self) -> list[SealedPart]:
        """Describe the segments that are there and known, in the order of the log."""
        known = self._known
        return [known[path.name] for path in segments_in(self._folder) if path.name in known]


def look(folder: Path, after: str) -> list[tuple[object, ...]]:
    """Describe the segments whose names come after one. Raises OSError, ValueError."""
    behind = (path for path in segments_in(folder) if path.name > after)
    return [(path.name, *_part(path)) for path in behind]


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


def main(arguments: list[str]) -> int:
    """Look at segments as a program; prints them as JSON. The arguments are SEGMENTS AFTER."""
    folder, after = arguments
    sys.stdout.write(json.dumps(look(Path(folder), after)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
