"""Which sealed segments of a node may be read behind a position, and the rows of one of them.

A segment is read once its manifest is there, which is written last, and once all before it were
read. What cannot go on is raised as one sentence. Knows folders and files: no Spark, no output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.text import readable
from holdfast.replay.findings import Finding
from holdfast.replay.read.node_logs import NodeLog, Segment, node_log
from holdfast.replay.stream.endings import TailStopped, one_line, shown
from holdfast.storage.segments.columns import SCHEMA
from holdfast.storage.segments.file_contents import other_contents
from holdfast.storage.segments.log_check import unreadable
from holdfast.storage.segments.segment_reader import SegmentReader
from holdfast.storage.segments.segments import MANIFEST, read_manifest

_VERIFY: Final = "See what is wrong with `holdfast replay verify`, and fetch it from a peer"


def beginning(folder: Path) -> Position:
    """Return the position behind which a node's log begins."""
    return _log(folder).begins.last


def newest(folder: Path) -> Position:
    """Return the last position that is sealed."""
    log = _log(folder)
    return max((each.ends.last for each in log.sealed), default=log.begins.last)


def ready(folder: Path, start: Position) -> list[Segment]:
    """Return the segments behind a position that are whole, up to the first that is not.

    Raises TailStopped if the very next records were deleted by retention, are missing or damaged.
    """
    log = _log(folder)
    if start < log.begins.last:
        raise TailStopped(
            f"the records behind {shown(start)} up to {shown(log.begins.last)} were deleted by "
            f"retention in {folder} before they were read: give a directory or a backup that has "
            "them, or begin again with another --out, from where the log begins now"
        )
    end, why = _first_flaw(log.findings, start)
    found = [
        each
        for each in sorted(log.sealed, key=lambda each: each.ends)
        if each.ends.last > start and (not end or each.folder.name < end)
    ]
    followed, gap = _following(found, start)
    if not followed and (gap or why):
        raise TailStopped(gap or why)
    return followed


def _log(folder: Path) -> NodeLog:
    try:
        return node_log(folder)
    except unreadable() as error:
        raise TailStopped(f"{folder} cannot be read: {one_line(error)}") from error


def _first_flaw(findings: Sequence[Finding], start: Position) -> tuple[str, str]:
    """Return the name of the first segment that cannot be read, and why; "", "" if there is none.

    One that is only not whole yet has no reason: it is waited for.
    """
    flaws = list[tuple[str, str]]()
    for each in findings:
        path = Path(each.file)
        name = path.name if path.name[:1].isdigit() else path.parent.name
        last = name.rpartition("-")[2]
        if each.kind == "extra" or (last.isdecimal() and int(last) <= start.index):
            continue  # it is left alone, or was read before
        waits = each.kind == "missing" and path.name == MANIFEST
        why = f"{each.file or each.node}: {readable(each.text)}. {_VERIFY}"
        flaws.append((name, "" if waits else why))
    return min(flaws, default=("", ""))


def _following(found: Sequence[Segment], start: Position) -> tuple[list[Segment], str]:
    """Return the segments that follow on each other, by their own boundaries; and what is next."""
    followed, last = list[Segment](), start
    for segment in found:
        folder = Path(str(segment.folder))
        try:
            before = SegmentReader(folder.parent).boundary_before(folder)
        except unreadable() as error:
            return followed, _damaged(folder, error)
        if before is not None and before > last:
            return followed, (
                f"the records behind {shown(last)} up to {shown(before)} are missing before "
                f"{segment.folder}: fetch the segment from a peer, or give another node's directory"
            )
        followed.append(segment)
        last = segment.ends.last
    return followed, ""


def upto(folder: Path, start: Position, end: Position) -> list[Segment]:
    """Return the segments of one batch: from behind `start` to `end`, which one of them ends at."""
    found = [each for each in ready(folder, start) if each.ends.last <= end]
    if max((each.ends.last for each in found), default=start) != end:
        raise TailStopped(
            f"no segment in {folder} ends at {shown(end)}, and the batch up to there was not "
            "finished: give a directory or a backup that has it, or the running cluster if the "
            "batch was read from there"
        )
    return found


def rows(folder: Path, after: Position) -> Iterator[pa.RecordBatch]:
    """Yield a segment's records behind a position, in the order of the log, as they are stored.

    Its files are compared with what the manifest tells of them first.
    """
    try:
        manifest = read_manifest(folder)
        wrong = next(other_contents(folder, manifest), None)
        if wrong is not None:
            raise TailStopped(_damaged(folder, wrong))
        paths = [folder / name for name in manifest.files]
        tables = [pq.read_table(path, page_checksum_verification=True) for path in paths]
        whole = pa.concat_tables([_in_columns(each) for each in tables])
    except unreadable() as error:
        raise TailStopped(_damaged(folder, error)) from error
    if whole.num_rows != manifest.count:
        told = f"it has {whole.num_rows} records, and its manifest tells {manifest.count}"
        raise TailStopped(_damaged(folder, told))
    index, ordinal = pc.field("idx"), pc.field("ordinal")
    same = (index == after.index) & (ordinal > after.ordinal)
    fresh = whole.filter((index > after.index) | same)
    yield from fresh.sort_by([("idx", "ascending"), ("ordinal", "ascending")]).to_batches(10_000)


def _in_columns(table: pa.Table) -> pa.Table:
    """Give a table all columns of today, in their order: earlier versions had fewer."""
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.schema.names
        else pa.nulls(table.num_rows, field.type)
        for field in SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _damaged(segment: Path, why: object) -> str:
    return f"the segment {segment} is damaged: {one_line(why)}. {_VERIFY}"
