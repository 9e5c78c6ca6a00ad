"""Finds the logs of nodes on disk and gives them to Spark as one table each.

A node's log is its sealed segments (S22) and, if somebody exported it, a tail: the records that are
not sealed yet, in the same form, in a folder `tail` beside the segments. Manifests are read first,
so that what is missing is named before anything large is read. Knows folders and manifests; the
content of records is for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from holdfast.coordinator.ids import Position
from holdfast.replay.findings import Finding
from holdfast.replay.lines import START, Source
from holdfast.storage.segments import BUCKETS, Manifest, read_manifest, segments_in

SEGMENTS: Final = "segments"
TAIL: Final = "tail"
_MANIFEST_ERRORS: Final = (OSError, ValueError, KeyError, TypeError)


class Segment(NamedTuple):
    """One folder. `after`: its records up to there stand in an earlier segment as well."""

    folder: Path
    manifest: Manifest
    after: Position
    sealed: bool

    @property
    def key(self) -> str:
        """The end of its address as Spark gives it in `_metadata.file_path`."""
        return quote(f"{self.folder.parent.name}/{self.folder.name}")

    @property
    def files(self) -> list[str]:
        """The data files that the manifest names."""
        return [str(self.folder / name) for name in self.manifest.files]


class NodeLog(NamedTuple):
    """All that one node has, in the order of the log, and what is wrong with it at first sight."""

    node: str
    segments: tuple[Segment, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def last(self) -> Position:
        """The last position that the manifests promise."""
        return max((Position(*s.manifest.last) for s in self.segments), default=START)

    @property
    def sealed(self) -> tuple[Segment, ...]:
        """The segments without the exported tail."""
        return tuple(segment for segment in self.segments if segment.sealed)


class Range(NamedTuple):
    """Positions from `first` to `last`, both included."""

    first: Position
    last: Position

    def __str__(self) -> str:
        """As people write it."""
        (a, b), (c, d) = self
        return f"{a}.{b} to {c}.{d}"


def node_log(folder: Path) -> NodeLog:
    """The log of a node, by its data directory or its folder of segments.

    Segments that cannot be read become findings. Raises FileNotFoundError if there is no folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{folder} is no directory: give the data directory of a node, or the folder of its "
            "segments"
        )
    place = folder / SEGMENTS if (folder / SEGMENTS).is_dir() else folder
    found: list[Segment] = []
    findings: list[Finding] = []
    for parent, sealed in ((place, True), (place.parent / TAIL, False), (place / TAIL, False)):
        for path in segments_in(parent):
            _read_segment(path, found, findings, sealed=sealed)
    node = found[0].manifest.node_id if found else str(folder)
    return NodeLog(node, tuple(found), tuple(f._replace(node=node) for f in findings))


def node_logs(folders: Iterable[Path]) -> list[NodeLog]:
    """The logs of several nodes; nodes of the same name get their folder's name instead.

    Raises FileNotFoundError as `node_log` does, ValueError if they are of several clusters.
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
    """The log without the segments whose files are not what was written; those become findings.

    Reads every file whole, so it is for when something has failed.
    """
    kept, findings = [], list(log.findings)
    for segment in log.segments:
        damage = [text for path in segment.files if (text := _damage(path))]
        findings += [Finding("unreadable", log.node, "", None, text) for text in damage]
        if not damage:
            kept.append(segment)
    return NodeLog(log.node, tuple(kept), tuple(findings))


def missing_ranges(logs: Sequence[NodeLog]) -> dict[str, list[Range]]:
    """Per node: the ranges that another node has sealed and this one holds nowhere (S22)."""
    sealed = {Range(*_ends(s.manifest)) for log in logs for s in log.sealed}
    return {log.node: sorted(r for r in sealed if not _holds(log, r)) for log in logs}


def rows(spark: SparkSession, log: NodeLog) -> DataFrame:
    """Every record of a node once, as the columns of `storage.segments.SCHEMA`.

    Raises ValueError for a log without a segment.
    """
    frames = [_frame(spark, segments).where(_after(after)) for after, segments in _by_after(log)]
    return reduce(lambda one, two: one.unionByName(two), frames)


def stored_rows(spark: SparkSession, log: NodeLog) -> DataFrame:
    """Every record as often as it is stored, with `segment` (a `Segment.key`) and `fresh`.

    `fresh` is false for what an exported tail repeats of sealed segments.
    """
    segment = f.regexp_extract("_metadata.file_path", r"([^/]+/[^/]+)/[^/]+$", 1)
    frames = [
        _frame(spark, segments).withColumn("segment", segment).withColumn("fresh", _after(after))
        for after, segments in _by_after(log)
    ]
    return reduce(lambda one, two: one.unionByName(two), frames)


def up_to(last: Position) -> Column:
    """Whether a row stands at `last` or before it."""
    index, ordinal = last
    return (f.col("idx") < index) | ((f.col("idx") == index) & (f.col("ordinal") <= ordinal))


def within(place: Range) -> Column:
    """Whether a row stands in a range."""
    index, ordinal = place.first
    return up_to(place.last) & ~up_to(Position(index, ordinal - 1))


def sources_by_bucket(log: NodeLog) -> dict[str, list[Source]]:
    """The data files of each bucket of groups, in the order of the log."""
    buckets: dict[str, list[Source]] = {f"bucket-{n:02d}.parquet": [] for n in range(BUCKETS)}
    for segment in log.segments:
        for name in segment.manifest.files:
            source = Source(str(segment.folder / name), segment.after)
            buckets.setdefault(name, []).append(source)
    return {name: sources for name, sources in buckets.items() if sources}


def sources_by_segment(log: NodeLog) -> list[list[Source]]:
    """The data files of each segment, in the order of the log."""
    return [[Source(path, s.after) for path in s.files] for s in log.segments if s.files]


def _damage(path: str) -> str:
    """Why a data file cannot be read; "" if it can."""
    try:
        pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        return f"{path} is damaged: {error}; fetch the segment from a peer"
    return ""


def _read_segment(
    path: Path, found: list[Segment], findings: list[Finding], *, sealed: bool
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
    after = START if sealed else max(ends, default=START)
    if sealed or Position(*manifest.last) > after:
        found.append(Segment(path, manifest, after, sealed))


def _by_after(log: NodeLog) -> list[tuple[Position, list[Segment]]]:
    if not log.segments:
        raise ValueError(f"node {log.node} has no segment")
    groups: dict[Position, list[Segment]] = {}
    for segment in log.segments:
        groups.setdefault(segment.after, []).append(segment)
    return sorted(groups.items())


def _frame(spark: SparkSession, segments: list[Segment]) -> DataFrame:
    return spark.read.schema(SQL_SCHEMA).parquet(*[path for s in segments for path in s.files])


def _after(place: Position) -> Column:
    return ~up_to(place)


def _ends(manifest: Manifest) -> tuple[Position, Position]:
    return Position(*manifest.first), Position(*manifest.last)


def _holds(log: NodeLog, wanted: Range) -> bool:
    """Whether one segment, or the tail, covers a range. Boundaries are equal on all nodes (S22)."""
    ends = (_ends(segment.manifest) for segment in log.segments)
    return any(first <= wanted.first and wanted.last <= last for first, last in ends)


SQL_SCHEMA: Final = (
    "idx bigint, ordinal int, grp string, grp_seq bigint, log_time_ms bigint, wall_time_ms bigint, "
    "type string, rule string, command string, principal string, request_id string, "
    "generation int, member_id string, old_member_id string, instance_id string, "
    "members array<string>, removed array<string>, served array<string>, "
    "grants array<struct<member_id: string, assignment: binary>>, "
    "offsets array<struct<topic: string, partition: int, offset: bigint>>, "
    "reason string, payload binary, chain binary"
)
"""`storage.segments.SCHEMA` in Spark's words, so that no file is opened to infer it."""
