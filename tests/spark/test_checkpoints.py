"""S24: a log whose beginning was cut off is replayed from its checkpoint, and reports say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.coordinator.model.events import (
    GroupCreated,
    HistoryCut,
    LevelRaised,
    SegmentSealed,
)
from holdfast.coordinator.model.ids import Position
from holdfast.replay.analyse.queries import analyse
from holdfast.replay.app import Expected, state, verify
from holdfast.replay.read.log_rows import RECORD, Cut
from holdfast.replay.read.node_logs import NodeLog, buckets_of, node_log, sources_by_segment
from holdfast.replay.report.tables import heading
from holdfast.replay.verify.cluster_fold import fold_cluster
from holdfast.replay.verify.group_fold import fold_bucket
from holdfast.storage.codec.state_image import digest_of, restore
from holdfast.storage.segments.checkpoint import checkpoint_name, write_checkpoint
from holdfast.storage.segments.segment_reader import CLUSTER_FILE
from spark.cut_logs import beginning, checkpoint_at, continued, write_cut_node
from spark.damage import lost
from spark.event_logs import (
    START_MS,
    EventLog,
    assigned,
    busy_log,
    committed,
    eventful_log,
    formed,
    generation,
    joined,
    rebalance_started,
    released,
    swapped,
    two_static_members,
    write_node,
)
from spark.tables import Tables

LOG = eventful_log()
SEALED = len(LOG.rows)
FOLDED = Cut(Position(LOG.index, 0))


def folded(log: NodeLog) -> Any:  # noqa: ANN401 - a state
    """Fold as the workers do, without Spark."""
    buckets = buckets_of(log)
    cluster = buckets[CLUSTER_FILE].sources
    rows = [
        row for each in buckets.values() for row in fold_bucket(each, cluster, FOLDED, records=True)
    ]
    rows += fold_cluster(sources_by_segment(log), FOLDED, log.begins, records=True)
    assert [row for row in rows if row.tag == "finding"] == []
    return restore(row.content for row in rows if row.tag == RECORD)


@pytest.fixture(scope="module")
def differing(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The groups of the next tests' histories, by their names, of which SQL tells another state."""
    tables, folder, swap = Tables(), tmp_path_factory.mktemp("cut"), swapped_log()
    for count in range(1, SEALED):
        tables.rows += continued(folder, LOG, count, "cut at ")
        tables.expect(f"cut at {count}", LOG.state)
    tables.add("swap", swap.records, swap.state)
    return {finding.group for finding in tables.findings(spark)}


def swapped_log() -> EventLog:
    log = formed()
    log.entry("g", GroupCreated(), rebalance_started("first join"), joined("a1", "a"))
    log.entry("g", swapped("a", "a1", "a2"))
    return log


def test_s24_the_fold_goes_on_from_a_checkpoint_at_any_record(tmp_path: Path) -> None:
    """Levels, open join phases, fenced instances, served requests: nothing is lost at the cut."""
    whole = node_log(write_node(tmp_path / "n1", "n1", LOG.rows))
    for count in range(1, SEALED, 2):
        begins = beginning(tmp_path / "checkpoints", LOG, count)
        behind = [segment._replace(after=begins.last) for segment in whole.segments]
        assert folded(NodeLog("n1", tuple(behind), (), begins)) == LOG.state, f"cut after {count}"


def test_s24_sql_goes_on_from_a_checkpoint_at_any_record(differing: set[str]) -> None:
    """In the midst of a join phase, before a swap, after assignments that were wiped (K-D10)."""
    assert [name for name in differing if name.startswith("cut at ")] == []


def test_a_swap_of_what_was_never_granted_is_no_grant_by_sql(differing: set[str]) -> None:
    """S13: a static member that restarts before the first assignment passes nothing on."""
    assert [name for name in differing if name.startswith("swap ")] == []


BUSY = busy_log(groups=2, commits=10)
CUT = 20
AT = BUSY.rows[CUT - 1].position


def test_s24_a_cut_log_is_verified_from_its_checkpoint_and_the_report_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One node has not carried the cut out; a segment that reaches behind it is there whole."""
    dirs = [
        write_node(tmp_path / "n1", "n1", BUSY.rows, cut_at=(CUT - 4,)),
        write_cut_node(tmp_path / "n2", "n2", BUSY, CUT, kept=4),
        write_cut_node(tmp_path / "n3", "n3", BUSY, CUT, kept=4),
    ]
    every = Expected(BUSY.index, digest=digest_of(BUSY.state), chain=BUSY.heads[""])

    report = verify(dirs, expected_digest=every, spark=spark)
    assert report.findings == ()
    assert (report.passed, report.cut, report.records) == (True, None, len(BUSY.rows))

    report = verify(dirs[1:], expected_digest=every, spark=spark)
    assert report.findings == ()
    assert (report.passed, report.cut, report.records) == (True, AT, len(BUSY.rows) - CUT)
    assert f"behind the checkpoint at {AT.index}.{AT.ordinal}" in report.table()


def test_s24_a_record_that_is_lost_behind_the_cut_is_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The first one: only the checkpoint tells that something was there."""
    write_checkpoint(tmp_path / "segments", checkpoint_at(BUSY, CUT - 1))
    write_node(tmp_path, "n1", lost(BUSY.rows, CUT - 1)[CUT - 1 :])

    report = verify([tmp_path], spark=spark)

    assert {"gap", "chain"} <= {finding.kind for finding in report.findings}
    assert AT in {finding.position for finding in report.findings}


def cut_by_event(tmp_path: Path, digest: bytes | None = None) -> Path:
    """A log on which the cut stands, with the digest of what it leads to, or another one."""
    log = busy_log(groups=1, commits=5)
    count, last = len(log.rows), log.records[-1].position
    log.entry("", LevelRaised(2), SegmentSealed(last))
    right = checkpoint_at(log, count).digest
    log.entry("", HistoryCut(last, log.now_ms, digest or right))
    return write_cut_node(tmp_path, "n1", log, count)


def test_s24_a_checkpoint_without_the_digest_of_the_log_is_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert verify([cut_by_event(tmp_path / "right")], spark=spark).findings == ()

    report = verify([cut_by_event(tmp_path / "wrong", bytes(40))], spark=spark)

    assert [finding.kind for finding in report.findings] == ["checkpoint"]


def test_s24_checkpoints_that_differ_between_nodes_are_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = write_cut_node(tmp_path / "n1", "n1", BUSY, CUT)
    two = write_cut_node(tmp_path / "n2", "n2", BUSY, CUT)
    other = checkpoint_at(BUSY, CUT)
    other = other._replace(state=other.state._replace(backed_up=7))
    write_checkpoint(two / "segments", other)

    report = verify([one, two], spark=spark)

    assert ("checkpoint", "n2") in {(f.kind, f.node) for f in report.findings}


def test_s24_a_damaged_checkpoint_is_found_and_another_node_is_folded(
    spark: SparkSession, tmp_path: Path
) -> None:
    dirs = [write_cut_node(tmp_path / name, name, BUSY, CUT) for name in ("n1", "n2")]
    path = dirs[0] / "segments" / checkpoint_name(AT)
    path.write_bytes(path.read_bytes()[:-3])

    report = verify(dirs, spark=spark)

    assert [(f.kind, f.node) for f in report.findings] == [("checkpoint", "n1")]
    assert report.digest == digest_of(BUSY.state)


def test_s24_what_was_acknowledged_before_the_cut_is_not_called_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = write_cut_node(tmp_path / "n1", "n1", BUSY, CUT)
    behind = next(r for r in BUSY.records[CUT:] if r.request_id)
    lines: list[dict[str, object]] = [
        {"request_id": "r1", "group": "g0", "kind": "join", "index": 2},
        {"request_id": "r2", "group": "g0", "kind": "join"},
        {"request_id": behind.request_id, "group": behind.group_id, "kind": "commit"},
    ]
    witness = tmp_path / "witness"
    witness.write_text("".join(json.dumps(line) + "\n" for line in lines))

    report = verify([folder], witness=[witness], spark=spark)
    assert report.findings == ()
    assert len([note for note in report.notes if "acknowledged" in note]) == 2

    lines.append({"request_id": "never", "group": "g0", "kind": "commit", "index": AT.index + 3})
    witness.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = verify([folder], witness=[witness], spark=spark).findings
    assert {(f.kind, f.group) for f in found} == {("lost", "g0")}


def test_s24_a_state_from_before_the_checkpoint_is_refused_with_where_the_log_begins(
    spark: SparkSession, tmp_path: Path
) -> None:
    cut = write_cut_node(tmp_path / "n1", "n1", BUSY, CUT)
    early = Position(AT.index - 3, 0)
    place = rf"begins at the checkpoint at {AT.index}\.{AT.ordinal}"
    with pytest.raises(ValueError, match=place):
        state([cut], at=early, spark=spark)
    with pytest.raises(ValueError, match=place):
        state([cut], log_time_ms=BUSY.records[3].log_time_ms, spark=spark)
    with pytest.raises(ValueError, match=place):
        verify([cut], expected_digest=Expected(early.index), spark=spark)

    whole = write_node(tmp_path / "n2", "n2", BUSY.rows)
    assert state([cut, whole], at=early, spark=spark).applied_index == early.index
    assert state([cut], spark=spark) == BUSY.state


def owned_log() -> EventLog:
    """Stable at 500 ms with b released at 600; a restarts at 700, and a join phase opens at 800."""
    log = formed()
    two_static_members(log)
    log.entry("g", released("b", "b1"))
    log.entry("g", swapped("a", "a1", "a2"))
    log.entry("g", rebalance_started("more"))
    log.entry("g", swapped("a", "a2", "a3"))
    log.entry("g", generation(2, "a3", "b1"))
    log.entry("g", assigned(2, a3=(0, 1), b1=(2, 3)))
    log.entry("g", committed(0, 1))
    return log


@pytest.mark.parametrize(
    ("count", "at_ms", "owned"),
    [
        (8, 600, {("a", 0, "replaced"), ("a", 1, "replaced")}),
        (10, 800, {("a", 0, "replaced"), ("a", 1, "replaced")}),
        (11, 900, set()),
        (12, 1000, set()),
    ],
)
def test_s24_what_was_owned_at_the_cut_is_owned_from_there_on(
    count: int, at_ms: int, owned: set[tuple[str, int, str]], spark: SparkSession, tmp_path: Path
) -> None:
    """A released grant, a swap in an open join phase and a closed one are not in force."""
    log = owned_log()
    node = node_log(write_cut_node(tmp_path, "n1", log, count))

    analysis = analyse(spark, node)

    began = [i for i in analysis.intervals if i.start_ms == log.records[count - 1].log_time_ms]
    assert {(i.owner, i.partition, i.ended) for i in began} == owned
    assert analysis.first_ms == log.records[count - 1].log_time_ms == START_MS + at_ms
    assert {r.owner for r in analysis.restless} <= {"a"}
    assert "begins at the checkpoint" in heading(analysis)
