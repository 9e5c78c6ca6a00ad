"""A verification with a checkpoint without Spark: the checks of all nodes, and the fold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.replay.checkpoint.folder import opened
from holdfast.replay.checkpoint.parts import PART, Stand, stood, stops_in, stops_of
from holdfast.replay.checkpoint.run import CheckpointRun
from holdfast.replay.findings import Finding, Report
from holdfast.replay.read.log_rows import COUNT, FINDING, RECORD, Bucket, Cut, ResultRow
from holdfast.replay.read.node_logs import NodeLog, buckets_of, node_logs, sources_by_segment
from holdfast.replay.verify.anchor_marks import Mark, restores_in
from holdfast.replay.verify.cluster_fold import fold_cluster
from holdfast.replay.verify.group_fold import fold_bucket
from holdfast.replay.verify.node_comparison import NodeComparison
from holdfast.storage.codec.state_image import restore
from holdfast.storage.segments.archive_path import ArchivePath
from holdfast.storage.segments.segment_reader import CLUSTER_FILE
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import BUCKETS, bucket_file
from spark.event_logs import busy_log, write_node
from unit.replay.verify.plain_reader import PlainReader

LOG = busy_log()
CUT_AT = (20, 30)
"""Two segments are there when the first run comes; the third one is sealed later."""
NODES = ("n1", "n2", "n3")
_ALL = Cut()


def sealed(parent: Path, nodes: Sequence[str] = NODES) -> list[Path]:
    """The nodes as the first run finds them."""
    return [write_node(parent / n, n, LOG.rows[: CUT_AT[1]], CUT_AT[:1]) for n in nodes]


def grown(folders: Sequence[Path]) -> None:
    """Each node seals the rest of the log."""
    for folder in folders:
        write_segment(folder / "segments", LOG.rows[CUT_AT[1] :], "c", folder.name)


class Ran(NamedTuple):
    """What a run came to, the files that it read, and the state that it folded to."""

    report: Report
    read: set[str]
    state: State | None


def run(folders: Sequence[ArchivePath], checkpoint: Path, *, full: bool = False) -> Ran:
    """Verify as `app.verify` does, but for the second implementation in SQL."""
    with opened(checkpoint) as folder:
        begun = CheckpointRun(folder, node_logs(folders), full=full)
        if begun.is_all:
            return Ran(begun.unchanged(), set(), None)
        nodes = NodeComparison(PlainReader(), begun.logs)
        nodes.checks.extend(filter(None, [begun.check()]))
        nodes.notes.extend(begun.notes)
        log = nodes.run()
        read = {path for each in begun.logs for s in each.segments for path in s.files}
        if log is None:
            return Ran(Report(tuple(nodes.checks), notes=tuple(nodes.notes)), read, None)
        stands = begun.stands(log)
        rows = folded(log, stands)
        found = [row for row in rows if row.tag == FINDING]
        nodes.add("fold", log.node, [_finding(row, log.node) for row in found], 0.0)
        ends = stood(rows, stands)
        earlier = begun.compared(log, ends, restores_in(rows))
        nodes.add("checkpoint of the last run", "its chain", earlier.findings, 0.0)
        report = Report(
            tuple(nodes.checks),
            log.last,
            sum(row.idx for row in rows if row.tag == COUNT),
            notes=(*nodes.notes, *earlier.notes),
            trusted=begun.trusted,
        )
        state = whole_state(log)  # of parts that the next checkpoint replaces
        if report.passed:
            parts = (row for row in rows if row.tag == PART)
            report = begun.kept(report, log, ends, parts, nodes.sums)
        return Ran(report, read, state)


def whole_state(log: NodeLog) -> State:
    """Fold all groups, also those that a run from a checkpoint need not take up."""
    log = log._replace(begins=log.begins._replace(touched_only=False))
    rows = folded(log, (), records=True)
    return restore(row.content for row in rows if row.tag == RECORD)


def folded(
    log: NodeLog,
    stands: Sequence[Stand],
    marks: Sequence[Mark] = (),
    named: Sequence[str] = (),
    *,
    records: bool = False,
) -> list[ResultRow]:
    """Fold as the workers do, each task by itself."""
    names = map(bucket_file, range(BUCKETS))
    buckets = {**{name: Bucket(name, (), log.begins) for name in names}, **buckets_of(log)}
    cluster = buckets[CLUSTER_FILE].sources
    rows = [
        row
        for each in buckets.values()
        for row in fold_bucket(
            *(each, cluster, _ALL, marks, stops_in(log, stands, each)),
            named=named,
            records=records,
        )
    ]
    whole = sources_by_segment(log)
    stops = stops_of(log, stands)
    return [*rows, *fold_cluster(whole, _ALL, log.begins, marks, stops, records=records)]


def _finding(row: ResultRow, node: str) -> Finding:
    return Finding(row.kind, node, row.grp, Position(row.idx, row.ordinal), row.text, row.key)
