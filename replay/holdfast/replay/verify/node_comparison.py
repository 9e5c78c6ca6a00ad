"""Compare the nodes: each check that looks at every node, cheapest first (docs/replay.md).

Combines `archive`'s findings with those of `file_checks`, `boundaries`, `independence` and
`hashes`, and says which log the checks that look at one node are to take. Knows no Spark: a reader
runs the tasks and makes the sums.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import Check, Finding
from holdfast.replay.read.boundaries import check_boundaries
from holdfast.replay.read.independence import foreign_copies
from holdfast.replay.read.log_rows import ResultRow
from holdfast.replay.read.node_logs import NodeLog, Range, data_within, missing_ranges
from holdfast.replay.read.urls import folder_of, is_url
from holdfast.replay.spark.tasks import Task
from holdfast.replay.verify import hashes
from holdfast.replay.verify.file_checks import (
    RecordHashes,
    Sums,
    check_contents,
    check_forms,
)

FORMS: Final = "form of every file"
CONTENTS: Final = "payloads, columns, chains"
HASHES: Final = "record hashes = manifests"
NOTHING_SEALED: Final = "nothing is sealed here: no readable segment, and no exported tail"
NOTHING_READABLE: Final = "no segment of any node can be read, so nothing was compared"
EXPORT: Final = (
    "no node has anything to verify. A node seals its log once a day, as soon as it is long "
    "enough, or when it is told to: `holdfast log seal`. To verify what a stopped node has not "
    "sealed, run `holdfast log export --node-dir DIR --out DIR/tail`, where DIR is its data "
    "directory"
)


class Reader(Protocol):
    """What reads the files of nodes."""

    def run(self, tasks: Sequence[Task]) -> list[ResultRow]:
        """Run tasks, and return the rows of all of them."""

    def block_sums(self, logs: Sequence[NodeLog], common: hashes.Comparable) -> list[hashes.Sum]:
        """Sum up the hashes of all stored records by block."""

    def fast_sums(self, log: NodeLog) -> list[hashes.Sum]:
        """Sum up their fast hashes alone: what `block_sums` tells besides is left at nothing."""

    def differing_places(
        self, logs: Sequence[NodeLog], common: hashes.Comparable, blocks: Sequence[int]
    ) -> list[hashes.Place]:
        """Open some blocks, and find the first positions at which the nodes differ."""


class NodeComparison:
    """One comparison of the logs of some nodes; collects checks and notes."""

    def __init__(
        self, reader: Reader, logs: Sequence[NodeLog], on_step: Callable[[str], object] = len
    ) -> None:
        """Start with the logs as `read.node_logs` finds them.

        `on_step`: hears the name of each check as it begins.
        """
        self._reader, self._begin = reader, on_step
        self._logs = [log for log in logs if log.segments]
        self._all = list(logs)
        self._sums: Sums = {}
        self._hashed: RecordHashes = {}
        self._doubtful: set[str] = set()
        """Folders of segments with which something is wrong."""
        self.checks: list[Check] = []
        self.notes: list[str] = []

    def run(self) -> NodeLog | None:
        """Run the checks that look at every node; return the log for those that look at one.

        That is one without a finding if there is one. None: there is no record to look at.
        """
        if not self._logs:
            self.checks.append(nothing_sealed(self._all))
            self.notes.append(EXPORT)
            return None
        self._files()
        if not self._logs:
            self.notes.append(NOTHING_READABLE)
            return None
        if any(log.begins.cut for log in self._logs):
            self.check("checkpoints", _beginnings(self._logs), self._checkpoints)
        self._hashes()
        return self._reference()

    @property
    def sums(self) -> Sums:
        """The SHA-256 of each file that was checked, by its path."""
        return self._sums

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        return [finding for check in self.checks for finding in check.findings]

    def _files(self) -> None:
        """Check every file; go on with the segments that can be read, and with their true ends."""
        flaws = [finding for log in self._all for finding in log.findings]
        self._begin(FORMS)
        began = time.monotonic()
        checked = check_forms(self._reader.run, self._logs)
        self._sums, self._hashed = checked.sums, checked.hashed
        told = {log.node: log for log in checked.logs}
        self._logs = [log for log in checked.logs if log.segments]
        self._all = [told.get(log.node, log) for log in self._all]
        taken = time.monotonic() - began
        strange, joined = check_boundaries(self._logs)
        flaws += [*foreign_copies(self._logs), *strange]
        self.notes += joined
        covered = f"{checked.number} files, {checked.different} of them different"
        self.add(FORMS, covered, checked.findings, taken)
        if self._logs:
            self._begin(CONTENTS)
            began = time.monotonic()
            contents = check_contents(self._reader.run, self._logs, checked.sums)
            covered = f"{contents.read} buckets and chains that are not as on most nodes"
            taken = time.monotonic() - began
            self.add(CONTENTS, covered, contents.findings, taken)
        self._doubtful = {
            str(segment.folder)
            for log in self._logs
            for segment in log.segments
            for finding in (*flaws, *self.findings)
            if finding.node == log.node and str(segment.folder) in _folders(finding.file)
        }
        self.checks.insert(0, Check("manifests", self._extent, (*flaws, *self._missing())))

    def _checkpoints(self) -> Iterator[Finding]:
        """Compare the checkpoints at which several nodes begin, where they are at one place."""
        told: dict[Position, NodeLog] = {}
        for log in self._logs:
            first = told.setdefault(log.begins.last, log)
            if first.begins.digest != log.begins.digest:
                text = f"the checkpoint has not the digest of that of node {first.node}"
                yield Finding("checkpoint", log.node, "", log.begins.last, text)

    @property
    def _extent(self) -> str:
        return f"{len(self._all)} nodes"

    def _missing(self) -> list[Finding]:
        """Find nodes without a record, and ranges that a node lacks."""
        found = [
            _empty(log)
            for log in self._all
            if not (log.segments or log.findings or log.node in self._faulty())
        ]
        return found + [
            Finding("missing", node, "", gap.first, f"the records from {gap} are sealed elsewhere")
            for node, lacking in missing_ranges(self._logs, self._doubtful).items()
            for gap in lacking
        ]

    def _hashes(self) -> None:
        """Run layer one: compare sums with the manifests, then between nodes; open bad blocks."""
        logs = self._logs
        missing = missing_ranges(logs, self._doubtful)
        lacking = sorted({gap for gaps_ in missing.values() for gap in gaps_})
        after = max(log.begins.last for log in logs)
        common = hashes.Comparable(min(log.last for log in logs), tuple(lacking), after)
        self._begin(HASHES)
        began = time.monotonic()
        sums = self._block_sums(common)
        taken = time.monotonic() - began
        stored = sum(each.stored[0] for each in sums)
        found = hashes.against_manifests(logs, sums)
        self.add(HASHES, f"{stored} records", found, taken)
        if len(logs) > 1:
            self.check(
                "record hashes equal on all nodes",
                _extent(logs, common),
                lambda: self._located(common, hashes.differing_blocks(logs, sums)),
            )
        else:
            self.notes.append("one node only: nothing to compare its hashes with")
        self._note_uncompared(common)

    def _block_sums(self, common: hashes.Comparable) -> list[hashes.Sum]:
        """Return the sums of all nodes; logs whose files have equal bytes are read once.

        If all have, nothing is left to compare between nodes: then the fast hashes alone are made,
        and the others are those that the check of the files has made.
        """
        alike = defaultdict[object, list[NodeLog]](list)
        for log in self._logs:
            alike[self._contents(log)].append(log)
        same = {logs[0].node: logs for logs in alike.values()}
        if len(same) == 1:
            first = self._logs[0]
            sums = self._with_stored(first, self._reader.fast_sums(first))
        else:
            sums = self._reader.block_sums([logs[0] for logs in same.values()], common)
        return [each._replace(node=log.node) for each in sums for log in same[each.node]]

    def _with_stored(self, log: NodeLog, sums: list[hashes.Sum]) -> list[hashes.Sum]:
        """Add the sums over the stored records of a log, as the check of its files made them."""
        stored: dict[tuple[str, int], hashes.Halves] = defaultdict(lambda: hashes.NOTHING)
        for segment in log.segments:
            for path in segment.files:
                for block, (records, low, high) in self._hashed[path].items():
                    count, lows, highs = stored[segment.key, block]
                    stored[segment.key, block] = (count + records, lows + low, highs + high)
        made = {(each.segment, each.block): each for each in sums}
        nothing = hashes.NOTHING
        return [
            made.get(at, hashes.Sum(log.node, *at, *(nothing,) * 3))._replace(stored=stored[at])
            for at in {**dict.fromkeys(stored), **dict.fromkeys(made)}
        ]

    def _contents(self, log: NodeLog) -> object:
        """Return what tells logs apart whose sums may differ."""
        return tuple(
            (segment.key, segment.after, *((Path(p).name, self._sums[p]) for p in segment.files))
            for segment in log.segments
        )

    def _located(self, common: hashes.Comparable, blocks: list[int]) -> list[Finding]:
        if not blocks:
            return []
        places = self._reader.differing_places(self._logs, common, blocks)
        return hashes.judged(places, self._logs, self._faulty())

    def _note_uncompared(self, common: hashes.Comparable) -> None:
        for log in self._logs:
            if log.last > common.last:
                beyond = f"{common.last.index}.{common.last.ordinal}"
                self.notes.append(f"node {log.node} has records after {beyond} that others lack")

    def _reference(self) -> NodeLog:
        """Choose the node to fold: one without a finding if there is one, then the longest log."""
        faulty = self._faulty()
        early = sorted(self._logs, key=lambda log: log.begins.last)
        return max(early, key=lambda log: (log.node not in faulty, log.last))

    def _faulty(self) -> set[str]:
        return {finding.node for finding in self.findings}

    def check(self, name: str, covered: str, find: Callable[[], Iterable[Finding]]) -> None:
        """Make a check that takes time."""
        self._begin(name)
        began = time.monotonic()
        found = list(find())
        self.add(name, covered, found, time.monotonic() - began)

    def add(self, name: str, covered: str, found: list[Finding], seconds: float) -> None:
        """Add a check that was made."""
        self.checks.append(Check(name, covered, tuple(found), seconds))


def nothing_sealed(logs: Sequence[NodeLog]) -> Check:
    """Make the check of nodes of which none has a segment that can be read."""
    flaws = [finding for log in logs for finding in log.findings]
    missing = [_empty(log) for log in logs if not log.findings]
    return Check("manifests", f"{len(logs)} nodes", (*flaws, *missing))


def _empty(log: NodeLog) -> Finding:
    meant = None if is_url(log.node) else data_within(Path(log.node))
    text = f"{NOTHING_SEALED}. {meant} is the data directory of a node" if meant else NOTHING_SEALED
    return Finding("missing", log.node, "", None, text)


def _folders(file: str) -> tuple[str, str]:
    """Return where a finding may be: in a file of a segment, or in the segment as a whole."""
    return file, folder_of(file)


def _beginnings(logs: Sequence[NodeLog]) -> str:
    return ", ".join(f"{log.node} begins at {log.begins}" for log in logs)


def _extent(logs: Sequence[NodeLog], common: hashes.Comparable) -> str:
    first = Position(common.after.index, common.after.ordinal + 1)
    extent = "nothing"
    if common.last > common.after:
        extent = str(Range(max(first, Position(1, 0)), common.last))
    without = f", without {len(common.lacking)} missing ranges" if common.lacking else ""
    return f"{len(logs)} nodes, {extent}{without}"
