"""Each way to damage one record is found, at its position and nowhere else (S22)."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from holdfast.coordinator.model.ids import Position
from holdfast.replay.app import verify
from holdfast.replay.findings import Finding
from holdfast.replay.read.node_logs import NodeLog, missing_ranges, node_log, node_logs
from holdfast.replay.spark.log_tables import rows
from holdfast.replay.verify import gaps, hashes
from holdfast.replay.verify.fold_job import fold
from holdfast.replay.verify.spark_reader import SparkReader
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import segments_in
from spark.damage import Damage, damage_after_sealing, duplicated, flipped, lost, swapped
from spark.event_logs import busy_log, write_node, write_nodes

LOG = busy_log()
VICTIM = next(n for n, r in enumerate(LOG.records) if r.request_id == "c13")
AT = LOG.rows[VICTIM].position
NEXT = LOG.rows[VICTIM + 1].position

DAMAGES = [lost, duplicated, swapped, flipped]


def between_nodes(spark: SparkSession, logs: Sequence[NodeLog]) -> list[Finding]:
    common = hashes.Comparable(min(log.last for log in logs), ())
    sums = SparkReader(spark).block_sums(logs, common)
    assert hashes.against_manifests(logs, sums) == []
    blocks = hashes.differing_blocks(logs, sums)
    return hashes.judged(SparkReader(spark).differing_places(logs, common, blocks), logs)


def of_one_node(spark: SparkSession, log: NodeLog) -> list[Finding]:
    table = rows(spark, log)
    folded = fold(spark, log)
    found = [*gaps.ordinal_gaps(table), *gaps.sequence_gaps(table), *folded.findings()]
    folded.release()
    return found


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lost, [("lost", AT)]),
        (duplicated, [("duplicated", AT)]),
        (swapped, [("changed", AT), ("changed", NEXT)]),
        (flipped, [("changed", AT)]),
    ],
)
def test_damage_on_one_node_of_three_is_found_there_and_nowhere_else(
    damage: Damage, expected: list[tuple[str, Position]], spark: SparkSession, tmp_path: Path
) -> None:
    """The damaged node sealed what it had, so its own manifest says nothing."""
    write_nodes(tmp_path, LOG, nodes=2)
    write_node(tmp_path / "n3", "n3", damage(LOG.rows, VICTIM))

    found = between_nodes(spark, node_logs(sorted(tmp_path.iterdir())))

    assert [(f.kind, f.position) for f in found] == expected
    assert {f.node for f in found} == {"n3"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_after_sealing_contradicts_the_node_s_own_manifest(
    damage: Damage, spark: SparkSession, tmp_path: Path
) -> None:
    damage_after_sealing(tmp_path, "n1", LOG.rows, damage(LOG.rows, VICTIM))
    log = node_log(tmp_path)

    sums = SparkReader(spark).block_sums([log], hashes.Comparable(log.last, ()))
    found = hashes.against_manifests([log], sums)

    assert [(f.kind, f.node) for f in found] == [("manifest", "n1")]


@pytest.mark.parametrize(
    ("damage", "kind", "at"),
    [
        (lost, "gap", AT),
        (duplicated, "duplicated", AT),
        (swapped, "payload", AT),
        (flipped, "chain", AT),
    ],
)
def test_a_single_log_shows_its_damage_by_itself(
    damage: Damage, kind: str, at: Position, spark: SparkSession, tmp_path: Path
) -> None:
    """Without peers: by counts, chains, and the position that a payload carries (S3)."""
    log = node_log(write_node(tmp_path, "n1", damage(LOG.rows, VICTIM)))

    found = of_one_node(spark, log)

    assert (kind, at) in {(f.kind, f.position) for f in found}


def test_a_log_without_damage_shows_none(spark: SparkSession, tmp_path: Path) -> None:
    logs = node_logs(write_nodes(tmp_path, LOG, nodes=3, cut_at=(20, 70)))

    assert between_nodes(spark, logs) == []
    assert of_one_node(spark, logs[0]) == []


def test_a_rewritten_past_breaks_the_chain_even_where_all_nodes_agree(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Equal hashes on all nodes say that they are alike, not that nobody rewrote them all (S3)."""
    logs = node_logs(
        [write_node(tmp_path / n, n, flipped(LOG.rows, VICTIM)) for n in ("n1", "n2", "n3")]
    )

    assert between_nodes(spark, logs) == []
    assert ("chain", AT) in {(f.kind, f.position) for f in of_one_node(spark, logs[0])}


def test_a_column_that_contradicts_its_payload_is_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The hashes cover payloads; SQL reads the columns beside them."""
    folder = write_node(tmp_path, "n1", LOG.rows)
    for file in segments_in(folder / "segments")[0].glob("*.parquet"):
        table = pq.read_table(file)
        seen = table["request_id"].to_pylist()
        if "c13" in seen:
            old = table["generation"].to_pylist()
            forged = [3 if r == "c13" else g for r, g in zip(seen, old, strict=True)]
            at = table.schema.get_field_index("generation")
            column = pa.array(forged, pa.int32())
            pq.write_table(table.set_column(at, table.schema.field(at), column), file)

    found = of_one_node(spark, node_log(folder))

    assert [(f.kind, f.position) for f in found] == [("payload", AT), ("payload", NEXT)]
    assert "generation" in found[0].text


def test_a_segment_that_one_node_lacks_is_named_before_anything_is_read(tmp_path: Path) -> None:
    dirs = write_nodes(tmp_path, LOG, nodes=3, cut_at=(20, 70))
    shutil.rmtree(segments_in(dirs[1] / "segments")[1])

    assert missing(dirs) == {
        "n1": [],
        "n2": [(LOG.rows[20].position, LOG.rows[69].position)],
        "n3": [],
    }


def missing(dirs: list[Path]) -> dict[str, list[tuple[Position, Position]]]:
    return {n: [(r.first, r.last) for r in g] for n, g in missing_ranges(node_logs(dirs)).items()}


def test_a_file_that_is_no_parquet_any_more_is_named_and_the_rest_still_checked(
    spark: SparkSession, tmp_path: Path
) -> None:
    dirs = write_nodes(tmp_path, LOG, nodes=3, cut_at=(20,))
    victim = next(segments_in(dirs[2] / "segments")[1].glob("*.parquet"))
    victim.write_bytes(victim.read_bytes()[:-100])

    report = verify(dirs, spark=spark)

    assert not report.passed
    assert {(f.kind, f.node) for f in report.findings} == {("unreadable", "n3"), ("missing", "n3")}
    assert str(victim) in {finding.file for finding in report.findings}
    assert report.records == len(LOG.rows)


def test_a_manifest_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = write_node(tmp_path, "n1", LOG.rows, cut_at=(20,))
    manifest = segments_in(folder / "segments")[0] / "manifest.json"
    manifest.write_text(manifest.read_text()[:50])

    found = node_log(folder).findings

    assert [(f.kind, f.node) for f in found] == [("unreadable", "n1")]
    assert str(manifest.parent) in found[0].text


def test_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    write_segment(tmp_path / "a", LOG.rows, "one", "n1")
    write_segment(tmp_path / "b", LOG.rows, "two", "n1")

    with pytest.raises(ValueError, match="several clusters: one, two"):
        node_logs([tmp_path / "a", tmp_path / "b"])


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is no directory"):
        node_log(tmp_path / "gone")
