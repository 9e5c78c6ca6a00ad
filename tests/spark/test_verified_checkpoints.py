"""`holdfast replay verify --checkpoint`: what Spark does behind a checkpoint, and what is told.

What a checkpoint is believed for, and what is found without Spark: tests/unit/replay/checkpoint.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from holdfast.cli.main import main
from holdfast.replay import app
from holdfast.replay.findings import Report
from holdfast.replay.verify.compare import Expected
from holdfast.storage.codec.state_image import DIGEST_SPAN, digest_of, group_contents, weight
from holdfast.storage.segments.segment_writer import write_segment
from spark.damage import lost
from spark.event_logs import eventful_log, write_node
from unit.replay.checkpoint.plain_run import run

LOG = eventful_log()
CUT = len(LOG.rows) // 2


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    """Two nodes; the second half of the log comes later. The first run needs no Spark."""
    return [write_node(tmp_path / name, name, LOG.rows[:CUT]) for name in ("n1", "n2")]


@pytest.fixture(autouse=True)
def _one_jvm(one_jvm: None) -> None:
    del one_jvm


def verify(nodes: list[Path], *more: str) -> Result:
    dirs = [word for node in nodes for word in ("--node-dir", str(node))]
    checkpoint = str(nodes[0].parent / "checkpoint")
    words = ["replay", "verify", *dirs, "--checkpoint", checkpoint, *more]
    return CliRunner().invoke(main, words)


def sealed(nodes: list[Path], start: int, end: int) -> None:
    for node in nodes:
        write_segment(node / "segments", LOG.rows[start:end], "c", node.name)


def test_s24_both_implementations_go_on_from_the_checkpoint_to_the_same_state(
    nodes: list[Path], tmp_path: Path
) -> None:
    """And leave one from which a third run goes on; what was acknowledged before is told."""
    assert run(nodes, tmp_path / "checkpoint").report.passed
    sealed(nodes, CUT, CUT + 20)
    witness = tmp_path / "witness"
    witness.write_text('{"request_id": "old", "group": "g", "kind": "join", "index": 1}')

    done = verify(nodes, "--json", "--witness", str(witness))

    assert done.exit_code == 0, done.stdout
    assert "\r" not in done.stderr, "no line is rewritten where a program reads"
    report = json.loads(done.stdout)
    last = LOG.rows[CUT - 1].position
    place = {"index": last.index, "ordinal": last.ordinal}
    assert report["checkpoint"] == report["not_read_again"]["last"] == place
    assert report["records"] == 20
    assert any("1 acknowledged changes lie before" in note for note in report["notes"])
    sealed(nodes, CUT + 20, len(LOG.rows))
    third = run(nodes, tmp_path / "checkpoint")
    assert third.report.passed
    assert third.report.records == len(LOG.rows) - CUT - 20
    assert third.state == LOG.state._replace(applied_index=LOG.records[-1].position.index)


def test_s3_what_was_published_of_a_group_that_lies_still_is_compared(
    nodes: list[Path], tmp_path: Path, spark: SparkSession
) -> None:
    """It has no new record, and so is taken up for this alone (docs/adr/0067)."""
    assert run(nodes, tmp_path / "checkpoint").report.passed
    sealed(nodes, CUT, len(LOG.rows))
    moved = {record.group_id for record in LOG.records[CUT:]}
    still = next(name for name in sorted(LOG.state.groups) if name not in moved)
    right = sum(map(weight, group_contents(LOG.state.groups[still]))) % DIGEST_SPAN
    last = LOG.records[-1].position.index

    def published(digest: int) -> Report:
        told = Expected(last, groups={still: digest})
        checkpoint = tmp_path / "checkpoint"
        return app.verify(nodes, expected_digest=told, checkpoint=checkpoint, spark=spark)

    wrong = published(right ^ 1)
    assert [(finding.kind, finding.group) for finding in wrong.findings] == [("digest", still)]
    done = published(right)
    assert done.passed, done.table()
    assert done.group_digests == {still: right}
    assert done.digest == digest_of(LOG.state._replace(applied_index=last))


def test_s3_a_record_that_is_lost_right_behind_the_checkpoint_is_found(
    nodes: list[Path], tmp_path: Path
) -> None:
    """Only the checkpoint tells that something was there; a terminal sees how far it has come."""
    assert run(nodes, tmp_path / "checkpoint").report.passed
    for node in nodes:
        write_segment(node / "segments", lost(LOG.rows, CUT)[CUT:], "c", node.name)

    done = verify(nodes, "--progress")

    assert done.exit_code == 1, done.stderr
    assert "not read again: " in done.stdout
    assert "chain: " in done.stdout
    assert "\r\x1b[Kfold by evolve, chains, payloads" in done.stderr


def test_full_alone_is_wrong_usage(nodes: list[Path]) -> None:
    done = CliRunner().invoke(main, ["replay", "verify", "--node-dir", str(nodes[0]), "--full"])

    assert done.exit_code == 2
    assert "--full needs --checkpoint DIR" in done.stderr
