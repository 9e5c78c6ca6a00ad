"""A replay compares files and fast sums with what manifests of format 2 say of them (S22)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from holdfast.replay.read.node_logs import NodeLog, node_log, node_logs
from holdfast.replay.spark.log_tables import stored_rows
from holdfast.replay.verify.node_comparison import NodeComparison
from holdfast.replay.verify.spark_reader import SparkReader, fast_hash_column
from holdfast.storage.codec.event_codec import split_chain
from holdfast.storage.segments.fast_hash import fast_hash
from spark.archive_damage import (
    FILE,
    LOG,
    Change,
    copied,
    data,
    on_manifest,
    sound_nodes,
)
from unit.replay.verify.plain_reader import PlainReader

SIGNED = 1 << 64


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("sealed")
    sound_nodes(parent)
    return parent


@pytest.fixture
def nodes(sound: Path, tmp_path: Path) -> list[Path]:
    return copied(sound, tmp_path / "nodes")


def packed_again(node: Path) -> None:
    """All rows as they were, in other bytes."""
    pq.write_table(pq.ParquetFile(data(node)).read(), data(node), compression="gzip")


def of_file(field: str, value: object) -> Change:
    return on_manifest(
        lambda raw: next(c for c in raw["contents"] if c["file"] == FILE).update({field: value})
    )


KINDS: list[tuple[Change, str, str]] = [
    (packed_again, "bytes", FILE),
    (of_file("sha256", "0" * 64), "bytes", FILE),
    (of_file("size", 7), "bytes", FILE),
    (of_file("rows", 7), "manifest", "manifest.json"),
    (of_file("sha256", "none"), "manifest", "manifest.json"),
    (of_file("size", -1), "manifest", "manifest.json"),
    (on_manifest(lambda raw: raw["fast_blocks"][0].update(low=1)), "manifest", ""),
    (on_manifest(lambda raw: raw["fast_blocks"].clear()), "manifest", "manifest.json"),
    (on_manifest(lambda raw: raw["contents"].pop()), "manifest", "manifest.json"),
]


@pytest.mark.parametrize(("change", "kind", "file"), KINDS)
def test_what_is_not_as_the_manifest_says_is_named(
    change: Change, kind: str, file: str, nodes: list[Path]
) -> None:
    """On one node of three; no sound one is accused."""
    change(nodes[2])
    comparison = NodeComparison(PlainReader(), node_logs(nodes))

    comparison.run()

    found = comparison.findings
    assert {each.node for each in found} == {"n3"}, found
    assert any(each.kind == kind and each.file.endswith(file) for each in found), found


def test_sound_nodes_have_no_finding(nodes: list[Path], spark: SparkSession) -> None:
    """Spark's sums are those of the manifests, in both functions."""
    comparison = NodeComparison(SparkReader(spark), node_logs(nodes))

    comparison.run()

    assert comparison.findings == []


def test_sums_are_told_of_the_right_segment_whatever_its_folder_is_called(
    sound: Path, spark: SparkSession, tmp_path: Path
) -> None:
    """A number stands for each file in Spark: the hash of its address as a URI."""
    log = node_log(shutil.copytree(sound / "n1", tmp_path / "n 1%41+@ü=&,;'#~"))

    found = {(each.segment, each.block): each.fast for each in SparkReader(spark).fast_sums(log)}

    assert found == {
        (segment.key, told.block): (told.count, told.low, told.high)
        for segment in log.segments
        for told in segment.manifest.fast_blocks
    }


def test_the_hash_of_sql_is_that_of_the_writer(nodes: list[Path], spark: SparkSession) -> None:
    """Two implementations: Spark's in the JVM, and xxHash in the node."""
    log: NodeLog = node_logs(nodes)[0]
    table = stored_rows(spark, log).select("idx", "ordinal", fast_hash_column().alias("hash"))

    found = {(row.idx, row.ordinal): row.hash % SIGNED for row in table.collect()}

    assert found == {
        tuple(row.position): fast_hash(row.position, split_chain(row.content)[0])
        for row in LOG.rows
    }
