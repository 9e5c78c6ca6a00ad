"""What a folder of segments holds of the log: where it begins, and what follows (S24).

A log that was cut off begins at a checkpoint. After a crash in a cut there may be segments before
it, of which the first are gone; they are history no more. Knows folders; reads no record but
boundaries.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.storage.segments.archive_path import AnyPath, ArchivePath
from holdfast.storage.segments.checkpoint import CheckpointFlawed, checkpoints_in, read_checkpoint
from holdfast.storage.segments.log_check import FROM_THE_FIRST, Flaw, LogStart, unreadable
from holdfast.storage.segments.segment_reader import boundary_before
from holdfast.storage.segments.segments import read_manifest, segments_in


class HeldLog(NamedTuple, Generic[AnyPath]):
    """Where to begin, what follows, and checkpoints that cannot be read."""

    start: LogStart
    segments: list[AnyPath]
    flaws: list[Flaw]
    checkpoint: AnyPath | None = None
    """The file in which it begins; None: it begins with the first record."""


def held_log(node: str, folder: AnyPath, without: Collection[AnyPath] = ()) -> HeldLog[AnyPath]:
    """Find the longest log in a folder: from its first record, or from the oldest checkpoint.

    A checkpoint that no segments lead to is passed over for the next one. `without`: segments and
    checkpoints that are not to be opened. Raises OSError.
    """
    segments, flaws = [each for each in segments_in(folder) if each not in without], list[Flaw]()
    starts: list[tuple[LogStart, AnyPath | None]] = [(FROM_THE_FIRST, None)]
    found = [(place, path) for place, path in checkpoints_in(folder) if path not in without]
    for place, path in found:
        try:
            starts.append((read_checkpoint(path).begin(), path))
        except CheckpointFlawed as error:
            flaws.append(Flaw(node, place, str(error)))
    if len(starts) == 1:
        return HeldLog(FROM_THE_FIRST, segments, flaws)
    fitting = (each for each in starts if _fits(each[0], segments))
    start, checkpoint = next(fitting, starts[-1])
    return HeldLog(start, _behind(start, segments), flaws, checkpoint)


def _fits(start: LogStart, segments: list[AnyPath]) -> bool:
    """Return whether there are segments behind a start, and they follow on it without a gap.

    With none behind any start, the newest is right: a crash may have left an older checkpoint, too.
    """
    try:
        behind = _behind(start, segments)
        if not behind:
            return False
        before = boundary_before(behind[0], read_manifest(behind[0]))
    except unreadable():
        return True  # whoever reads the records tells what is wrong with them
    return before is None or before <= start.last


def _behind(start: LogStart, segments: list[AnyPath]) -> list[AnyPath]:
    return [path for path in segments if _ends_behind(path, start.last)]


def _ends_behind(segment: ArchivePath, last: Position) -> bool:
    """Return whether a segment reaches further; its reader is to name one that cannot be read."""
    try:
        return Position(*read_manifest(segment).last) > last
    except unreadable():
        return True
