"""One verification with a checkpoint: what it need not read, and what it leaves when all is well.

A run begins where the last one ended, unless it is to believe nothing (`full`); then all is read,
and the chain of the log is compared with what the last run knew. It leaves a checkpoint only if
nothing was found. Knows logs and where a fold stood, no Spark.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.replay.checkpoint.folder import Folder
from holdfast.replay.checkpoint.narrowing import (
    Narrowed,
    look_of,
    narrowed,
    refuse_other_cluster,
)
from holdfast.replay.checkpoint.parts import Stand, Stood
from holdfast.replay.checkpoint.record import Content, Held, Verified, manifest_digest, writer
from holdfast.replay.findings import CannotCheck, Check, Finding, Report, Trusted, place_of, time_of
from holdfast.replay.read.log_rows import ResultRow, part_name
from holdfast.replay.read.node_logs import NodeLog, Segment

CHECK: Final = "files verified before"


class Outcome(NamedTuple):
    """What a comparison with the last run came to."""

    findings: list[Finding]
    notes: list[str]


class CheckpointRun:
    """One run with a checkpoint; the folder is held as long as it lasts."""

    def __init__(self, folder: Folder, logs: Sequence[NodeLog], *, full: bool) -> None:
        """Read what the last run left, and look at all files before any of them is read.

        Raises WrongUse for a checkpoint that is not of these logs, and CannotCheck for one that is
        damaged, unless nothing of it is to be believed.
        """
        self._folder, self._full = folder, full
        self.logs, self.notes = list(logs), list[str]()
        self._looks = {(log.node, s.folder.name): look_of(s) for log in logs for s in log.sealed}
        self._before = self._read()
        self._narrowed: Narrowed | None = None
        if self._before is not None:
            refuse_other_cluster(logs, self._before)
        if self._before is not None and not full:
            self._narrow(self._before)

    def _read(self) -> Verified | None:
        try:
            return self._folder.read()
        except CannotCheck as error:
            if not self._full:
                raise
            self.notes.append(f"{error}. It is replaced, and was compared with nothing")
            return None

    def _narrow(self, before: Verified) -> None:
        found = narrowed(self.logs, before, self._folder.state_of(before))
        if any(log.begins.verified_ms for log in found.logs):
            self.logs, self._narrowed = found.logs, found
            missing = sorted(before.nodes.keys() - {log.node for log in found.logs})
            if missing:
                self.notes.append(
                    f"nodes of the checkpoint that were not given: {', '.join(missing)}"
                )

    @property
    def trusted(self) -> Trusted | None:
        """What is not read again."""
        before, found = self._before, self._narrowed
        if before is None or found is None:
            return None
        times = [
            before.contents[name][held.content].read_ms
            for node in found.held.values()
            for name, held in node.items()
        ]
        oldest = min(times, default=before.verified_ms)
        files = found.trusted(before)
        return Trusted(before.last, before.verified_ms, files, before.records, oldest)

    @property
    def is_all(self) -> bool:
        """Whether nothing is new, so that nothing has to be read; a directory without a log is."""
        held = all(log.segments for log in self.logs)
        return self._narrowed is not None and held and not self._narrowed.new

    def check(self) -> Check | None:
        """Make the check of what is not read again."""
        if self._narrowed is None or self._before is None:
            return None
        files, nodes = self._narrowed.trusted(self._before), len(self._narrowed.held)
        covered = f"{files} files of {nodes} nodes, {self._narrowed.hashed} of them by SHA-256"
        return Check(CHECK, covered, tuple(self._narrowed.findings))

    def unchanged(self) -> Report:
        """Report that nothing is new; note how the files look now."""
        check, before = self.check(), self._before
        if check is None or before is None:
            raise ValueError("something is new, and has to be checked")
        manifests = [finding for log in self.logs for finding in log.findings]
        first = Check("manifests", f"{len(self.logs)} nodes", tuple(manifests))
        last, digest = before.last, before.digest
        report = Report((first, check), last, 0, digest, notes=tuple(self.notes), cut=last)
        report = replace(report, trusted=self.trusted)
        if not report.passed:
            return report
        return self._keep(report, before._replace(verified_ms=_now(), nodes=self._held()))

    def stands(self, log: NodeLog) -> list[Stand]:
        """Return the places at which the fold of a log is to tell where it stands."""
        end, again = common_end(self.logs), self._end_of_trust
        stands = [Stand(end, keep=True)] if end not in {None, again} else []
        if self._compares(log) and self._before is not None:
            stands.append(Stand(self._before.last, keep=False))
        return stands

    @property
    def _end_of_trust(self) -> Position | None:
        """Where what is not read again ends; None if everything is read."""
        return self._before.last if self._before and self._narrowed else None

    def _compares(self, log: NodeLog) -> bool:
        before = self._before
        return before is not None and self._narrowed is None and log.begins.last <= before.last

    def compared(
        self, log: NodeLog, stood: Sequence[Stood], restores: Sequence[tuple[int, int]]
    ) -> Outcome:
        """Compare a log that was read as a whole with what the last run knew of it.

        `restores`: recovery numbers, each with the last entry that was kept (S13).
        """
        before = self._before
        if before is None or self._narrowed is not None:
            return Outcome([], [])
        place = f"the checkpoint of {time_of(before.verified_ms)}, which ends at"
        place = f"{place} {place_of(before.last)}"
        if not self._compares(log):
            text = f"{place}, was not compared: the log of {log.node} begins at {log.begins}"
            return Outcome([], [text])
        found = stood[-1]
        if (found.last, found.chain) == (before.last, before.chain):
            return Outcome([], _other_state(before, found, place))
        for number, kept in restores:
            if number > before.recovery_number and kept < before.last.index:
                text = f"{place}, is of another line: recovery {number} kept entries up to {kept} "
                return Outcome(
                    [], [f"{text}only. If nobody restored the cluster, it was rewritten"]
                )
        text = (
            f"{place}, tells the chain {before.chain.hex()[:16]} there, and the log leads to "
            f"{found.chain.hex()[:16]} at {place_of(found.last)}: one of both was rewritten. If it "
            f"is the checkpoint, remove {self._folder.path} and verify again"
        )
        return Outcome([Finding("checkpoint", "", "", before.last, text)], [])

    def kept(
        self,
        report: Report,
        log: NodeLog,
        stood: Sequence[Stood],
        parts: Iterable[ResultRow],
        sums: Mapping[str, str],
    ) -> Report:
        """Leave a checkpoint behind a run that found nothing; tell of it in the report.

        `log`: the one that was folded. `sums`: SHA-256 of each file that was read. Raises
        CannotCheck if it cannot be written; the last one is still there then.
        """
        end = common_end(self.logs)
        if self._before is not None and end == self._end_of_trust:
            record = self._before._replace(verified_ms=_now(), nodes=self._held())
            return self._keep(report, record)
        if not stood or stood[0].last != end:
            text = "no checkpoint was left: the nodes have no end of a sealed segment in common"
            return replace(report, notes=(*report.notes, text))
        try:
            chunks = ((part_name(row.key), row.content) for row in parts)
            state, names = self._folder.keep_state(chunks)
        except OSError as error:
            raise self._unkept(error) from error
        return self._keep(report, self._record(log, stood[0], (state, names), sums))

    def _record(
        self, log: NodeLog, stood: Stood, state: tuple[str, dict[str, str]], sums: Mapping[str, str]
    ) -> Verified:
        before = self._before if log.begins.verified_ms else None
        new = [s for s in log.sealed if log.begins.last < s.ends.last <= stood.last]
        count = sum(segment.manifest.count for segment in new)
        contents, nodes = self._all_held(stood.last, sums)
        return Verified(
            log.segments[-1].manifest.cluster_id,
            writer(),
            _now(),
            stood.last,
            stood.log_time_ms,
            (before.records if before else 0) + count,
            stood.chain,
            stood.digest,
            stood.recovery_number,
            *state,
            contents,
            nodes,
        )

    def _all_held(
        self, last: Position, sums: Mapping[str, str]
    ) -> tuple[dict[str, tuple[Content, ...]], dict[str, dict[str, Held]]]:
        """Describe all segments up to a position: those that were read, and those that were not."""
        found = _Contents()
        carried = self._held()
        nodes: dict[str, dict[str, Held]] = {}
        for log in self.logs:
            mine = nodes.setdefault(log.node, {})
            for name, held in carried.get(log.node, {}).items():
                content = self._before.contents[name][held.content] if self._before else None
                if content is not None:
                    mine[name] = Held(found.number(name, content), held.look)
            for segment in log.sealed:
                name = segment.folder.name
                if name not in mine and segment.ends.last <= last:
                    content = _content(segment, sums)
                    mine[name] = Held(found.number(name, content), self._looks[log.node, name])
        return found.told(), nodes

    def _held(self) -> dict[str, dict[str, Held]]:
        return self._narrowed.held if self._narrowed else {}

    def _keep(self, report: Report, record: Verified) -> Report:
        try:
            self._folder.keep(record)
        except OSError as error:
            raise self._unkept(error) from error
        return replace(report, kept=record.last)

    def _unkept(self, error: OSError) -> CannotCheck:
        return CannotCheck(
            f"nothing wrong was found, but the checkpoint cannot be written to "
            f"{self._folder.path}: {error.strerror or error}. The last one is as it was"
        )


class _Contents:
    """The contents of segments, each once."""

    def __init__(self) -> None:
        self._known: dict[str, list[Content]] = {}

    def number(self, name: str, content: Content) -> int:
        """Return which of a segment's contents this is; one that was read twice is as of then."""
        several = self._known.setdefault(name, [])
        for number, each in enumerate(several):
            if each[:2] == content[:2]:
                several[number] = each._replace(read_ms=max(each.read_ms, content.read_ms))
                return number
        several.append(content)
        return len(several) - 1

    def told(self) -> dict[str, tuple[Content, ...]]:
        """Return all of them."""
        return {name: tuple(several) for name, several in self._known.items()}


def common_end(logs: Sequence[NodeLog]) -> Position | None:
    """Return the last place at which a segment ends on each node, so that no file goes beyond it.

    A tail has no part in it: other bytes come in its place.
    """
    ends = [
        {each.ends.last for each in log.sealed}
        | ({log.begins.last} if log.begins.verified_ms else set())
        for log in logs
    ]
    return max(set.intersection(*ends), default=None) if ends else None


def _other_state(before: Verified, found: Stood, place: str) -> list[str]:
    """Say that the last run's state was another one, though the records are the same."""
    if found.digest == before.digest:
        return []
    text = (
        f"{place}, has a state with the digest {before.digest:016x}, and these records lead to "
        f"{found.digest:016x}: runs that began there proved nothing, unless {before.writer} "
        f"writes states otherwise than {writer()}"
    )
    return [text]


def _content(segment: Segment, sums: Mapping[str, str]) -> Content:
    files = zip(segment.manifest.files, segment.files, strict=True)
    return Content(
        manifest_digest(segment.manifest), {name: sums[path] for name, path in files}, _now()
    )


def _now() -> int:
    return time.time_ns() // 1_000_000
