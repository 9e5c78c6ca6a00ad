"""The verification: three layers, cheapest first, and the clients' witnesses (docs/replay.md).

Combines the findings of `node_comparison`, `gaps`, `sql.state`, `fold_job`, `compare`, `anchors`
and `acknowledged`. The first covers every node; the others cover one with which nothing is wrong,
since equal hashes mean equal logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.text import truncate
from holdfast.replay.checkpoint.parts import Stand
from holdfast.replay.checkpoint.run import CheckpointRun
from holdfast.replay.findings import IN_FULL, CannotCheck, Finding, Report
from holdfast.replay.progress import SILENT, Steps
from holdfast.replay.read.anchor_files import NOTHING_TOLD, Told
from holdfast.replay.read.log_rows import ENTRY_LAST, Cut
from holdfast.replay.read.node_logs import NodeLog, buckets_of
from holdfast.replay.read.urls import is_url
from holdfast.replay.spark.failures import surroundings
from holdfast.replay.spark.log_tables import SQL_SCHEMA, rows
from holdfast.replay.spark.task_counts import watched
from holdfast.replay.spark.tasks import Task, run_tasks
from holdfast.replay.verify import acknowledged, anchors, compare, gaps
from holdfast.replay.verify.checkpoint.rows import checkpoint_rows
from holdfast.replay.verify.compare import Expected
from holdfast.replay.verify.fold_job import Folded, fold
from holdfast.replay.verify.node_comparison import CONTENTS, FORMS, HASHES, NodeComparison
from holdfast.replay.verify.spark_reader import SparkReader
from holdfast.replay.verify.sql.entries import (
    Older,
    cluster_state,
    comparable,
    older_groups,
    principals_begin,
    state_entries,
    without_principals,
    without_requests,
)
from holdfast.replay.verify.sql.state import living_rows
from holdfast.replay.verify.sql.statements import together
from holdfast.storage.segments.columns import SCHEMA

GAPS: Final = "gaps"
FOLD: Final = "fold by evolve, chains, payloads"
SQL: Final = "state by SQL = state by evolve"
_COMPARED: Final = (
    "counters, settings, topics, grants of access, requests; groups, members, offsets"
)
SHARES: Final = {FORMS: 9.0, CONTENTS: 1.0, HASHES: 14.0, GAPS: 8.0, FOLD: 42.0, SQL: 26.0}
"""Of the time that a long log takes, per cent; what is quick is left out."""


def verify_logs(
    spark: SparkSession,
    logs: Sequence[NodeLog],
    expected: Expected | None = None,
    witness_files: Sequence[Path] = (),
    told: Told = NOTHING_TOLD,
    checkpoint: CheckpointRun | None = None,
    steps: Steps = SILENT,
) -> Report:
    """Run all checks. Raises FileNotFoundError for a missing witness file.

    Raises ValueError if the log begins behind the digest that is to be compared (S24), CannotCheck
    if Spark or the disk failed before anything was found; if something was, the report says that
    it is not finished.
    """
    begun = Verification(spark, logs, checkpoint, steps)
    try:
        with surroundings(), watched(spark, steps):
            return begun.run(expected, witness_files, told)
    except CannotCheck as error:
        return begun.broken_off(str(error), error)


class Verification:
    """One run over the logs of some nodes; collects checks, then makes the report."""

    def __init__(
        self,
        spark: SparkSession,
        logs: Sequence[NodeLog],
        checkpoint: CheckpointRun | None = None,
        steps: Steps = SILENT,
    ) -> None:
        """Start with the logs as `read.node_logs` finds them, or as a checkpoint leaves of them."""
        self._spark, self._checkpoint = spark, checkpoint
        self._nodes = NodeComparison(SparkReader(spark), logs, steps.step)
        self._check, self._add = self._nodes.check, self._nodes.add
        self._checks, self._notes = self._nodes.checks, self._nodes.notes
        if checkpoint is not None:
            self._notes.extend(checkpoint.notes)
            self._checks.extend(filter(None, [checkpoint.check()]))

    def run(
        self,
        expected: Expected | None,
        witness_files: Sequence[Path],
        told: Told = NOTHING_TOLD,
    ) -> Report:
        """Run all checks, as `verify_logs` says."""
        log = self._nodes.run()
        if log is None:
            return Report(tuple(self._checks), notes=tuple(self._notes))
        if expected is not None and expected.index < log.begins.last.index:
            raise ValueError(
                f"a digest at index {expected.index} cannot be compared: the log of {log.node} "
                f"begins at {log.begins}. Give one that was published later"
            )
        table = rows(self._spark, log)
        if is_url(log.segments[0].files[0]):
            table = table.persist()  # else each part of the SQL would fetch all files again
        named = frozenset(expected.groups) if expected else frozenset[str]()
        known = self._known(log, table, named)
        self._check(GAPS, f"node {log.node}", lambda: _gap_findings(log, table, known))
        if witness_files:
            self._acknowledged(log, table, witness_files)
        keeps = self._checkpoint is not None
        whole = keeps or expected is None or expected.index < log.last.index
        marks = anchors.marks_of(told.anchors, log.begins)
        stands = self._checkpoint.stands(log) if self._checkpoint else []
        cut = None if whole else _cut(expected)
        folded = fold(self._spark, log, cut, marks, stands, named=named)
        try:
            self._compare(log, known, folded)
            self._anchors(log, folded, told)
            if expected is not None:
                self._live(folded, log if whole else None, expected)
            return self._kept(log, folded, stands, expected)
        finally:
            folded.release()
            table.unpersist()

    def broken_off(self, why: str, error: Exception) -> Report:
        """Report what was found before the checks had to stop. Raises `error` if nothing was."""
        if not self._nodes.findings:
            raise error
        return Report(tuple(self._checks), notes=tuple(self._notes), unfinished=why)

    def _known(self, log: NodeLog, table: DataFrame, named: frozenset[str]) -> DataFrame:
        """Return the rows of a log, with those that stand for what was cut off (S24)."""
        if not log.begins.cut:
            return table
        buckets = buckets_of(log).values()
        tasks: list[Task] = [partial(checkpoint_rows, each, named) for each in buckets]
        return run_tasks(self._spark, tasks, SQL_SCHEMA, SCHEMA).persist().unionByName(table)

    def _compare(self, log: NodeLog, table: DataFrame, folded: Folded) -> None:
        """Run layers two and three: compare the two implementations of the rules."""
        taken = "groups and offsets with new records; " if log.begins.touched_only else ""
        self._check(FOLD, f"{taken}node {log.node}", folded.findings)
        _refuse_other_beginning(log, folded)
        broken = {f.group for f in self._checks[-1].findings if f.kind in {"rules", "payload"}}
        older = older_groups(table)
        self._note_older(older, told="" not in broken)
        broken |= older.untold
        sql, evolved = self._states(table, folded.entries(), broken)
        if "" in older.untold:
            sql, evolved = without_principals(sql), without_principals(evolved)
        if older.in_part:
            sql, evolved = comparable(sql, older.in_part), comparable(evolved, older.in_part)
        self._check(
            SQL,
            f"{taken}{_COMPARED}",
            lambda: compare.sql_against_fold(sql, evolved, broken),
        )

    def _states(
        self, table: DataFrame, evolved: DataFrame, broken: set[str]
    ) -> tuple[DataFrame, DataFrame]:
        """Compute the state by SQL, as far as SQL can tell it; leave out the rest of the other."""
        groups = state_entries(living_rows(table), principals_begin(table))
        if "" in broken:
            return groups, evolved
        cluster = cluster_state(table)
        if cluster.requests_left_out:
            self._notes.append(
                "the served requests are computed by evolve alone, not a second time by SQL: the "
                "settings dedupe.window_ms or dedupe.requests_max have changed"
            )
            evolved = without_requests(evolved)
        return together(groups, cluster.entries), evolved

    def _note_older(self, older: Older, *, told: bool) -> None:
        """Note what is left out, since records in older segments tell too little of it."""
        groups = older.untold - {""}
        if groups:
            self._notes.append(
                f"{len(groups)} groups, as {truncate(min(groups))!r}, have records in segments "
                "that a build before 0.2 sealed; their columns tell too little of the heartbeat "
                "protocol, so these groups are computed by evolve alone, not a second time by SQL"
            )
        if older.in_part:
            self._notes.append(
                f"{len(older.in_part)} groups have records in older segments, whose columns do not "
                "tell what members say of themselves; that is computed by evolve alone, not a "
                "second time by SQL"
            )
        if told and "" in older.untold:
            self._notes.append(
                "settings, topics, access and requests are computed by evolve alone, not a second "
                "time by SQL, nor are the principals of members: the columns of older segments do "
                "not tell them"
            )

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

    def _kept(
        self,
        log: NodeLog,
        folded: Folded,
        stands: Sequence[Stand],
        expected: Expected | None,
    ) -> Report:
        """Make the report; compare with the last run's checkpoint, and leave one for the next."""
        if self._checkpoint is None:
            return self._report(log, folded, expected)
        stood = folded.stands(stands)
        earlier = self._checkpoint.compared(log, stood, folded.restores())
        if earlier.findings:
            self._add("checkpoint of the last run", "its chain", earlier.findings, 0.0)
        self._notes.extend(earlier.notes)
        report = replace(self._report(log, folded, expected), trusted=self._checkpoint.trusted)
        if not report.passed:
            return report
        return self._checkpoint.kept(report, log, stood, folded.parts(), self._nodes.sums)

    def _live(self, folded: Folded, again: NodeLog | None, expected: Expected) -> None:
        """Compare with what the node published; fold `again` if that was before the log's end."""
        named = frozenset(expected.groups)
        at_index = (
            folded if again is None else fold(self._spark, again, _cut(expected), named=named)
        )
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


def _cut(expected: Expected | None) -> Cut | None:
    if expected is None:
        return None
    return Cut(Position(expected.index, ENTRY_LAST), meta_ms=expected.log_time_ms)


def _refuse_other_beginning(log: NodeLog, folded: Folded) -> None:
    """Raise CannotCheck if a run's checkpoint does not hold the state whose digest it tells.

    We have written it, so no node is to be accused of what follows from it.
    """
    began, told = folded.began(), int.from_bytes(log.begins.digest[:8], "big")
    if began is not None and began != told:
        raise CannotCheck(
            f"the parts of {log.begins} hold a state with the digest {began:016x}, and it tells "
            f"{told:016x}: {IN_FULL}"
        )


def _gap_findings(log: NodeLog, table: DataFrame, known: DataFrame) -> list[Finding]:
    last = log.begins.last
    return [*gaps.ordinal_gaps(table, last), *gaps.sequence_gaps(known, last)]
