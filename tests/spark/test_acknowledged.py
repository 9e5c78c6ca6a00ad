"""What clients were told is done must be in the log; a loss is found, whatever the hashes say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast.replay.app import verify
from holdfast.replay.findings import Finding, WrongUse
from holdfast.replay.read.node_logs import node_log
from holdfast.replay.spark.log_tables import rows
from holdfast.replay.verify.acknowledged import (
    check_witnesses,
    missing_positions,
    missing_requests,
    read_changes,
    unreadable_lines,
)
from spark.damage import lost
from spark.event_logs import busy_log, write_node

LOG = busy_log(groups=2, commits=10)


def acknowledged() -> list[dict[str, object]]:
    """Every change that carried a request id, as its client would have written it down."""
    return [
        {
            "request_id": record.request_id,
            "group": record.group_id,
            "kind": "commit",
            "index": record.position.index,
        }
        for record in LOG.records
        if record.request_id and record.position.ordinal == 0
    ]


def write(path: Path, *lines: Mapping[str, object]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def unproven(spark: SparkSession, folder: Path, file: Path) -> list[Finding]:
    """What the witness says alone, without the layers of the verification."""
    lines, table = read_changes(spark, [file]), rows(spark, node_log(folder))
    return [
        *unreadable_lines(lines),
        *missing_requests(lines, table),
        *missing_positions(lines, table),
    ]


def test_nothing_acknowledged_is_missing_from_a_whole_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = write_node(tmp_path / "n1", "n1", LOG.rows)
    half = len(acknowledged()) // 2
    files = [
        write(tmp_path / "one.jsonl", *acknowledged()[:half]),
        write(tmp_path / "two.jsonl", *acknowledged()[half:]),
    ]

    report = verify([folder], witness=files, spark=spark)

    assert report.findings == ()
    assert f"{len(acknowledged())} changes of 2 clients" in report.table()


def test_a_change_that_was_acknowledged_and_is_not_there_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A log cut short is whole in itself: only the witness can tell."""
    victim = next(n for n, r in enumerate(LOG.records) if r.request_id == "c7")
    folder = write_node(tmp_path / "n1", "n1", LOG.rows[:victim])
    file = write(tmp_path / "w.jsonl", *acknowledged()[:16])

    found = unproven(spark, folder, file)

    assert {f.kind for f in found} == {"lost"}
    assert {f.text.split()[1] for f in found} == {"c7", "c8", "c9"}


def test_a_join_is_witnessed_by_the_generation_that_answered_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """S14: `GenerationStarted` carries the request ids of the joins that it serves."""
    folder = write_node(tmp_path / "n1", "n1", LOG.rows)
    line = {"request_id": "join-b1-2", "group": "g0", "kind": "join"}
    other = {**line, "group": "g1"}

    found = unproven(spark, folder, write(tmp_path / "w.jsonl", line, other))

    assert [(f.kind, f.group) for f in found] == [("lost", "g1")]


def test_a_change_without_a_request_id_is_witnessed_by_its_position(
    spark: SparkSession, tmp_path: Path
) -> None:
    victim = next(n for n, r in enumerate(LOG.records) if r.request_id == "c7")
    record = LOG.records[victim]
    folder = write_node(tmp_path / "n1", "n1", lost(LOG.rows, victim + 1))
    line = {"group": record.group_id, "kind": "commit", "index": record.position.index}
    lines = [{**line, "ordinal": 0}, {**line, "ordinal": 1}, line]

    found = unproven(spark, folder, write(tmp_path / "w.jsonl", *lines))

    assert [(f.kind, f.position) for f in found] == [("lost", (record.position.index, 1))]


def test_a_line_that_is_no_witness_is_not_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    folder = write_node(tmp_path / "n1", "n1", LOG.rows)
    path = tmp_path / "w.jsonl"
    path.write_text('{"request_id": "c1", "group": "g1", "kind": "commit"}\n{"request_id": "c')

    found = unproven(spark, folder, path)

    assert [f.kind for f in found] == ["unreadable"]
    assert '{"request_id": "c' in found[0].text


def test_a_witness_file_that_is_not_there_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no witness file .*gone\.jsonl"):
        read_changes(spark, [tmp_path / "gone.jsonl"])


@pytest.mark.parametrize(
    "content", ["# Read me", '{"index": 5, "chain": "00", "digest": "1"}', "[1]", "{}\n\n3"]
)
def test_a_file_of_something_else_is_no_witness_of_a_loss(content: str, tmp_path: Path) -> None:
    """A user gave the file of anchors, and was told that acknowledged changes were lost."""
    (tmp_path / "w.jsonl").write_text(content)

    with pytest.raises(WrongUse, match=r"w\.jsonl is no file of witnesses"):
        check_witnesses([tmp_path / "w.jsonl"])
