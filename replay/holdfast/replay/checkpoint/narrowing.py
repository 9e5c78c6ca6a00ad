"""Find what of some logs is new since a run that is trusted, and what has changed since.

A segment that the run has verified is not read again if a node still holds the same: its manifest
says the same, and its files have the sizes and times that they had then, or the same SHA-256. What
is not the same is a finding, for a sealed segment never changes. The logs that are returned begin
behind the run's last position. Opens no data file but to hash it, or to look for a restore.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.coordinator.model.events import RecoveryNumberRaised
from holdfast.coordinator.model.ids import Position
from holdfast.replay.checkpoint.record import Content, Held, Verified, manifest_digest, writer
from holdfast.replay.findings import IN_FULL, Finding, WrongUse, place_of, time_of
from holdfast.replay.read.file_sums import sum_of
from holdfast.replay.read.independence import foreign_copies
from holdfast.replay.read.log_batches import cluster_payloads
from holdfast.replay.read.log_rows import START, Beginning, Cut, Source
from holdfast.replay.read.node_logs import NodeLog, Segment
from holdfast.storage.codec.event_codec import decode_record
from holdfast.storage.segments.segment_reader import CLUSTER_FILE
from holdfast.storage.segments.segments import MANIFEST

_READERS: Final = 4
_FULL: Final = "; --full checks what is there now"


class Narrowed(NamedTuple):
    """What is left to check, and what is trusted."""

    logs: list[NodeLog]
    held: dict[str, dict[str, Held]]
    """The segments of each node that are not read again."""
    findings: list[Finding]
    hashed: int
    """How many files were read to hash them, since their times are others."""
    new: bool
    """Whether any node has anything that is new."""

    def trusted(self, record: Verified) -> int:
        """Return how many files are not read again."""
        each = [(name, h) for node in self.held.values() for name, h in node.items()]
        return sum(len(record.contents[name][h.content].files) for name, h in each)


def look_of(segment: Segment) -> str:
    """Tell how a segment's files look to the file system; "" if one cannot be looked at.

    Whoever sets a file's times back changes the time of that (ctime), so it takes the disk's owner
    to change a file without a trace.
    """
    try:
        told = [(Path(path).name, Path(path).lstat()) for path in segment.files]
    except OSError:
        return ""
    seen = [(name, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for name, s in told]
    return sha256(repr(seen).encode()).hexdigest()[:32]


def narrowed(logs: Sequence[NodeLog], record: Verified, state: Path) -> Narrowed:
    """Leave out what a run has verified. `state`: the folder of its checkpoint's parts.

    The logs are of the record's cluster (`refuse_other_cluster`). Raises WrongUse for those of a
    line that a restore began, and for those of a node that the run has not seen and whose segments
    are none of those that it saw.
    """
    run = _Run(record)
    for log in logs:
        if record.last >= log.begins.last:
            run.compare(log)
    if run.findings:
        _refuse_other_line(logs, record)
    run.findings += _between_nodes(logs, record.last)
    place, digest = record.last, record.digest.to_bytes(8, "big") + record.chain
    same = record.writer == writer()  # so that it would store these states with the same bytes
    begins = Beginning(place, str(state), digest, record.log_time_ms, record.verified_ms, same)
    behind = [_behind(log, begins) for log in logs]
    new = any(s.ends.last > record.last for log in behind for s in log.segments)
    return Narrowed(behind, run.held, run.findings, run.hashed, new)


def refuse_other_cluster(logs: Sequence[NodeLog], record: Verified) -> None:
    """Raise WrongUse if the logs are of another cluster than the one that was verified."""
    for log in logs:
        for segment in log.segments[:1]:
            found = segment.manifest.cluster_id
            if found != record.cluster_id:
                raise WrongUse(
                    f"the checkpoint is of the cluster {record.cluster_id!r}, and these segments "
                    f"are of {found!r}: give another folder for its checkpoint"
                )


def _behind(log: NodeLog, begins: Beginning) -> NodeLog:
    """Return what of a log lies behind a checkpoint; at least its last segment.

    A log without a segment would be taken for one that has nothing. One of which more was deleted
    begins where it did.
    """
    if log.begins.last > begins.last:
        return log
    kept = [each for each in log.segments if each.ends.last > begins.last] or log.segments[-1:]
    segments = (each._replace(after=max(each.after, begins.last)) for each in kept)
    return log._replace(segments=tuple(segments), begins=begins)


class _Run:
    """The comparison of all logs with a record."""

    def __init__(self, record: Verified) -> None:
        self._record = record
        self.held: dict[str, dict[str, Held]] = {}
        self.findings: list[Finding] = []
        self.hashed = 0

    def compare(self, log: NodeLog) -> None:
        """Compare the sealed segments of a node with what was verified."""
        noted = self._record.nodes.get(log.node, {})
        before = [each for each in log.sealed if each.ends.last <= self._record.last]
        mine = self.held.setdefault(log.node, {})
        for segment in before:
            same = self._as_noted(segment, noted.get(segment.folder.name))
            same = same or self._as_hashed(segment)
            if same is not None:
                mine[segment.folder.name] = same
            elif log.node not in self._record.nodes:
                raise WrongUse(self._unseen(log, segment))
            else:
                self.findings.append(self._changed(log, segment))
        self.findings += self._straddling(log)
        lost = sorted(noted.keys() - {each.folder.name for each in before})
        self.findings += self._gone(log, [name for name in lost if not _is_cut(name, log)])

    def _as_noted(self, segment: Segment, noted: Held | None) -> Held | None:
        """Return what was noted of a segment, if all of it looks as it did."""
        if noted is None or not noted.look or noted.look != look_of(segment):
            return None
        content = self._record.contents[segment.folder.name][noted.content]
        return noted if _told_alike(segment, content) else None

    def _as_hashed(self, segment: Segment) -> Held | None:
        """Return what a segment is that looks otherwise, if its bytes are those of some node."""
        contents = self._record.contents.get(segment.folder.name, ())
        alike = [(n, each) for n, each in enumerate(contents) if _told_alike(segment, each)]
        if not alike:
            return None
        look, sums = look_of(segment), _sums_of(segment)
        self.hashed += len(sums)
        return next((Held(n, look) for n, each in alike if each.files == sums), None)

    def _changed(self, log: NodeLog, segment: Segment) -> Finding:
        when = time_of(self._record.verified_ms)
        known = self._record.nodes[log.node].get(segment.folder.name)
        if known is None:
            text = f"the segment lies before the end of what was verified on {when}, and was not"
            return _said("extra", log, segment, f"{text} among it{_FULL}", str(segment.folder))
        content = self._record.contents[segment.folder.name][known.content]
        sums = _sums_of(segment)
        other = [name for name, told in content.files.items() if sums.get(name) != told]
        if not other:
            text = f"the manifest is not the one that was verified on {when}{_FULL}"
            file = str(segment.folder / MANIFEST)
            return _said("manifest", log, segment, text, file)
        text = f"{', '.join(other)}: not the bytes that were verified on {when}{_FULL}"
        return _said("bytes", log, segment, text, str(segment.folder / other[0]))

    def _unseen(self, log: NodeLog, segment: Segment) -> str:
        return (
            f"node {log.node} is not in the checkpoint of {time_of(self._record.verified_ms)}, and "
            f"its segment {segment.folder} is not byte for byte that of a node which is: "
            f"{IN_FULL}"
        )

    def _straddling(self, log: NodeLog) -> Iterator[Finding]:
        """Yield segments that begin before the end of what was verified, and end behind it."""
        last = self._record.last
        for segment in log.sealed:
            if segment.ends.first <= last < segment.ends.last:
                text = f"it begins at {place_of(segment.ends.first)}, and a segment that was"
                text += f" verified ended at {place_of(last)}{_FULL}"
                yield _said("manifest", log, segment, text, str(segment.folder))

    def _gone(self, log: NodeLog, lost: Sequence[str]) -> Iterator[Finding]:
        """Yield a finding if a node lacks segments that it had, and that retention has not cut."""
        if lost:
            more = f", and {len(lost) - 1} more," if lost[1:] else ""
            text = f"segment {lost[0]}{more} was verified on {time_of(self._record.verified_ms)}"
            text += " and is not there any more"
            yield Finding("missing", log.node, "", None, text)


def _between_nodes(logs: Sequence[NodeLog], last: Position) -> Iterator[Finding]:
    """Yield what manifests and checkpoints of nodes tell against each other, up to `last`.

    A run that does not read these segments looks at them here alone.
    """
    old = {str(s.folder) for log in logs for s in log.sealed if s.ends.last <= last}
    yield from (finding for finding in foreign_copies(logs) if finding.file in old)
    first: dict[Position, NodeLog] = {}
    for log in logs:
        other = first.setdefault(log.begins.last, log)
        if log.begins.last <= last and other.begins.digest != log.begins.digest:
            text = f"the checkpoint has not the digest of that of node {other.node}"
            yield Finding("checkpoint", log.node, "", log.begins.last, text)


def _is_cut(name: str, log: NodeLog) -> bool:
    """Return whether a segment is gone because the log begins behind it (S24)."""
    return log.begins.cut and int(name.rpartition("-")[2]) <= log.begins.last.index


def _told_alike(segment: Segment, content: Content) -> bool:
    return manifest_digest(segment.manifest) == content.manifest


def _sums_of(segment: Segment) -> dict[str, str]:
    with ThreadPoolExecutor(_READERS) as pool:
        sums = (each.sha256 for each in pool.map(sum_of, segment.files))
        return dict(zip(segment.manifest.files, sums, strict=True))


def _said(kind: str, log: NodeLog, segment: Segment, text: str, file: str) -> Finding:
    return Finding(kind, log.node, "", segment.ends.first, text, file)


def _refuse_other_line(logs: Sequence[NodeLog], record: Verified) -> None:
    """Raise WrongUse if the logs tell of a restore that dropped what was verified (S13)."""
    for log in logs:
        for segment in log.segments:
            for raised in _restores_in(segment):
                if raised.number > record.recovery_number and raised.kept < record.last.index:
                    raise WrongUse(
                        f"the checkpoint is of another line of this cluster: it ends at "
                        f"{place_of(record.last)}, and by the log of node {log.node} recovery "
                        f"{raised.number} kept entries up to {raised.kept} only. Verify with "
                        "--full, which reads everything and writes a new one. If nobody restored "
                        "the cluster then, the log was rewritten"
                    )


def _restores_in(segment: Segment) -> Iterator[RecoveryNumberRaised]:
    """Yield the restores that a segment tells of; nothing if it cannot be read."""
    if CLUSTER_FILE not in segment.manifest.files:
        return
    try:
        source = Source(str(segment.folder / CLUSTER_FILE), START)
        payloads = cluster_payloads(source, Cut(), RecoveryNumberRaised.__name__)
        events = [decode_record(each).event for each in payloads]
    except Exception:  # noqa: BLE001 - whoever reads it next tells what is wrong with it
        return
    yield from (event for event in events if isinstance(event, RecoveryNumberRaised))
