"""What `replay_worker` measures of a log: each part of the replay, and its peers.

Knows the product as a user's program does, and what peers need for the same; measures nothing.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
import polars as pl
import pyarrow as pa
from pyspark.sql import SparkSession

from holdfast.coordinator.kernel.evolve import evolve_apart
from holdfast.coordinator.model.state import Group
from holdfast.replay.analyse.queries import analyse
from holdfast.replay.app import verify
from holdfast.replay.read.column_check import contradicting
from holdfast.replay.read.log_batches import decoded, read_batches, read_in_order
from holdfast.replay.read.log_rows import Cut
from holdfast.replay.read.node_logs import NodeLog, buckets_of, node_log, sources_by_segment
from holdfast.replay.report import writer
from holdfast.replay.spark.log_tables import rows
from holdfast.replay.verify.fold_job import fold
from holdfast.replay.verify.spark_reader import SparkReader
from holdfast.replay.verify.sql.entries import cluster_state, principals_begin, state_entries
from holdfast.replay.verify.sql.state import living_rows
from holdfast.replay.views.script import script
from holdfast.storage.codec.event_codec import CHAIN_START, chain_hash
from holdfast.storage.codec.state_image import group_contents
from holdfast.storage.segments.segments import BLOCK_INDEXES

LOW_HALF: Final = 4_294_967_295
HASHES: Final = (
    "SELECT idx // $block, count(*), sum(h & $low), sum(h >> 32) FROM "
    "(SELECT idx, hash(idx, ordinal, payload) AS h FROM log) GROUP BY 1"
)


def block_hashes(spark: SparkSession, log: NodeLog) -> None:
    """The sums of record hashes by block, as a verification of sound nodes makes them."""
    SparkReader(spark).fast_sums(log)


def folded(spark: SparkSession, log: NodeLog) -> None:
    """Chains, columns, state and its digest, and the state as keys and values."""
    found = fold(spark, log)
    found.findings()
    found.digest()
    found.release()


def sql_state(spark: SparkSession, log: NodeLog) -> None:
    """The state as keys and values, computed by SQL."""
    table = rows(spark, log)
    entries = state_entries(living_rows(table), principals_begin(table))
    whole = entries.unionByName(cluster_state(table).entries)
    whole.write.format("noop").mode("overwrite").save()


def reported(spark: SparkSession, log: NodeLog) -> None:
    """The whole report: page and pictures."""
    with tempfile.TemporaryDirectory() as out:
        writer.write(analyse(spark, log), Path(out))


def plain_loop(_: SparkSession, log: NodeLog) -> None:
    """The fold's functions one after the other: no Spark, no findings, no result."""
    gc.disable()
    groups: dict[str, Group[Any] | None] = {}
    for bucket in buckets_of(log).values():
        for source in bucket.sources:
            for batch in read_batches(source, Cut()):
                _plain_batch(batch, groups)
    for group in groups.values():
        if group is not None:
            list(group_contents(group))
    _plain_chain(log)
    gc.enable()


def _plain_batch(batch: pa.RecordBatch, groups: dict[str, Group[Any] | None]) -> None:
    records = decoded(batch).records
    contradicting(batch, records)
    payloads, chains = (batch.column(name).to_pylist() for name in ("payload", "chain"))
    for record, payload, chain in zip(records, payloads, chains, strict=True):
        chain_hash(chain, payload)
        if record is not None and (name := record.group_id):
            groups[name] = evolve_apart(groups.get(name), record, 1)


def _plain_chain(log: NodeLog) -> None:
    head = CHAIN_START
    for sources in sources_by_segment(log):
        for some in read_in_order(sources, Cut()):
            for payload in some.payloads:
                head = chain_hash(head, payload)


def duckdb_hashes(_: SparkSession, log: NodeLog) -> None:
    """Sums of DuckDB's own hash over the same columns, by the same blocks."""
    files = [path for segment in log.segments for path in segment.files]
    with duckdb.connect(config={"threads": 2}) as base:
        base.read_parquet(files).create_view("log")
        base.execute(HASHES, {"block": BLOCK_INDEXES, "low": LOW_HALF}).fetchall()


def polars_hashes(_: SparkSession, log: NodeLog) -> None:
    """The same by Polars, with its own hash."""
    files = [path for segment in log.segments for path in segment.files]
    hashed = pl.scan_parquet(files).select(
        block=pl.col("idx") // BLOCK_INDEXES, h=pl.struct("idx", "ordinal", "payload").hash()
    )
    halves = ((pl.col("h") & LOW_HALF).sum().alias("low"), (pl.col("h") // (LOW_HALF + 1)).sum())
    hashed.group_by("block").agg(pl.len(), *halves).collect(engine="streaming")


def duckdb_state(_: SparkSession, log: NodeLog) -> None:
    """The same entries by DuckDB: the rules are the same text, translated."""
    with duckdb.connect(config={"threads": 2}) as base:
        base.execute(script(log))
        base.execute("select sum(length(value)) from holdfast.state").fetchall()


PARTS: Final[dict[str, Callable[[SparkSession, NodeLog], None]]] = {
    "hashes": block_hashes,
    "hashes by DuckDB": duckdb_hashes,
    "hashes by Polars": polars_hashes,
    "fold": folded,
    "plain loop": plain_loop,
    "state by SQL": sql_state,
    "state by DuckDB": duckdb_state,
    "report": reported,
}


@contextmanager
def verified_before(spark: SparkSession, log: NodeLog) -> Iterator[Path]:
    """A checkpoint behind nine tenths of a log: what a verification leaves that saw no more."""
    sealed = _folder(log)
    with tempfile.TemporaryDirectory(dir=sealed.parents[1]) as place:
        earlier, checkpoint = Path(place, "earlier"), Path(place, "checkpoint")
        for segment in log.segments[: len(log.segments) * 9 // 10]:
            name = segment.folder.name
            shutil.copytree(sealed / name, earlier / name, copy_function=os.link)
        verified(spark, node_log(earlier), checkpoint)
        yield checkpoint


def verified(spark: SparkSession, log: NodeLog, checkpoint: Path | None = None) -> None:
    """A whole verification, or of what is new behind a checkpoint. Raises RuntimeError if wrong."""
    told = verify([_folder(log)], checkpoint=checkpoint, spark=spark)
    if not told.passed:
        raise RuntimeError(told.table())


def _folder(log: NodeLog) -> Path:
    """The folder of the sealed segments."""
    return Path(str(log.segments[0].folder.parent))
