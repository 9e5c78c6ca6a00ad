"""A generated history is proven by Spark as a node's is, and leads to the state of its anchor."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession

from holdfast.replay.app import Expected, verify
from holdfast.replay.generate.plan import Plan
from holdfast.replay.generate.write import ANCHOR, WITNESS, write_history


def test_a_generated_history_verifies_and_its_anchor_is_true(
    spark: SparkSession, tmp_path: Path
) -> None:
    """S3, S13–S15, S22: all checks, both group types, the witness, the digest at the last index."""
    plan = Plan(1_500, groups=8, giant=0.3, seed=3, segment_events=800)
    folder = write_history(plan, tmp_path / "made").folder
    anchor = json.loads((folder / ANCHOR).read_text())
    digest, chain = int(anchor["digest"], 16), bytes.fromhex(anchor["chain"])
    published = Expected(anchor["index"], digest=digest, chain=chain)

    nodes = [folder / f"node-{n}" for n in (1, 2, 3)]
    report = verify(
        nodes,
        expected_digest=published,
        witness=[folder / WITNESS],
        anchors=[folder / ANCHOR],
        spark=spark,
    )

    assert report.passed, report.table()
    assert report.records == 1_500
    assert report.digest == digest
    covered = {check.name: check.covered for check in report.checks}
    assert covered["anchors"] == "chain and digest of 1 of 1"
