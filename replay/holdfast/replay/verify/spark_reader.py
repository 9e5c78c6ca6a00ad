"""Reads the files of nodes with Spark, for `node_comparison`: tasks in workers, SQL in the JVM.

Says the rules of `segments.segments.record_hash` and `segments.fast_hash` again, in SQL. Knows
rows, not which are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from holdfast.coordinator.model.ids import Position
from holdfast.replay.read.fast_sums import fast_sum_rows, shares
from holdfast.replay.read.log_rows import RESULT_ARROW, RESULT_SCHEMA, ResultRow
from holdfast.replay.read.node_logs import NodeLog
from holdfast.replay.read.record_sums import sum_of_row
from holdfast.replay.spark.half_sums import half_sums
from holdfast.replay.spark.log_tables import stored_rows, up_to, within
from holdfast.replay.spark.tasks import Task, is_here, rows_here, run_tasks
from holdfast.replay.verify.hashes import (
    FINDINGS_MAX,
    NOTHING,
    Comparable,
    Place,
    Sum,
)
from holdfast.storage.segments.segments import BLOCK_INDEXES


class SparkReader:
    """A `node_comparison.Reader`."""

    def __init__(self, spark: SparkSession) -> None:
        """Begin with a session that somebody else stops."""
        self._spark = spark

    def run(self, tasks: Sequence[Task]) -> list[ResultRow]:
        """Run tasks, and return the rows of all of them."""
        if not tasks:
            return []
        if is_here(self._spark):
            return [ResultRow(*row) for row in rows_here(tasks)]  # type: ignore[arg-type]  # as tasks yield them
        rows = run_tasks(self._spark, tasks, RESULT_SCHEMA, RESULT_ARROW).collect()
        return [ResultRow(*row) for row in rows]

    def block_sums(self, logs: Sequence[NodeLog], common: Comparable) -> list[Sum]:
        """Sum up the hashes of all stored records by block, in one pass."""
        comparable = f.col("fresh") & _condition(common)
        value = f.col("hash")
        high = f.conv(f.substring(value, 1, 8), 16, 10).cast("bigint")
        low = f.conv(f.substring(value, 9, 8), 16, 10).cast("bigint")
        shared, hashed_as = comparable.alias("common"), hash_column().alias("hash")
        fast = fast_hash_column().alias("fast")
        stored = _all_rows(self._spark, logs)
        hashed = stored.select("node", "segment", _block(), shared, hashed_as, fast)
        parts = hashed.select(
            "node", "segment", "block", "common", "fast", low.alias("lo"), high.alias("hi")
        )
        zero = f.lit(0)
        sums = parts.groupBy("node", "segment", "block").agg(
            f.count("*").alias("n"),
            f.sum("lo").alias("lo"),
            f.sum("hi").alias("hi"),
            f.sum(f.when(f.col("common"), 1).otherwise(zero)).alias("cn"),
            f.sum(f.when(f.col("common"), f.col("lo")).otherwise(zero)).alias("clo"),
            f.sum(f.when(f.col("common"), f.col("hi")).otherwise(zero)).alias("chi"),
            *half_sums("fast", "flo", "fhi"),
        )
        return [
            Sum(
                *(r.node, r.segment, r.block, (r.n, r.lo, r.hi), (r.cn, r.clo, r.chi)),
                fast=(r.n, r.flo, r.fhi),
            )
            for r in sums.collect()
        ]

    def fast_sums(self, log: NodeLog) -> list[Sum]:
        """Sum up the fast hashes alone, in workers."""
        tasks: list[Task] = [partial(fast_sum_rows, share) for share in shares(log)]
        return [
            Sum(log.node, key, told.block, NOTHING, NOTHING, (told.records, told.low, told.high))
            for key, told in map(sum_of_row, self.run(tasks))
        ]

    def differing_places(
        self, logs: Sequence[NodeLog], common: Comparable, blocks: Sequence[int]
    ) -> list[Place]:
        """Open some blocks, and find the first positions at which the nodes differ."""
        wanted = _all_rows(self._spark, logs).where(f.col("fresh") & _condition(common))
        wanted = wanted.where(_block().isin(list(blocks)))
        hashed = wanted.select("node", "idx", "ordinal", "grp", hash_column().alias("hash"))
        copies = f.sort_array(f.collect_list(f.struct("node", "hash"))).alias("copies")
        places = hashed.groupBy("idx", "ordinal").agg(f.min("grp").alias("grp"), copies)
        same = (f.size("copies") == len(logs)) & (f.size(f.array_distinct("copies.hash")) == 1)
        same = same & (f.size(f.array_distinct("copies.node")) == len(logs))
        bad = places.where(~same).orderBy("idx", "ordinal").limit(FINDINGS_MAX)
        return [
            Place(Position(row.idx, row.ordinal), row.grp, [(c.node, c.hash) for c in row.copies])
            for row in bad.collect()
        ]


def hash_column() -> Column:
    """Compute the SHA-256 over position and payload, in hex; its head is the record's hash."""
    index = f.unhex(f.lpad(f.hex("idx"), 16, "0"))
    ordinal = f.unhex(f.lpad(f.hex(f.col("ordinal").cast("bigint")), 8, "0"))
    return f.sha2(f.concat(index, ordinal, f.col("payload")), 256)


def fast_hash_column() -> Column:
    """Compute the hash of position and payload that Spark has built in (`segments.fast_hash`)."""
    return f.xxhash64("idx", "ordinal", "payload")


def _condition(common: Comparable) -> Column:
    """Make the condition that a row can be compared between nodes."""
    missing = [within(place) for place in common.lacking]
    whole = up_to(common.last) & ~up_to(common.after)
    return reduce(lambda one, two: one & ~two, missing, whole)


def _all_rows(spark: SparkSession, logs: Sequence[NodeLog]) -> DataFrame:
    frames = [stored_rows(spark, log).withColumn("node", f.lit(log.node)) for log in logs]
    return reduce(lambda one, two: one.unionByName(two), frames)


def _block() -> Column:
    return f.expr(f"idx div {BLOCK_INDEXES}").alias("block")
