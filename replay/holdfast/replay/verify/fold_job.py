"""Run `group_fold` and `cluster_fold` on Spark, and collect their results.

Knows rows of results, not how they are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.replay.checkpoint.parts import (
    PART,
    STOOD,
    Stand,
    Stood,
    stood,
    stops_in,
    stops_of,
)
from holdfast.replay.findings import Finding
from holdfast.replay.read.log_rows import (
    COUNT,
    ENTRY,
    FINDING,
    HEAD,
    RECORD,
    RESULT_ARROW,
    RESULT_SCHEMA,
    Bucket,
    Cut,
    ResultRow,
)
from holdfast.replay.read.node_logs import NodeLog, buckets_of, sources_by_segment
from holdfast.replay.spark.tasks import Task, run_tasks
from holdfast.replay.verify.anchor_marks import (
    MARK,
    RESTORE,
    Mark,
    Reached,
    Restore,
    restores_in,
    summed,
)
from holdfast.replay.verify.cluster_fold import fold_cluster
from holdfast.replay.verify.group_fold import fold_bucket
from holdfast.storage.codec.state_image import restore
from holdfast.storage.segments.segment_reader import CLUSTER_FILE
from holdfast.storage.segments.segments import BUCKETS, bucket_file

_SPAN: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class Folded:
    """The outcome of a fold; Spark keeps `rows` until `release`."""

    rows: DataFrame
    node: str = ""
    """Whose log it is."""

    def findings(self) -> list[Finding]:
        """Return the workers' findings, in the order of the log."""
        found = self.rows.where(f.col("tag") == FINDING).orderBy("idx", "ordinal").collect()
        return [
            Finding(r.kind, self.node, r.grp, Position(r.idx, r.ordinal), r.text, r.key)
            for r in found
        ]

    def entries(self) -> DataFrame:
        """Return the groups as keys and values, in the form of `sql.state`."""
        entries = self.rows.where(f.col("tag") == ENTRY)
        return entries.select("grp", "kind", "key", f.col("text").alias("value"))

    def head(self) -> tuple[Position, bytes]:
        """Return the last position, and the head of the chain over all records."""
        row = self.rows.where(f.col("tag") == HEAD).collect()[0]
        return Position(row.idx, row.ordinal), bytes(row.content)

    def count(self) -> int:
        """Return the number of records folded."""
        total = self.rows.where(f.col("tag") == COUNT).agg(f.sum("idx").alias("n")).collect()
        return int(total[0].n or 0)

    def digest(self) -> int:
        """Compute the digest of the whole state, by the rules of `codec.state_image`."""
        return sum(self.group_digests(None).values()) % _SPAN

    def group_digests(self, groups: Sequence[str] | None) -> dict[str, int]:
        """Sum up the state records of each group, or of some; "" is the rest of the state."""
        records = self.rows.where(f.col("tag") == RECORD)
        if groups is not None:
            records = records.where(f.col("grp").isin(list(groups)))
        hashed = records.select("grp", f.sha2("content", 256).alias("hash"))
        halves = [
            f.sum(f.conv(f.substring("hash", start, 8), 16, 10).cast("bigint")).alias(name)
            for start, name in ((1, "high"), (9, "low"))
        ]
        sums = hashed.groupBy("grp").agg(*halves).collect()
        return {r.grp: ((r.high << 32) + r.low) % _SPAN for r in sums}

    def reached(self, marks: Sequence[Mark]) -> dict[Mark, Reached]:
        """Return chain and digest at each of the marks that the fold was given."""
        rows = self.rows.where(f.col("tag") == MARK).select(*ResultRow._fields).collect()
        return summed([ResultRow(*row) for row in rows], marks)

    def restores(self) -> list[Restore]:
        """Return the restores of which the log tells (S13)."""
        rows = self.rows.where(f.col("tag") == RESTORE).select(*ResultRow._fields).collect()
        return restores_in([ResultRow(*row) for row in rows])

    def stands(self, stands: Sequence[Stand]) -> list[Stood]:
        """Return place, chain and digest at each of the stands that the fold was given."""
        rows = self.rows.where(f.col("tag") == STOOD).select(*ResultRow._fields).collect()
        return stood([ResultRow(*row) for row in rows], stands)

    def parts(self) -> Iterator[ResultRow]:
        """Yield the parts of the checkpoint that is to be kept; few rows are here at once."""
        rows = self.rows.where(f.col("tag") == PART).select(*ResultRow._fields)
        return (ResultRow(*row) for row in rows.toLocalIterator())

    def state(self) -> State:
        """Build the coordinator's state. For states that fit into the driver's memory."""
        records = self.rows.where(f.col("tag") == RECORD).select("content").collect()
        return restore(bytes(record.content) for record in records)

    def release(self) -> None:
        """Let Spark drop the rows."""
        self.rows.unpersist()


def fold(
    spark: SparkSession,
    log: NodeLog,
    cut: Cut | None = None,
    marks: Sequence[Mark] = (),
    stands: Sequence[Stand] = (),
) -> Folded:
    """Fold a node's log from where it begins, whole or up to a cut.

    `marks`: where chain and digest are wanted as well, in order (`Folded.reached`). `stands`: ends
    of segments at which checkpoints are wanted as well (`Folded.stands`).
    """
    until = cut or Cut()
    buckets = {**_without_files(log, stands), **buckets_of(log)}
    own = buckets.get(CLUSTER_FILE)
    cluster = own.sources if own else ()
    wanted = tuple(marks)
    tasks: list[Task] = [
        partial(fold_bucket, each, cluster, until, wanted, stops_in(log, stands, each))
        for each in buckets.values()
    ]
    stops = stops_of(log, stands)
    tasks.append(partial(fold_cluster, sources_by_segment(log), until, log.begins, wanted, stops))
    rows = run_tasks(spark, tasks, RESULT_SCHEMA, RESULT_ARROW)
    return Folded(rows.persist(StorageLevel.MEMORY_AND_DISK), log.node)


def _without_files(log: NodeLog, stands: Sequence[Stand]) -> dict[str, Bucket]:
    """Return all buckets, without files, if a checkpoint is wanted: it has a part of each."""
    names = map(bucket_file, range(BUCKETS if stands else 0))
    return {name: Bucket(name, (), log.begins) for name in names}
