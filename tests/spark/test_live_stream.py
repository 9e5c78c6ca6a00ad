"""A running cluster that is followed: the same files and alerts as from its archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from holdfast.coordinator.model.events import MemberExpired, SegmentSealed
from holdfast.replay.findings import WrongUse
from holdfast.replay.stream.endings import Unreached
from holdfast.replay.stream.followed import Segments, ServedLog
from holdfast.replay.stream.served import Nodes
from holdfast.replay.stream.told_batches import Batch
from spark.event_logs import (
    EventLog,
    formed,
    rebalance_started,
    swapped,
    two_static_members,
    write_node,
)
from spark.followed_logs import alerts, events, followed, forget_commit
from spark.served_logs import serves, serving


def restless(log: EventLog, first: int, last: int) -> None:
    """Let instance a's processes come and go."""
    for number in range(first, last):
        log.entry("g", swapped("a", f"a{number}", f"a{number + 1}"))


def begun() -> EventLog:
    log = formed()
    two_static_members(log)
    restless(log, 1, 3)
    log.entry("", SegmentSealed(log.records[-1].position))
    return log


def goes_on(log: EventLog) -> None:
    restless(log, 3, 5)
    log.entry("g", rebalance_started("b is lost"), MemberExpired("b1", "session"))
    log.silent_entry()
    log.entry("", SegmentSealed(log.records[-1].position), after_ms=5_000)
    restless(log, 5, 7)


def of_another() -> EventLog:
    """The log of another cluster, which goes further than ours ever will."""
    log = begun()
    goes_on(log)
    restless(log, 7, 19)
    return log


def expected(spark: SparkSession, log: EventLog, tmp_path: Path) -> tuple[pa.Table, Any]:
    """What the archive gives for the same log, at once."""
    folder, out = write_node(tmp_path / "sealed", "n1", log.rows), tmp_path / "expected"
    followed(spark, Segments(folder), out)
    return events(out), alerts(out)


def test_each_event_once_over_batches_restarts_and_a_batch_that_is_done_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Row for row, column for column, and alert for alert what the archive gives."""
    log, out = begun(), tmp_path / "out"
    node = serves(log)
    with serving(node) as nodes:
        live = ServedLog.of(nodes)
        first = followed(spark, live, out, rows_max=6)
        nothing_new = followed(spark, live, out, rows_max=6)
        goes_on(log)
        second = followed(spark, live, out, rows_max=6)
        before = alerts(out)
        last = second[-1].number
        forget_commit(out, last)
        again = followed(spark, live, out, rows_max=6)

    rows, found = expected(spark, log, tmp_path)
    assert [each.number for each in (*first, *second)] == list(range(last + 1))
    assert nothing_new == []
    assert max(each.events for each in (*first, *second)) == 6
    assert [each.number for each in again] == [last]
    assert events(out).num_rows == len(log.records)
    assert events(out).equals(rows.cast(events(out).schema))
    assert alerts(out) == before == found
    assert {each["kind"] for each in found} == {"restless", "ownerless"}


def test_what_comes_after_the_start_waits_for_the_next_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    """`once` fixes the end when it starts, however many batches it takes to get there."""
    log, out = begun(), tmp_path / "out"
    there = len(log.records)
    with serving(serves(log)) as nodes:
        live = ServedLog.of(nodes)

        def grow(batch: Batch) -> None:
            restless(log, 3 + batch.number, 4 + batch.number)

        found = followed(spark, live, out, rows_max=6, told=grow)

    assert len(log.records) > there
    assert sum(each.events for each in found) == events(out).num_rows == there


def test_an_archive_and_its_cluster_go_on_in_one_output(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Offsets are positions of the log, so what a cluster has cut off is read of an archive."""
    log, out = begun(), tmp_path / "out"
    folder = write_node(tmp_path / "n1", "n1", log.rows)
    cut_at = log.index + 1
    goes_on(log)
    with serving(serves(log, first=cut_at)) as nodes:
        live = ServedLog.of(nodes)
        with pytest.raises(ValueError, match="with --node-dir and the same --out"):
            followed(spark, live, tmp_path / "cut")
        followed(spark, Segments(folder), out)
        followed(spark, live, out)

    rows, found = expected(spark, log, tmp_path)
    assert events(out).equals(rows.cast(events(out).schema))
    assert alerts(out) == found


def test_a_record_that_a_node_leaves_out_ends_the_stream_before_it_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    """S3: the chain over all records tells at the next of the cluster's own."""
    log, out = begun(), tmp_path / "out"
    with serving(serves(log)) as nodes:
        live = ServedLog.of(nodes)
        followed(spark, live, out)
        written = events(out)
        goes_on(log)
        del log.rows[written.num_rows]
        with pytest.raises(ValueError, match=r"^the records up to .* are not all there are"):
            followed(spark, live, out)

    assert events(out).equals(written)


def test_another_cluster_and_one_that_is_away_are_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, out = begun(), tmp_path / "out"
    with serving(serves(log)) as nodes:
        live = ServedLog.of(nodes)
        followed(spark, live, out)
        with (
            serving(serves(of_another())) as others,
            pytest.raises(WrongUse, match="is of cluster"),
        ):
            followed(spark, ServedLog.of(others)._replace(cluster_id="d"), out)
        goes_on(log)
        followed(spark, live, out)
        assert len(events(out)) == len(log.records), "the wrong call has spoiled nothing"
    monkeypatch.setattr("holdfast.replay.stream.served.UNCONNECTED_MS", 200)

    with pytest.raises(Unreached, match="no node served the log"):
        ServedLog.of(Nodes(nodes.addresses))
