"""Takes over a segment from a peer, in a child process.

As a program: `python -m holdfast.storage.segments.adopt`.

What arrived is read from its payloads alone and checked as `holdfast log verify` would: the digests
of its manifest, the hash chains within and on to the neighbours that are here. Then the rows that
this node lacks are written as a segment of its own, so that nothing but verified payloads is ever
taken over. Bytes of a peer may crash a reader of Parquet: then the child dies, not the node (S22).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.storage.disk.files import remove_tree
from holdfast.storage.segments.log_check import check_node
from holdfast.storage.segments.segment_reader import SegmentReader
from holdfast.storage.segments.segments import (
    Manifest,
    read_manifest,
    read_rows,
    segment_name,
    write_segment,
)

NICENESS: Final = 10
EXIT_FLAWED: Final = 3
"""What arrived cannot be trusted; any other failure is this machine's own, or a crash."""


class Gap(NamedTuple):
    """Records behind `after`, up to and including `through`, that a node should hold and lacks."""

    after: Position
    through: Position

    def __str__(self) -> str:
        """For people."""
        after, through = self
        return f"{after.index}.{after.ordinal} (not included) to {through.index}.{through.ordinal}"


class SegmentFlawed(ValueError):
    """What arrived cannot be trusted; nothing was taken over."""

    def __init__(self, segment: Path, flaw: str) -> None:
        """`flaw`: what is wrong with it."""
        super().__init__(f"{segment.name} is not taken over: {flaw}")


def adopt(incoming: Path, segments: Path, gap: Gap, cluster_id: str, node_id: str) -> str:
    """Verify `incoming` and write what of it is behind the gap's beginning; returns its name.

    To its end, though the gap may end before: nothing else says where a log that begins within a
    segment goes on from. "" if there is nothing.

    Raises SegmentFlawed with nothing written; OSError if the disk refuses.
    """
    theirs = read_manifest(incoming)
    if theirs.cluster_id != cluster_id:
        raise SegmentFlawed(incoming, f"it is of cluster {theirs.cluster_id!r}")
    flaws = check_node(theirs.node_id, [*_neighbours(incoming, segments)], []).flaws
    if flaws:
        raise SegmentFlawed(incoming, str(flaws[0]))
    rows = [row for row in read_rows(incoming) if row.position > gap.after]
    if not rows:
        return ""
    made = write_segment(segments, rows, cluster_id, node_id)
    _remove_contained(segments, made)
    return segment_name(rows[0].position, rows[-1].position)


def _remove_contained(segments: Path, made: Manifest) -> None:
    """What was sealed here out of a log that began within the segment that is now whole."""
    for path, held in SegmentReader(segments).segments():
        inside = held.first >= made.first and held.last <= made.last
        if inside and (held.first, held.last) != (made.first, made.last):
            remove_tree(path)


def _neighbours(incoming: Path, segments: Path) -> list[Path]:
    """What arrived between the segments that directly join it, if they are here."""
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
    """`INCOMING SEGMENTS AFTER THROUGH CLUSTER NODE`; prints the new segment's name.

    Positions are INDEX.ORDINAL.
    """
    incoming, segments, after, through, cluster_id, node_id = arguments
    os.nice(NICENESS)
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
