"""The state, made in three ways: live, by the fold in Spark, and by SQL; and at any position."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.replay.app import Expected, state, verify
from holdfast.replay.read.log_rows import Cut
from holdfast.replay.read.node_logs import NodeLog, node_log
from holdfast.replay.spark.log_tables import rows
from holdfast.replay.verify.compare import against_live, sql_against_fold
from holdfast.replay.verify.fold_job import Folded, fold
from holdfast.replay.verify.sql.entries import cluster_state, principals_begin, state_entries
from holdfast.replay.verify.sql.state import living_rows
from holdfast.storage.codec.state_image import digest_of
from spark.event_logs import (
    EventLog,
    busy_log,
    committed,
    eventful_log,
    write_node,
    write_nodes,
)

LOG = eventful_log()
KINDS = ("generation", "member", "instance", "grant", "offset", "cluster", "setting", "topic")


def whole(log: DataFrame) -> DataFrame:
    """The state of groups, and what belongs to none."""
    groups = state_entries(living_rows(log).cache(), principals_begin(log))
    return groups.unionByName(cluster_state(log).entries)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> NodeLog:
    folder = tmp_path_factory.mktemp("node")
    return node_log(write_node(folder, "n1", LOG.rows, cut_at=(9, 30)))


@pytest.fixture(scope="module")
def folded(spark: SparkSession, node: NodeLog) -> Folded:
    return fold(spark, node, Cut(Position(LOG.index, 0)), records=True)


@pytest.fixture(scope="module")
def sql(spark: SparkSession, node: NodeLog) -> DataFrame:
    """The state by SQL, computed once: all comparisons are with the same rows."""
    return whole(rows(spark, node).cache()).localCheckpoint()


def test_the_folded_state_is_the_live_state(folded: Folded) -> None:
    assert folded.findings() == []
    assert folded.state() == LOG.state


def test_the_folded_digest_is_the_one_that_a_node_publishes(folded: Folded) -> None:
    """S3: workers sum up a group's records as `codec.state_image` does, and Spark these sums."""
    assert folded.digest() == digest_of(LOG.state)
    assert folded.head() == (LOG.records[-1].position, LOG.heads[""])
    assert folded.count() == len(LOG.records)


def test_sql_comes_to_the_same_state_as_evolve(sql: DataFrame, folded: Folded) -> None:
    assert sql_against_fold(sql, folded.entries(), set()) == []
    kinds = {row.kind for row in sql.select("kind").distinct().collect()}
    assert set(KINDS) <= kinds


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_evolve_has_otherwise_is_found(
    kind: str, sql: DataFrame, folded: Folded
) -> None:
    """The comparison has teeth: a defect of evolve in one key of each kind."""
    first = folded.entries().where(f.col("kind") == kind).orderBy("grp", "key").first()
    assert first is not None
    broken = (f.col("grp") == first.grp) & (f.col("kind") == kind) & (f.col("key") == first.key)
    wrong = f.when(broken, f.lit("wrong")).otherwise(f.col("value"))

    found = sql_against_fold(sql, folded.entries().withColumn("value", wrong), set())

    assert [(x.kind, x.group) for x in found] == [("state", first.grp)]
    assert kind in found[0].text


def test_a_digest_that_a_node_published_otherwise_is_found(folded: Folded) -> None:
    groups = {"g": folded.group_digests(["g"])["g"], "h": 1}
    expected = Expected(LOG.index, digest=1, chain=bytes(32), groups=groups)

    found = against_live(folded, expected)

    assert [(x.kind, x.group) for x in found] == [("digest", ""), ("digest", ""), ("digest", "h")]


def test_a_state_of_the_past_is_the_one_that_was_live_then(
    spark: SparkSession, tmp_path: Path
) -> None:
    """By position, and by log time (S8): everything up to it, nothing after it."""
    log, live = EventLog(), dict[int, State]()
    for record in busy_log(groups=2, commits=6).records:
        log.entry(record.group_id, record.event)
        live[log.index] = log.state
    folder = write_node(tmp_path, "n1", log.rows, cut_at=(5,))

    for index in (1, 4, 11, log.index):
        now_ms = live[index].log_time_ms
        assert state([folder], at=Position(index, 0), spark=spark) == live[index]
        assert state([folder], log_time_ms=now_ms, spark=spark) == live[index]


def test_a_whole_cluster_verifies_against_what_a_node_published(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected = Expected(LOG.index, LOG.state.log_time_ms, digest_of(LOG.state), LOG.heads[""])

    report = verify(write_nodes(tmp_path, LOG, nodes=3), expected_digest=expected, spark=spark)

    assert report.findings == ()
    assert report.passed
    assert report.records == len(LOG.records)
    assert f"{digest_of(LOG.state):016x}" in report.table()


def test_a_digest_published_in_mid_log_is_compared_at_its_index(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = busy_log(groups=1, commits=4)
    expected = Expected(log.index, digest=digest_of(log.state), chain=log.heads[""])
    log.entry("g0", committed(0, 99))
    folder = write_node(tmp_path, "n1", log.rows)

    report = verify([folder], expected_digest=expected, spark=spark)

    assert report.findings == ()
    assert report.last == Position(log.index, 0)
    assert report.digest == digest_of(log.state)


def test_nothing_to_verify_is_not_verified(spark: SparkSession, tmp_path: Path) -> None:
    report = verify([tmp_path], spark=spark)

    assert not report.passed
    assert [x.kind for x in report.findings] == ["missing"]
    assert str(tmp_path) in str(report.findings[0]), "several nodes' folders may have one name"
    assert "log export" in report.notes[0], "it says what to do about it"


def test_a_directory_whose_name_is_a_pattern_to_spark_is_read_as_it_is_called(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark takes a path for a pattern, and would find other files, or none."""
    folder = write_node(tmp_path / r"n [1] {a,b} c? d* \e", "n1", LOG.rows)
    write_node(tmp_path / "n 1 a c_ d", "n1", LOG.rows)
    assert rows(spark, node_log(folder)).count() == len(LOG.rows)
