"""Find the logs of nodes on disk: segments and exported tails, by their manifests.

A node's log is its sealed segments (S22) and, if it was exported, a tail: the records that are
not sealed yet, in the same form, in a folder `tail` beside the segments. Manifests are read first,
so that missing parts are reported before anything large is read. A log whose beginning was cut off
begins at a checkpoint (S24). Knows folders and manifests, no Spark and no content of records.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import Finding, WrongUse
from holdfast.replay.read import archive
from holdfast.replay.read.log_rows import Beginning, Bucket, Source
from holdfast.storage.segments.archive_path import ArchivePath
from holdfast.storage.segments.held_log import HeldLog, held_log
from holdfast.storage.segments.segments import (
    BUCKETS,
    Manifest,
    bucket_file,
    segments_in,
)

SEGMENTS: Final = "segments"
TAIL: Final = "tail"
DATA: Final = "data"
"""How `holdfast cluster start` names a node's data directory, beside its configuration."""
_OF_NODES: Final = ("raft", "state")
"""What a data directory has beside its segments."""


class Range(NamedTuple):
    """Positions from `first` to `last`, both included."""

    first: Position
    last: Position

    def __str__(self) -> str:
        """Format it for people."""
        (a, b), (c, d) = self
        return f"{a}.{b} to {c}.{d}"


class Segment(NamedTuple):
    """One folder of data files."""

    folder: ArchivePath
    manifest: Manifest
    after: Position  # records up to this one are in an earlier segment, or were cut off
    sealed: bool  # false: an exported tail
    held: Range | None = None
    """What it truly holds, if that is known and the manifest says something else."""

    @property
    def ends(self) -> Range:
        """The first and the last position; those of the manifest unless they are known better."""
        return self.held or _ends(self.manifest)

    @property
    def key(self) -> str:
        """The end of its address as Spark gives it in `_metadata.file_path`."""
        return quote(self.folder.name)

    @property
    def files(self) -> list[str]:
        """The data files that the manifest names."""
        return [str(self.folder / name) for name in self.manifest.files]


class NodeLog(NamedTuple):
    """A node's segments in the order of the log, and the findings of their manifests."""

    node: str  # its id, or the folder's name where the id tells no single log
    segments: tuple[Segment, ...]
    findings: tuple[Finding, ...] = ()
    begins: Beginning = Beginning()

    @property
    def last(self) -> Position:
        """The last position that the manifests promise."""
        return max((s.ends.last for s in self.segments), default=self.begins.last)

    @property
    def node_id(self) -> str:
        """The node that wrote its newest segment: older ones may come from a backup."""
        return self.segments[-1].manifest.node_id if self.segments else self.node

    @property
    def sealed(self) -> tuple[Segment, ...]:
        """The segments without the exported tail."""
        return tuple(segment for segment in self.segments if segment.sealed)


def node_log(folder: ArchivePath) -> NodeLog:
    """Find the log of a node, by its data directory or its folder of segments.

    Segments and checkpoints that cannot be read become findings. Raises FileNotFoundError if there
    is no folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{folder} is no directory: give the data directory of a node, the folder of its "
            "segments, or the URL to which they were published"
        )
    place = folder / SEGMENTS if (folder / SEGMENTS).is_dir() else folder
    found, findings = list[Segment](), list[Finding]()
    begins = Beginning()
    if not (place != folder and _closed(place, findings)):
        seen = archive.survey(place)
        findings += seen.findings
        held = held_log(str(folder), place, seen.closed)
        begins = _beginning(held)
        findings += [Finding("checkpoint", "", "", flaw.position, flaw.text) for flaw in held.flaws]
        for path in held.segments:
            _read_segment(path, begins.last, found, findings, sealed=True)
    for tail in dict.fromkeys((place.parent / TAIL, place / TAIL)):
        if tail.is_dir() and not _closed(tail, findings):
            seen = archive.survey(tail)
            findings += seen.findings
            for path in (each for each in segments_in(tail) if each not in seen.closed):
                _read_segment(path, begins.last, found, findings, sealed=False)
    node = found[-1].manifest.node_id if found else str(folder)
    return NodeLog(node, tuple(found), tuple(f._replace(node=node) for f in findings), begins)


def _closed(folder: ArchivePath, findings: list[Finding]) -> bool:
    """Return whether a folder of a node is a link, which is not followed; says so."""
    found = archive.linked(folder)
    findings += found
    return bool(found)


def _beginning(held: HeldLog[ArchivePath]) -> Beginning:
    if held.checkpoint is None:
        return Beginning()
    start = held.start
    return Beginning(start.last, str(held.checkpoint), start.digest, start.log_time_ms)


def node_logs(folders: Iterable[ArchivePath]) -> list[NodeLog]:
    """Find the logs of several nodes; nodes with the same name get their folder's name instead.

    A segment of another cluster among a node's own becomes a finding. Raises FileNotFoundError as
    `node_log` does, WrongUse for nodes of several clusters.
    """
    paths = list(folders)
    logs = [_of_one_cluster(node_log(path)) for path in paths]
    clusters = {s.manifest.cluster_id for log in logs for s in log.segments}
    if len(clusters) > 1:
        told = ", ".join(
            f"{path}: {log.segments[0].manifest.cluster_id}"
            for path, log in zip(paths, logs, strict=True)
            if log.segments
        )
        raise WrongUse(
            f"these segments are of several clusters: {', '.join(sorted(clusters))}; give the "
            f"directories of one cluster's nodes ({told})"
        )
    if len({log.node for log in logs}) == len(logs):
        return logs
    return [_renamed(log, str(path)) for log, path in zip(logs, paths, strict=True)]


def _of_one_cluster(log: NodeLog) -> NodeLog:
    """Leave out the segments that are of another cluster than most of a node's, and say so."""
    votes = Counter(segment.manifest.cluster_id for segment in log.segments)
    if len(votes) < 2:  # noqa: PLR2004 - one cluster, or none
        return log
    right = votes.most_common(1)[0][0]
    other = [each for each in log.segments if each.manifest.cluster_id != right]
    kept = tuple(each for each in log.segments if each.manifest.cluster_id == right)
    node = kept[-1].manifest.node_id
    findings = [_foreign(each.folder, each.manifest, node, right) for each in other]
    named = tuple(each._replace(node=node) for each in (*log.findings, *findings))
    return NodeLog(node, kept, named, log.begins)


def _foreign(path: ArchivePath, manifest: Manifest, node: str, right: str) -> Finding:
    text = f"the segment is of cluster {manifest.cluster_id}, and the node of {right}"
    return Finding("foreign", node, "", Position(*manifest.first), text, str(path))


def data_within(folder: Path) -> Path | None:
    """Return the data directory of a node that lies within a folder, one or two levels down."""
    places = [folder / DATA, *sorted(folder.glob(f"*/{DATA}"))]
    return next((each for each in places if is_data(each)), None)


def is_data(folder: Path) -> bool:
    """Return whether a folder looks like the data directory of a node."""
    return any((folder / name).is_dir() for name in (SEGMENTS, *_OF_NODES))


def _renamed(log: NodeLog, node: str) -> NodeLog:
    return log._replace(node=node, findings=tuple(f._replace(node=node) for f in log.findings))


class _Held:
    """What a log holds, so that a range is looked up without looking at each segment."""

    def __init__(self, log: NodeLog) -> None:
        self._gone = log.begins.last
        ends = sorted(segment.ends for segment in log.segments)
        self._firsts = [each.first for each in ends]
        self._reach = list(accumulate((each.last for each in ends), max))
        """How far the segments reach that begin there or earlier."""

    def covers(self, wanted: Range) -> bool:
        """Return whether no range is needed: segments or the tail hold it, or it was cut off.

        Its boundaries may be others (S22), so several of its segments may hold the range. A segment
        that it lacks between them has a range of its own; a record is missed by its hash.
        """
        if wanted.last <= self._gone:
            return True
        return self._holds(wanted.first) and self._holds(wanted.last)

    def _holds(self, place: Position) -> bool:
        number = bisect_right(self._firsts, place)
        return number > 0 and place <= self._reach[number - 1]


def missing_ranges(
    logs: Sequence[NodeLog], doubtful: Collection[str] = ()
) -> dict[str, list[Range]]:
    """Find, for each node, the ranges that another node has sealed and it does not hold (S22).

    What lies before the checkpoint at which its log begins is not missing (S24). `doubtful`:
    folders of segments with which something is wrong; what they alone hold is not missed elsewhere.
    """
    sealed = sorted({s.ends for log in logs for s in log.sealed if str(s.folder) not in doubtful})
    held = {log.node: _Held(log) for log in logs}
    return {node: [each for each in sealed if not own.covers(each)] for node, own in held.items()}


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


def _read_segment(
    path: ArchivePath,
    begins: Position,
    found: list[Segment],
    findings: list[Finding],
    *,
    sealed: bool,
) -> None:
    manifest, flaws = archive.opened_manifest(path)
    findings += flaws
    if manifest is None:
        return
    gone = [name for name in manifest.files if not archive.plain(path / name)]
    if gone:
        text = f"{path} lacks {', '.join(gone)}; fetch the segment from a peer"
        place = Position(*manifest.first)
        findings.append(Finding("missing", "", "", place, text, str(path / gone[0])))
        return
    ends = [Position(*s.manifest.last) for s in found]
    after = begins if sealed else max(ends, default=begins)
    if sealed or Position(*manifest.last) > after:
        found.append(Segment(path, manifest, after, sealed))
    elif found and manifest.cluster_id != found[0].manifest.cluster_id:
        findings.append(_foreign(path, manifest, "", found[0].manifest.cluster_id))


def _ends(manifest: Manifest) -> Range:
    return Range(Position(*manifest.first), Position(*manifest.last))
