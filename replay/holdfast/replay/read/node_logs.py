"""Find the logs of nodes on disk: segments and exported tails, by their manifests.

A node's log is its sealed segments (S22) and, if it was exported, a tail: the records that are
not sealed yet, in the same form, in a folder `tail` beside the segments. Manifests are read first,
so that missing parts are reported before anything large is read. A log whose beginning was cut off
begins at a checkpoint (S24). Knows folders and manifests, no Spark and no content of records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import Finding
from holdfast.replay.read.log_rows import Beginning, Bucket, Source
from holdfast.storage.segments.held_log import HeldLog, held_log
from holdfast.storage.segments.segments import (
    BUCKETS,
    Manifest,
    bucket_file,
    read_manifest,
    segments_in,
)

SEGMENTS: Final = "segments"
TAIL: Final = "tail"
_MANIFEST_ERRORS: Final = (OSError, ValueError, KeyError, TypeError)


class Segment(NamedTuple):
    """One folder of data files."""

    folder: Path
    manifest: Manifest
    after: Position  # records up to this one are in an earlier segment, or were cut off
    sealed: bool  # false: an exported tail

    @property
    def key(self) -> str:
        """The end of its address as Spark gives it in `_metadata.file_path`."""
        return quote(f"{self.folder.parent.name}/{self.folder.name}")

    @property
    def files(self) -> list[str]:
        """The data files that the manifest names."""
        return [str(self.folder / name) for name in self.manifest.files]


class NodeLog(NamedTuple):
    """A node's segments in the order of the log, and the findings of their manifests."""

    node: str
    segments: tuple[Segment, ...]
    findings: tuple[Finding, ...] = ()
    begins: Beginning = Beginning()

    @property
    def last(self) -> Position:
        """The last position that the manifests promise."""
        return max((Position(*s.manifest.last) for s in self.segments), default=self.begins.last)

    @property
    def sealed(self) -> tuple[Segment, ...]:
        """The segments without the exported tail."""
        return tuple(segment for segment in self.segments if segment.sealed)


class Range(NamedTuple):
    """Positions from `first` to `last`, both included."""

    first: Position
    last: Position

    def __str__(self) -> str:
        """Format it for people."""
        (a, b), (c, d) = self
        return f"{a}.{b} to {c}.{d}"


def node_log(folder: Path) -> NodeLog:
    """Find the log of a node, by its data directory or its folder of segments.

    Segments and checkpoints that cannot be read become findings. Raises FileNotFoundError if there
    is no folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{folder} is no directory: give the data directory of a node, or the folder of its "
            "segments"
        )
    place = folder / SEGMENTS if (folder / SEGMENTS).is_dir() else folder
    held = held_log(str(folder), place)
    begins = _beginning(held)
    found: list[Segment] = []
    findings = [Finding("checkpoint", "", "", flaw.position, flaw.text) for flaw in held.flaws]
    for path in held.segments:
        _read_segment(path, begins.last, found, findings, sealed=True)
    for path in [*segments_in(place.parent / TAIL), *segments_in(place / TAIL)]:
        _read_segment(path, begins.last, found, findings, sealed=False)
    node = found[0].manifest.node_id if found else str(folder)
    return NodeLog(node, tuple(found), tuple(f._replace(node=node) for f in findings), begins)


def _beginning(held: HeldLog) -> Beginning:
    if held.checkpoint is None:
        return Beginning()
    start = held.start
    return Beginning(start.last, str(held.checkpoint), start.digest, start.log_time_ms)


def node_logs(folders: Iterable[Path]) -> list[NodeLog]:
    """Find the logs of several nodes; nodes with the same name get their folder's name instead.

    Raises FileNotFoundError as `node_log` does, ValueError for nodes of several clusters.
    """
    paths = list(folders)
    logs = [node_log(path) for path in paths]
    clusters = {s.manifest.cluster_id for log in logs for s in log.segments}
    if len(clusters) > 1:
        raise ValueError(
            f"these segments are of several clusters: {', '.join(sorted(clusters))}; give the "
            "directories of one cluster's nodes"
        )
    if len({log.node for log in logs}) == len(logs):
        return logs
    return [log._replace(node=str(path)) for log, path in zip(logs, paths, strict=True)]


def readable(log: NodeLog) -> NodeLog:
    """Return the log without the segments with damaged files; those become findings.

    Reads every file whole, so it is called after a failure only.
    """
    kept, findings = [], list(log.findings)
    for segment in log.segments:
        damage = [text for path in segment.files if (text := _damage(path))]
        findings += [Finding("unreadable", log.node, "", None, text) for text in damage]
        if not damage:
            kept.append(segment)
    return NodeLog(log.node, tuple(kept), tuple(findings), log.begins)


def missing_ranges(logs: Sequence[NodeLog]) -> dict[str, list[Range]]:
    """Find, for each node, the ranges that another node has sealed and it does not hold (S22).

    What lies before the checkpoint at which its log begins is not missing (S24).
    """
    sealed = {Range(*_ends(s.manifest)) for log in logs for s in log.sealed}
    return {log.node: sorted(r for r in sealed if not _holds(log, r)) for log in logs}


def buckets_of(log: NodeLog) -> dict[str, Bucket]:
    """Return the buckets of groups that a log has, by the name of their files.

    A log that begins at a checkpoint has them all: the groups of one may be in that alone.
    """
    buckets: dict[str, list[Source]] = {bucket_file(n): [] for n in range(BUCKETS)}
    for segment in log.segments:
        for name in segment.manifest.files:
            source = Source(str(segment.folder / name), segment.after)
            buckets.setdefault(name, []).append(source)
    return {
        name: Bucket(name, tuple(sources), log.begins)
        for name, sources in buckets.items()
        if sources or log.begins.cut
    }


def sources_by_segment(log: NodeLog) -> list[list[Source]]:
    """Return the data files of each segment, in the order of the log."""
    return [[Source(path, s.after) for path in s.files] for s in log.segments if s.files]


def _damage(path: str) -> str:
    """Return why a data file cannot be read; "" if it can."""
    try:
        pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        return f"{path} is damaged: {error}; fetch the segment from a peer"
    return ""


def _read_segment(
    path: Path, begins: Position, found: list[Segment], findings: list[Finding], *, sealed: bool
) -> None:
    try:
        manifest = read_manifest(path)
    except _MANIFEST_ERRORS as error:
        text = f"the manifest of {path} cannot be read: {error}; fetch the segment from a peer"
        findings.append(Finding("unreadable", "", "", None, text))
        return
    gone = [name for name in manifest.files if not (path / name).is_file()]
    if gone:
        text = f"{path} lacks {', '.join(gone)}; fetch the segment from a peer"
        findings.append(Finding("missing", "", "", Position(*manifest.first), text))
        return
    ends = [Position(*s.manifest.last) for s in found]
    after = begins if sealed else max(ends, default=begins)
    if sealed or Position(*manifest.last) > after:
        found.append(Segment(path, manifest, after, sealed))


def _ends(manifest: Manifest) -> tuple[Position, Position]:
    return Position(*manifest.first), Position(*manifest.last)


def _holds(log: NodeLog, wanted: Range) -> bool:
    """Return whether a node needs no range: a segment or the tail covers it, or it was cut off.

    Nodes have equal boundaries (S22).
    """
    ends = (_ends(segment.manifest) for segment in log.segments)
    covered = any(first <= wanted.first and wanted.last <= last for first, last in ends)
    return covered or wanted.last <= log.begins.last
