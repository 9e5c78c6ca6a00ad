"""Seal segments in a child process, which its parent gives a low priority (S22).

As a program: `python -m holdfast.storage.segments.seal`.

Decoding, sorting and compressing 100,000 records takes seconds of CPU, for which the node's own
interpreter would be blocked. The child reads the event log in short read transactions, writes a
segment for each boundary, and prints each one's name and end as soon as it is durable; the parent
then drops the records from LMDB, also if the child ends before it has made all of them.

Nodes seal at different moments, so that one may find two boundaries where another found each by
itself. The log tells all of them, so their segments are the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.event_codec import told_boundary
from holdfast.storage.segments.checkpoint import checkpoints_in
from holdfast.storage.segments.segments import (
    Manifest,
    Row,
    SegmentUnreadable,
    naming,
    read_manifest,
    segment_name,
    segments_in,
)
from holdfast.storage.state.state_store import EventRecord, StateStore

BATCH = 5_000
_BEGINNING = Position(0, 0)


class EventLog(Protocol):
    """The part of a `StateStore` that is needed."""

    def events(self, start: tuple[int, int], limit: int) -> list[EventRecord]:
        """Return at most `limit` records of the event log from position `start` on, in order."""


def rows_through(log: EventLog, last: Position, after: Position = _BEGINNING) -> Iterator[Row]:
    """Yield the records of the event log behind `after` up to `last`, in short transactions."""
    start = (after.index, after.ordinal + 1)
    while batch := log.events(start, BATCH):
        for event in batch:
            position = Position(event.index, event.ordinal)
            if position > last:
                return
            yield Row(position, event.payload)
        start = (batch[-1].index, batch[-1].ordinal + 1)


def segments_due(log: EventLog, done: Position, last: Position) -> Iterator[Iterator[Row]]:
    """Yield the rows of each segment behind `done` up to the boundary `last`, to be read at once.

    Each boundary ends one, so that nodes which seal at different moments have the same.
    """
    for end in _boundaries(log, done, last):
        rows = rows_through(log, end, done)
        first = next(rows, None)
        if first is not None:
            yield chain([first], rows)
        done = end


def _boundaries(log: EventLog, done: Position, last: Position) -> list[Position]:
    """Return the boundaries behind `done` in order; `last` is the last one.

    Each is chosen by a state that knows the one before it (`SealSegment.behind`), so the records of
    all but the last one lie before `last`.
    """
    told = (told_boundary(row.content) for row in rows_through(log, last, done))
    between = {each for each in told if each is not None and done < each < last}
    return [*sorted(between), last]


def seal(
    state: Path, segments: Path, last: Position, cluster_id: str, node_id: str, format_version: int
) -> Iterator[Manifest]:
    """Seal the event log's records up to `last`, a segment for each boundary.

    Yields each one's manifest as soon as it is durable. `format_version`: of the manifests, by the
    level in force. Raises OSError and StorageError; an unfinished segment is invisible.
    """
    from holdfast.storage.segments.segment_writer import write_segment  # noqa: PLC0415 - loads Arrow

    # A crash while sealed records were being dropped has left some in the log.
    done = sealed_up_to(segments)
    store = StateStore(state, beside_writer=True)
    try:
        for rows in segments_due(store, done, last):
            yield write_segment(segments, rows, cluster_id, node_id, format_version=format_version)
    finally:
        store.close()


def sealed_up_to(segments: Path) -> Position:
    """Return how far a node has sealed: to the end of a segment, or of what was cut off since.

    Raises SegmentUnreadable.
    """
    ends = map(end_of, segments_in(segments))
    cut_off = (place for place, _ in checkpoints_in(segments))
    return max((*ends, *cut_off), default=_BEGINNING)


def end_of(segment: Path) -> Position:
    """Return the last position in a segment. Raises SegmentUnreadable."""
    with naming(segment):
        return Position(*read_manifest(segment).last)


class Made(NamedTuple):
    """What the program prints of a segment that it has made durable."""

    name: str
    last: Position

    def __str__(self) -> str:
        """Format it as a line of the program's output."""
        return f"{self.name} {self.last.index} {self.last.ordinal}"

    @classmethod
    def of(cls, manifest: Manifest) -> Made:
        """Say what is to be printed of a segment."""
        last = Position(*manifest.last)
        return cls(segment_name(Position(*manifest.first), last), last)


def told(output: str) -> list[Made]:
    """Read what the program has printed; the end of a line tells that it is whole."""
    lines = output.split("\n")[:-1]
    return [
        Made(name, Position(int(index), int(ordinal)))
        for name, index, ordinal in map(str.split, lines)
    ]


def main(arguments: list[str]) -> int:
    """Seal as a program; prints a line for each segment: its name, and where it ends.

    The arguments are STATE SEGMENTS INDEX ORDINAL CLUSTER NODE FORMAT.
    """
    state, segments, index, ordinal, cluster_id, node_id, number = arguments
    last = Position(int(index), int(ordinal))
    try:
        for manifest in seal(Path(state), Path(segments), last, cluster_id, node_id, int(number)):
            sys.stdout.write(f"{Made.of(manifest)}\n")
            sys.stdout.flush()  # the next segment may be this process's death
    except SegmentUnreadable as flaw:
        sys.stderr.write(f"{flaw}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
