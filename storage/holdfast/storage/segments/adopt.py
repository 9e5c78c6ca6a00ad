"""Take over a segment from a peer, in a child process.

As a program: `python -m holdfast.storage.segments.adopt`.

No file is opened as Parquet before its bytes are those that the peer sealed, where its manifest
tells. Then only the payloads are read, and checked as `holdfast log verify` does: against the
manifest's digests, and by the hash chains within the segment and to its neighbours here. Then the
rows that this node lacks are written as a segment of its own, so that only verified payloads are
taken over. A peer's bytes may crash a reader of Parquet: then the child dies, not the node (S22).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.storage.disk.files import remove_tree
from holdfast.storage.segments.file_contents import other_contents
from holdfast.storage.segments.log_check import check_node
from holdfast.storage.segments.segment_reader import SegmentReader
from holdfast.storage.segments.segments import Manifest, read_manifest, read_rows, segment_name

EXIT_FLAWED: Final = 3
"""The segment cannot be trusted; any other failure is this machine's own, or a crash."""


class Gap(NamedTuple):
    """Records behind `after`, up to and including `through`, that a node should hold and lacks."""

    after: Position
    through: Position

    def __str__(self) -> str:
        """Format it for people."""
        after, through = self
        return f"{after.index}.{after.ordinal} (not included) to {through.index}.{through.ordinal}"


class SegmentFlawed(ValueError):
    """The segment cannot be trusted; nothing was taken over."""

    def __init__(self, segment: Path, flaw: str) -> None:
        """`flaw`: what is wrong with it."""
        super().__init__(f"{segment.name} is not taken over: {flaw}")


def adopt(incoming: Path, segments: Path, gap: Gap, cluster_id: str, node_id: str) -> str:
    """Verify `incoming`, and write its rows after `gap.after` as a segment; return its name.

    It is written in the format that it came in, which every node of the cluster can read. All rows
    to its end are written, even behind the gap: a log that begins within a segment has no
    other record of where that segment ends. Returns "" if there are no rows.

    Raises SegmentFlawed with nothing written; OSError if the disk refuses.
    """
    theirs = read_manifest(incoming)
    if theirs.cluster_id != cluster_id:
        raise SegmentFlawed(incoming, f"it is of cluster {theirs.cluster_id!r}")
    if other := next(other_contents(incoming, theirs), None):
        raise SegmentFlawed(incoming, other)
    flaws = check_node(theirs.node_id, [*_neighbours(incoming, segments)], []).flaws
    if flaws:
        raise SegmentFlawed(incoming, str(flaws[0]))
    rows = [row for row in read_rows(incoming) if row.position > gap.after]
    if not rows:
        return ""
    from holdfast.storage.segments.segment_writer import write_segment  # noqa: PLC0415 - loads Arrow

    made = write_segment(segments, rows, cluster_id, node_id, format_version=theirs.format_version)
    _remove_contained(segments, made)
    return segment_name(rows[0].position, rows[-1].position)


def _remove_contained(segments: Path, made: Manifest) -> None:
    """Remove segments within the new one: sealed here while the log began within it."""
    for path, held in SegmentReader(segments).segments():
        inside = held.first >= made.first and held.last <= made.last
        if inside and (held.first, held.last) != (made.first, made.last):
            remove_tree(path)


def _neighbours(incoming: Path, segments: Path) -> list[Path]:
    """Return the incoming segment with the segments directly before and after it, if here."""
    reader, arrived = SegmentReader(segments), SegmentReader(incoming.parent)
    manifest = arrived.manifest(incoming)
    first, last = Position(*manifest.first), Position(*manifest.last)
    begins = arrived.boundary_before(incoming)
    held = reader.segments()
    before = [path for path, m in held if Position(*m.last) == begins]
    behind = [
        path
        for path, m in held
        if Position(*m.first) > first and reader.boundary_before(path) == last
    ]
    return [*before[-1:], incoming, *behind[:1]]


def main(arguments: list[str]) -> int:
    """Take over a segment as a program; prints the new segment's name.

    The arguments are INCOMING SEGMENTS AFTER THROUGH CLUSTER NODE; positions are INDEX.ORDINAL.
    """
    incoming, segments, after, through, cluster_id, node_id = arguments
    gap = Gap(_position(after), _position(through))
    try:
        name = adopt(Path(incoming), Path(segments), gap, cluster_id, node_id)
    except ValueError as flaw:
        sys.stderr.write(f"{flaw}\n")
        return EXIT_FLAWED
    sys.stdout.write(name)
    return 0


def _position(text: str) -> Position:
    index, _, ordinal = text.partition(".")
    return Position(int(index), int(ordinal))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
