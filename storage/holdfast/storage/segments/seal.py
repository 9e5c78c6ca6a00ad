"""Seal a segment in a child process, which its parent gives a low priority (S22).

As a program: `python -m holdfast.storage.segments.seal`.

Decoding, sorting and compressing 100,000 records takes seconds of CPU, for which the node's own
interpreter would be blocked. The child reads the event log in short read transactions, writes the
segment, and prints its manifest's path; the parent then drops the records from LMDB.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from holdfast.coordinator.model.ids import Position
from holdfast.storage.segments.segments import Row, read_manifest, segment_name, segments_in
from holdfast.storage.state.state_store import StateStore

BATCH = 5_000


def rows_through(store: StateStore, last: Position) -> Iterator[Row]:
    """Yield the records of the event log up to and including `last`, in short transactions."""
    start = (0, 0)
    while batch := store.events(start, BATCH):
        for event in batch:
            position = Position(event.index, event.ordinal)
            if position > last:
                return
            yield Row(position, event.payload)
        start = (batch[-1].index, batch[-1].ordinal + 1)


def seal(
    state: Path, segments: Path, last: Position, cluster_id: str, node_id: str, format_version: int
) -> str:
    """Seal the event log's records up to `last`; return the segment's name, "" for none.

    `format_version`: of the manifest, by the level in force. Raises OSError and StorageError; an
    unfinished segment is invisible.
    """
    # After a crash while sealed records were being dropped, some are in a segment already.
    done = max((read_manifest(each).last for each in segments_in(segments)), default=(0, 0))
    store = StateStore(state, beside_writer=True)
    try:
        rows = (row for row in rows_through(store, last) if row.position > done)
        first = next(rows, None)
        if first is None:
            return ""
        from holdfast.storage.segments.segment_writer import write_segment  # noqa: PLC0415 - loads Arrow

        made = write_segment(
            segments, chain([first], rows), cluster_id, node_id, format_version=format_version
        )
    finally:
        store.close()
    return segment_name(Position(*made.first), Position(*made.last))


def main(arguments: list[str]) -> int:
    """Seal as a program; prints the segment's name.

    The arguments are STATE SEGMENTS INDEX ORDINAL CLUSTER NODE FORMAT.
    """
    state, segments, index, ordinal, cluster_id, node_id, number = arguments
    last = Position(int(index), int(ordinal))
    name = seal(Path(state), Path(segments), last, cluster_id, node_id, int(number))
    sys.stdout.write(name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
