"""The event log in the directories of stopped nodes: what `holdfast log export` and `verify` do.

Reads disks and asks no node. Loaded when one of the two is run: it needs the [server] extra.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.ending import fail, print_json
from holdfast.cli.render.speaking import say, say_lines
from holdfast.runtime.event_log.offline import Unsealed, unsealed
from holdfast.storage.codec.event_codec import CodecError
from holdfast.storage.directory.check import STATE_FOLDER
from holdfast.storage.directory.data_directory import SEGMENTS_FOLDER
from holdfast.storage.directory.recovery_mark import read_mark
from holdfast.storage.errors import StorageError
from holdfast.storage.segments.held_log import held_log
from holdfast.storage.segments.log_check import NodeLog, check_node, compare
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import format_at, segment_name, segments_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FLAWS_MAX: Final = 50
"""Flaws that are shown for each node; one damaged place can have many consequences."""


def export(node_dir: Path, out: Path) -> None:
    """Write the records that are in no segment yet as a segment."""
    found = _unsealed(node_dir)
    if not found.rows:
        say("nothing to export: every record is in a sealed segment")
        return
    try:
        write_segment(
            *(out, found.rows, found.cluster_id, found.node_id),
            format_version=format_at(found.level),
        )
    except OSError as error:
        fail(f"cannot write to {out}: {error.strerror or error}")
    first, last = found.rows[0].position, found.rows[-1].position
    say(f"exported {len(found.rows)} records to {out / segment_name(first, last)}")


def verify(folders: Sequence[Path], *, as_json: bool) -> None:
    """Check the log of each directory, and compare them; ends the command if there is a flaw."""
    logs = [_checked(folder) for folder in folders]
    flaws = [flaw for each in logs for flaw in each.flaws[:FLAWS_MAX]]
    flaws += compare([each for each in logs if not each.flaws])
    if as_json:
        nodes = [
            {**_plain(each), "recovery_number": _recovery_number(folder)}
            for each, folder in zip(logs, folders, strict=True)
        ]
        print_json({"nodes": nodes, "flaws": [str(f) for f in flaws]})
    else:
        numbers = map(_recovery_number, folders)
        summaries = [_summary(*each) for each in zip(logs, folders, numbers, strict=True)]
        say_lines([*summaries, *(f"  - {flaw}" for flaw in flaws)])
    if flaws:
        fail(f"the log is NOT as it was written: {len(flaws)} flaws, listed above")
    if not any(each.hashes for each in logs):
        fail("there is no record to verify in any of these directories")


def _checked(folder: Path) -> NodeLog:
    """Check a data directory with all that it holds, or a folder of segments."""
    whole = (folder / STATE_FOLDER).is_dir()
    segments = folder / SEGMENTS_FOLDER if (folder / SEGMENTS_FOLDER).is_dir() else folder
    rest = _unsealed(folder).rows if whole else []
    try:
        tail = [] if whole else segments_in(segments.parent / "tail")
        held = held_log(str(folder), segments)
        log = check_node(str(folder), [*held.segments, *tail], rest, held.start)
        return log._replace(flaws=[*held.flaws, *log.flaws])
    except OSError as error:  # around a data directory: a folder such as lost+found
        next_step = _hint(folder) or ". Run this as a user who may read it"
        fail(f"cannot read {error.filename or folder}: {error.strerror or error}{next_step}")


def _unsealed(folder: Path) -> Unsealed:
    try:
        return unsealed(folder)
    except (StorageError, CodecError, ValueError) as error:
        fail(str(error))


def _hint(folder: Path) -> str:
    """Name the data directory if this is the folder around it."""
    for inner in sorted(folder.iterdir()):
        with suppress(OSError):  # one that may not be read is none to name
            if any((inner / name).is_dir() for name in (STATE_FOLDER, SEGMENTS_FOLDER)):
                return f"; did you mean --node-dir {inner}?"
    return ""


def _plain(each: NodeLog) -> dict[str, Any]:
    ends = [min(each.hashes), max(each.hashes)] if each.hashes else []
    places = [{"index": at.index, "ordinal": at.ordinal} for at in ends]
    return {
        "node": each.node,
        "records": len(each.hashes),
        "first": places[0] if places else None,
        "last": places[1] if places else None,
        "whole": each.whole and each.cut is None,
        "checkpoint": {"index": each.cut.index, "ordinal": each.cut.ordinal} if each.cut else None,
        "flaws": len(each.flaws),
    }


def _recovery_number(folder: Path) -> int:
    """Return the number of the restore that a data directory comes from; 0: of none."""
    try:
        return read_mark(folder).number
    except (StorageError, OSError) as error:
        fail(str(error))


def _summary(each: NodeLog, folder: Path, recovery_number: int) -> str:
    if not each.hashes:
        return f"{each.node}: no records{_hint(folder)}"
    first, last = min(each.hashes), max(each.hashes)
    kind = "the whole log" if each.whole else "not from the first record on"
    if each.whole and each.cut is not None:
        kind = f"all behind the checkpoint at {each.cut.index}.{each.cut.ordinal}"
    restored = f", recovery number {recovery_number}" if recovery_number else ""
    return (
        f"{each.node}: {len(each.hashes)} records from {first.index}.{first.ordinal} to "
        f"{last.index}.{last.ordinal} ({kind}), {len(each.flaws)} flaws{restored}"
    )
