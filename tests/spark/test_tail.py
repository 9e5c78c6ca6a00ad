"""An exported tail: the whole log is what is sealed and what is not yet, each record once."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from holdfast.replay.app import state, verify
from holdfast.replay.read.node_logs import node_logs
from holdfast.replay.spark.log_tables import rows
from holdfast.storage.segments.segment_writer import write_segment
from spark.event_logs import busy_log, write_node

LOG = busy_log(groups=2, commits=8)
SEALED = 25
TAIL_FROM = 18


def with_tail(folder: Path, node: str, sealed: int = SEALED, tail_from: int = TAIL_FROM) -> Path:
    """A node with `sealed` records in segments and a tail that repeats some of them."""
    write_node(folder, node, LOG.rows[:sealed], cut_at=(10,))
    write_segment(folder / "tail", LOG.rows[tail_from:], "c", node)
    return folder


def test_what_the_tail_repeats_is_counted_once(spark: SparkSession, tmp_path: Path) -> None:
    (log,) = node_logs([with_tail(tmp_path, "n1")])

    places = [(r.idx, r.ordinal) for r in rows(spark, log).select("idx", "ordinal").collect()]

    assert sorted(places) == [tuple(row.position) for row in LOG.rows]
    assert state([tmp_path], spark=spark) == LOG.state._replace(applied_index=LOG.index)


def test_nodes_that_sealed_unequally_far_verify_together(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One node has sealed more, one has no tail: what all have is compared, the rest is noted."""
    write_node(tmp_path / "n2", "n2", LOG.rows[:SEALED], cut_at=(10,))
    dirs = [with_tail(tmp_path / "n1", "n1"), tmp_path / "n2"]
    write_node(tmp_path / "n3", "n3", LOG.rows[:35], cut_at=(10, SEALED))
    dirs.append(tmp_path / "n3")

    report = verify(dirs, spark=spark)

    assert {f.kind for f in report.findings} == {"missing"}
    assert [f.node for f in report.findings] == ["n2"]
    assert report.records == len(LOG.rows)
    assert len([note for note in report.notes if "others lack" in note]) == 2
