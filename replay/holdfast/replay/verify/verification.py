"""The verification: three layers, cheapest first, and the clients' witnesses (docs/replay.md).

Combines the findings of `hashes`, `gaps`, `sql_state`, `fold_job`, `compare` and `acknowledged`.
The hashes cover every node; the layers above them cover one node whose hashes are right, since
equal hashes mean equal logs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.text import truncate
from holdfast.replay.findings import CannotCheck, Check, Finding, Report
from holdfast.replay.read.independence import foreign_copies
from holdfast.replay.read.log_rows import ENTRY_LAST, Cut
from holdfast.replay.read.node_logs import NodeLog, Range, buckets_of, missing_ranges
from holdfast.replay.spark.failures import surroundings
from holdfast.replay.spark.log_tables import SQL_SCHEMA, rows
from holdfast.replay.spark.tasks import Task, run_tasks
from holdfast.replay.verify import acknowledged, anchors, compare, gaps, hashes
from holdfast.replay.verify.anchor_files import NOTHING_TOLD, Told
from holdfast.replay.verify.boundaries import check_boundaries
from holdfast.replay.verify.checkpoint_rows import checkpoint_rows
from holdfast.replay.verify.compare import Expected
from holdfast.replay.verify.file_checks import check_contents, check_forms
from holdfast.replay.verify.fold_job import Folded, fold
from holdfast.replay.verify.sql_entries import state_entries, untold_groups
from holdfast.replay.verify.sql_state import living_rows
from holdfast.storage.segments.columns import SCHEMA

NOTHING_SEALED = "nothing is sealed here: no readable segment, and no exported tail"
NOTHING_READABLE = "no segment of any node can be read, so nothing was compared"
EXPORT = (
    "no node has anything to verify. A node seals its log once an hour, or as soon as it is long "
    "enough; to verify what is not sealed, stop the node and run `holdfast log export --node-dir "
    "DIR --out DIR/tail`, where DIR is its data directory"
)


def verify_logs(
    spark: SparkSession,
    logs: Sequence[NodeLog],
    expected: Expected | None = None,
    witness_files: Sequence[Path] = (),
    told: Told = NOTHING_TOLD,
) -> Report:
    """Run all checks. Raises FileNotFoundError for a missing witness file.

    Raises ValueError if the log begins behind the digest that is to be compared (S24), CannotCheck
    if Spark or the disk failed before anything was found; if something was, the report says that
    it is not finished.
    """
    begun = Verification(spark, logs)
    try:
        with surroundings():
            return begun.run(expected, witness_files, told)
    except CannotCheck as error:
        return begun.broken_off(str(error), error)


class Verification:
    """One run over the logs of some nodes; collects checks, then makes the report."""

    def __init__(self, spark: SparkSession, logs: Sequence[NodeLog]) -> None:
        """Start with the logs as `read.node_logs` finds them."""
        self._spark = spark
        self._logs = [log for log in logs if log.segments]
        self._all = list(logs)
        self._checks: list[Check] = []
        self._doubtful: set[Path] = set()
        """Folders of segments with which something is wrong."""
        self._notes: list[str] = []

    def run(
        self,
        expected: Expected | None,
        witness_files: Sequence[Path],
        told: Told = NOTHING_TOLD,
    ) -> Report:
        """Run all checks, as `verify_logs` says."""
        log = self.compare_nodes()
        if log is None:
            return Report(tuple(self._checks), notes=tuple(self._notes))
        if expected is not None and expected.index < log.begins.last.index:
            raise ValueError(
                f"a digest at index {expected.index} cannot be compared: the log of {log.node} "
                f"begins at {log.begins}. Give one that was published later"
            )
        table = rows(self._spark, log).persist()
        known = self._known(log, table).persist()
        self._check("gaps", f"node {log.node}", lambda: _gap_findings(log, table, known))
        if witness_files:
            self._acknowledged(log, table, witness_files)
        whole = expected is None or expected.index < log.last.index
        marks = anchors.marks_of(told.anchors, log.begins)
        folded = fold(self._spark, log, None if whole else _cut(expected), marks)
        try:
            self._compare(log, known, folded)
            self._anchors(log, folded, told)
            if expected is not None:
                self._live(folded, log if whole else None, expected)
            return self._report(log, folded, expected)
        finally:
            folded.release()
            known.unpersist()
            table.unpersist()

    def compare_nodes(self) -> NodeLog | None:
        """Run the checks that look at every node; return the log for those that look at one.

        That is one without a finding if there is one. None: there is no record to look at.
        """
        if not self._logs:
            flaws = [finding for log in self._all for finding in log.findings]
            self._add("manifests", self._extent, [*flaws, *self._missing()], 0.0)
            self._notes.append(EXPORT)
            return None
        self._files()
        if not self._logs:
            self._notes.append(NOTHING_READABLE)
            return None
        if any(log.begins.cut for log in self._logs):
            self._check("checkpoints", _beginnings(self._logs), self._checkpoints)
        self._hashes()
        return self._reference()

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        return [finding for check in self._checks for finding in check.findings]

    def broken_off(self, why: str, error: Exception) -> Report:
        """Report what was found before the checks had to stop. Raises `error` if nothing was."""
        if not self.findings:
            raise error
        return Report(tuple(self._checks), notes=tuple(self._notes), unfinished=why)

    def _files(self) -> None:
        """Check every file; go on with the segments that can be read, and with their true ends."""
        flaws = [finding for log in self._all for finding in log.findings]
        began = time.monotonic()
        checked = check_forms(self._spark, self._logs)
        told = {log.node: log for log in checked.logs}
        self._logs = [log for log in checked.logs if log.segments]
        self._all = [told.get(log.node, log) for log in self._all]
        taken = time.monotonic() - began
        flaws += [*foreign_copies(self._logs), *check_boundaries(self._logs)]
        covered = f"{checked.number} files, {checked.different} of them different"
        self._add("form of every file", covered, checked.findings, taken)
        if self._logs:
            began = time.monotonic()
            contents = check_contents(self._spark, self._logs, checked.sums)
            covered = f"{contents.read} buckets and chains that are not as on most nodes"
            taken = time.monotonic() - began
            self._add("payloads, columns, chains", covered, contents.findings, taken)
        self._doubtful = {
            segment.folder
            for log in self._logs
            for segment in log.segments
            for finding in (*flaws, *self.findings)
            if finding.node == log.node and segment.folder in _folders(finding.file)
        }
        self._checks.insert(0, Check("manifests", self._extent, (*flaws, *self._missing())))

    def _known(self, log: NodeLog, table: DataFrame) -> DataFrame:
        """Return the rows of a log, with those that stand for what was cut off (S24)."""
        if not log.begins.cut:
            return table
        tasks: list[Task] = [partial(checkpoint_rows, each) for each in buckets_of(log).values()]
        return run_tasks(self._spark, tasks, SQL_SCHEMA, SCHEMA).unionByName(table)

    def _compare(self, log: NodeLog, table: DataFrame, folded: Folded) -> None:
        """Run layers two and three: compare the two implementations of the rules."""
        self._check("fold by evolve, chains, payloads", f"node {log.node}", folded.findings)
        broken = {f.group for f in self._checks[-1].findings if f.kind in {"rules", "payload"}}
        living = living_rows(table).persist()
        broken |= self._untold(living)
        sql = state_entries(living)
        self._check(
            "state by SQL = state by evolve",
            "members, instances, generations, epochs, grants, targets, choices, offsets",
            lambda: compare.sql_against_fold(sql, folded.entries(), broken),
        )
        living.unpersist()

    def _untold(self, living: DataFrame) -> set[str]:
        """Find the groups of which columns tell too little, and note that they are left out."""
        found = {row.grp for row in untold_groups(living).collect()}
        if found:
            self._notes.append(
                f"{len(found)} groups, as {truncate(min(found))!r}, have records in segments that "
                "a build before 0.2 sealed; their columns tell too little of the heartbeat "
                "protocol, so these groups are computed by evolve alone, not a second time by SQL"
            )
        return found

    def _report(self, log: NodeLog, folded: Folded, expected: Expected | None) -> Report:
        last, _ = folded.head()
        groups = folded.group_digests(sorted(expected.groups)) if expected else {}
        return Report(
            checks=tuple(self._checks),
            last=last,
            records=folded.count(),
            digest=folded.digest(),
            group_digests=groups,
            notes=tuple(self._notes),
            cut=log.begins.last if log.begins.cut else None,
        )

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
            Finding("missing", log.node, "", None, NOTHING_SEALED)
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
        began = time.monotonic()
        sums = hashes.block_sums(self._spark, logs, common)
        taken = time.monotonic() - began
        stored = sum(each.stored[0] for each in sums)
        found = hashes.against_manifests(logs, sums)
        self._add("record hashes = manifests", f"{stored} records", found, taken)
        if len(logs) > 1:
            self._check(
                "record hashes equal on all nodes",
                _extent(logs, common),
                lambda: self._located(common, hashes.differing_blocks(logs, sums)),
            )
        else:
            self._notes.append("one node only: nothing to compare its hashes with")
        self._note_uncompared(common)

    def _located(self, common: hashes.Comparable, blocks: list[int]) -> list[Finding]:
        faulty = self._faulty()
        return hashes.locate(self._spark, self._logs, common, blocks, faulty) if blocks else []

    def _note_uncompared(self, common: hashes.Comparable) -> None:
        for log in self._logs:
            if log.last > common.last:
                beyond = f"{common.last.index}.{common.last.ordinal}"
                self._notes.append(f"node {log.node} has records after {beyond} that others lack")

    def _reference(self) -> NodeLog:
        """Choose the node to fold: one without a finding if there is one, then the longest log."""
        faulty = self._faulty()
        early = sorted(self._logs, key=lambda log: log.begins.last)
        return max(early, key=lambda log: (log.node not in faulty, log.last))

    def _faulty(self) -> set[str]:
        return {finding.node for finding in self.findings}

    def _live(self, folded: Folded, again: NodeLog | None, expected: Expected) -> None:
        """Compare with what the node published; fold `again` if that was before the log's end."""
        at_index = folded if again is None else fold(self._spark, again, _cut(expected))
        name = f"digests published at index {expected.index}"
        covered = f"state, chain, {len(expected.groups)} groups"
        try:
            self._check(name, covered, lambda: compare.against_live(at_index, expected))
        finally:
            if again is not None:
                at_index.release()

    def _anchors(self, log: NodeLog, folded: Folded, told: Told) -> None:
        """Compare what nodes told earlier, and what is on their disks, with the replayed log."""
        last, reached = folded.head()[0], folded.reached(anchors.marks_of(told.anchors, log.begins))
        self._notes.extend(told.notes)
        for name, own in (("anchors", False), ("states on the nodes' disks", True)):
            mine = [anchor for anchor in told.anchors if anchor.own is own]
            seen = told.findings if own else ()
            if mine or seen:
                found = anchors.compared(mine, reached, folded.restores(), log.begins, last)
                covered = f"chain and digest of {found.compared} of {len(mine)}"
                self._add(name, covered, [*seen, *found.findings], 0.0)
                self._notes.extend(found.notes)

    def _acknowledged(self, log: NodeLog, table: DataFrame, files: Sequence[Path]) -> None:
        told = acknowledged.read_changes(self._spark, files)
        changes = told.where(~acknowledged.before(log.begins.last))
        try:
            gone = told.count() - changes.count()
            if gone:
                self._notes.append(
                    f"{gone} acknowledged changes lie before {log.begins}: not looked for"
                )
            self._check(
                "all that was acknowledged is there",
                f"{changes.count()} changes of {len(files)} clients",
                lambda: [
                    *acknowledged.unreadable_lines(changes),
                    *self._lost_requests(log, acknowledged.missing_requests(changes, table)),
                    *acknowledged.missing_positions(changes, table),
                ],
            )
        finally:
            told.unpersist()

    def _lost_requests(self, log: NodeLog, missing: list[Finding]) -> list[Finding]:
        """Return those that are lost: of one without a position, a cut log cannot say so."""
        if not log.begins.cut:
            return missing
        lost = [finding for finding in missing if finding.position is not None]
        if len(lost) < len(missing):
            self._notes.append(
                f"{len(missing) - len(lost)} acknowledged changes without an index are not behind "
                f"{log.begins}; they may have been before it"
            )
        return lost

    def _check(self, name: str, covered: str, find: Callable[[], Iterable[Finding]]) -> None:
        began = time.monotonic()
        found = list(find())
        self._add(name, covered, found, time.monotonic() - began)

    def _add(self, name: str, covered: str, found: list[Finding], seconds: float) -> None:
        self._checks.append(Check(name, covered, tuple(found), seconds))


def _cut(expected: Expected | None) -> Cut | None:
    if expected is None:
        return None
    return Cut(Position(expected.index, ENTRY_LAST), meta_ms=expected.log_time_ms)


def _gap_findings(log: NodeLog, table: DataFrame, known: DataFrame) -> list[Finding]:
    last = log.begins.last
    return [*gaps.ordinal_gaps(table, last), *gaps.sequence_gaps(known, last)]


def _folders(file: str) -> tuple[Path, Path]:
    """Return where a finding may be: in a file of a segment, or in the segment as a whole."""
    return Path(file), Path(file).parent


def _beginnings(logs: Sequence[NodeLog]) -> str:
    return ", ".join(f"{log.node} begins at {log.begins}" for log in logs)


def _extent(logs: Sequence[NodeLog], common: hashes.Comparable) -> str:
    first = Position(common.after.index, common.after.ordinal + 1)
    extent = "nothing"
    if common.last > common.after:
        extent = str(Range(max(first, Position(1, 0)), common.last))
    without = f", without {len(common.lacking)} missing ranges" if common.lacking else ""
    return f"{len(logs)} nodes, {extent}{without}"
