"""The directories of nodes: sealed segments, and the tail of what is not sealed yet (S22).

The first node's files are written by the writer that nodes use. What another node would write of
the same records differs in its name alone, so its files are copies, never links: a replay compares
nodes, and what is damaged in one must not be in another. Knows rows and folders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.ids import Position
from holdfast.replay.generate.world import CLUSTER_ID
from holdfast.storage.disk.files import make_directory
from holdfast.storage.segments.segment_writer import write_copy, write_segment
from holdfast.storage.segments.segments import segment_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from holdfast.replay.generate.leader import Written

SEGMENTS: Final = "segments"
TAIL: Final = "tail"


class NodeFiles:
    """Writes the same log for all nodes."""

    def __init__(self, folder: Path, nodes: int) -> None:
        """Make the folders. Raises OSError."""
        self._folder = folder
        self._nodes = [f"node-{number}" for number in range(1, nodes + 1)]
        for node in self._nodes:  # it is by this folder that a node's directory is known as one
            make_directory(folder / node / SEGMENTS)

    def seal(self, written: Sequence[Written]) -> None:
        """Write a sealed segment of each node. Raises OSError."""
        self._write(SEGMENTS, written)

    def export(self, written: Sequence[Written]) -> None:
        """Write what is not sealed, as `holdfast log export` does. Raises OSError."""
        self._write(TAIL, written)

    def _write(self, place: str, written: Sequence[Written]) -> None:
        first, *others = self._nodes
        rows, records = (each.row for each in written), (each.record for each in written)
        made = write_segment(self._folder / first / place, rows, CLUSTER_ID, first, records)
        name = segment_name(Position(*made.first), Position(*made.last))
        for node in others:
            write_copy(self._folder / first / place / name, self._folder / node / place, node)
