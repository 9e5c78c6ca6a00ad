"""Cut the history off at a boundary: first the checkpoint, then the segments before it (S24).

As a program, in a child process: `python -P -m holdfast.storage.segments.cut`. It makes the
checkpoint, or takes over one that a peer sent; nothing else. Segments are removed by `remove_cut`,
which the node calls when the cut is on the log and this checkpoint was read and compared with it.

A crash at any point leaves either the segments or the checkpoint whole: the checkpoint appears by
one rename of a synced file that was read again, and is durable before the first segment goes. The
segments go in the order of the log, each by one rename to a name that no reader takes for one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from holdfast.coordinator.model.ids import Position
from holdfast.storage.disk.files import remove_tree, rename_durably, sync_path
from holdfast.storage.segments.checkpoint import (
    Checkpoint,
    CheckpointFlawed,
    checkpoint_name,
    checkpoints_in,
    newest_sound,
    publish_checkpoint,
    read_checkpoint,
    unfinished_in,
    write_checkpoint,
)
from holdfast.storage.segments.fold import CannotFold, RecordsMissing, fold, goes_on
from holdfast.storage.segments.segments import Row, read_manifest, read_rows, segments_in
from holdfast.storage.state.state_store import StateStore

EXIT_FLAWED: Final = 3
"""What is here, or came from a peer, cannot be trusted; any other failure is this machine's own."""
EXIT_MISSING: Final = 4
"""Records that the checkpoint is to stand for are not here: it has to come from a peer."""

_REMOVED: Final = ".cut"
_BATCH: Final = 2_000


def make_checkpoint(
    segments: Path, last: Position, digest: bytes | None, behind: Iterator[Row]
) -> Checkpoint:
    """Make the checkpoint at `last` durable, unless a sound one is there; return it.

    `digest`: what the log says that it must have; None: nothing yet, so the records `behind` it
    have to continue its chain. Raises CannotFold, CheckpointFlawed, OSError, with nothing made.
    """
    found = checkpoints_in(segments)
    there, _ = newest_sound(found, last)
    if there.last == last and digest in {None, there.digest}:
        return there
    base, _ = newest_sound([each for each in found if each[0] < last], last)
    made = fold(base, _between(segments, base.last, last), last)
    if digest is None and not goes_on(made, behind):
        raise CannotFold(
            f"the hash chain of the checkpoint at {last.index}.{last.ordinal} does not go on in "
            "the records behind it: check this node with `holdfast log verify`"
        )
    if digest not in {None, made.digest}:
        raise CannotFold(
            f"the records up to {last.index}.{last.ordinal} lead to the digest "
            f"{made.digest.hex()[:16]} here, and the log says {(digest or b'').hex()[:16]}: check "
            "this node with `holdfast log verify`"
        )
    write_checkpoint(segments, made)
    return made


def _between(segments: Path, after: Position, last: Position) -> list[Path]:
    held = ((path, read_manifest(path)) for path in segments_in(segments))
    return [path for path, m in held if Position(*m.last) > after and Position(*m.first) <= last]


def rows_behind(segments: Path, state: Path, last: Position) -> Iterator[Row]:
    """Yield the records behind a position: of the segments, then of the event log in `state/`."""
    for path in segments_in(segments):
        if Position(*read_manifest(path).last) > last:
            for row in read_rows(path):
                if row.position > last:
                    last = row.position
                    yield row
    store = StateStore(state, beside_writer=True)
    try:
        while batch := store.events((last.index, last.ordinal + 1), _BATCH):
            for event in batch:
                last = Position(event.index, event.ordinal)
                yield Row(last, event.payload)
    finally:
        store.close()


def take_over(arrived: Path, segments: Path, last: Position, digest: bytes) -> None:
    """Make a file that a peer sent the checkpoint at `last`. Raises CheckpointFlawed, OSError."""
    sync_path(arrived)
    publish_checkpoint(arrived, segments / checkpoint_name(last), digest)


def remove_cut(segments: Path, last: Position) -> int:
    """Remove the segments that end at or before `last`; return how many.

    So are older checkpoints, and what crashes have left of others up to there. Only when the
    checkpoint at `last` is there. May be called again after a crash. Raises OSError.
    """
    if not (segments / checkpoint_name(last)).exists():
        raise FileNotFoundError(
            f"{segments / checkpoint_name(last)} is missing; nothing is deleted"
        )
    gone = [p for p in segments_in(segments) if Position(*read_manifest(p).last) <= last]
    for path in gone:
        rename_durably(path, path.with_name(f".{path.name}{_REMOVED}"))
    for renamed in segments.glob(f".*{_REMOVED}"):
        remove_tree(renamed)
    older = [path for place, path in checkpoints_in(segments) if place < last]
    broken_off = [path for place, path in unfinished_in(segments) if place <= last]
    for path in older + broken_off:
        path.unlink()
    sync_path(segments)
    return len(gone)


def main(arguments: list[str]) -> int:
    """Make or take over a checkpoint as a program; prints digest and log time as JSON.

    The arguments are STATE SEGMENTS INDEX.ORDINAL DIGEST ARRIVED; "-" for a digest that is not
    known, and for a file that none has sent.
    """
    state, segments, place, digest, arrived = arguments
    index, _, ordinal = place.partition(".")
    last, folder = Position(int(index), int(ordinal)), Path(segments)
    wanted = None if digest == "-" else bytes.fromhex(digest)
    try:
        if arrived != "-" and wanted is not None:
            take_over(Path(arrived), folder, last, wanted)
            made = read_checkpoint(folder / checkpoint_name(last))
        else:
            made = make_checkpoint(folder, last, wanted, rows_behind(folder, Path(state), last))
    except RecordsMissing as error:
        return _ended(EXIT_MISSING, error)
    except (CannotFold, CheckpointFlawed) as error:
        return _ended(EXIT_FLAWED, error)
    told = {"digest": made.digest.hex(), "log_time_ms": made.state.log_time_ms}
    sys.stdout.write(json.dumps(told))
    return 0


def _ended(code: int, error: Exception) -> int:
    sys.stderr.write(f"{error}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
