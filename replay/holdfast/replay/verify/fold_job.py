"""Run `group_fold` and `cluster_fold` on Spark, and collect their results.

Knows rows of results, not how they are made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
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
    BEGAN,
    COUNT,
    FINDING,
    GROUP,
    HEAD,
    RECORD,
    REST,
    RESULT_ARROW,
    RESULT_SCHEMA,
    Bucket,
    Cut,
    ResultRow,
)
from holdfast.replay.read.node_logs import NodeLog, buckets_of, sources_by_segment
from holdfast.replay.spark.half_sums import half_sums
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
from holdfast.storage.codec.state_image import DIGEST_SPAN, restore
from holdfast.storage.segments.segment_reader import CLUSTER_FILE
from holdfast.storage.segments.segments import BUCKETS, bucket_file

_FEW: Final = (FINDING, HEAD, COUNT, MARK, RESTORE, STOOD, BEGAN)
"""Tags of rows of which there are few, however long the log is, if it is sound."""


class Folded:
    """The outcome of a fold; Spark keeps `rows` until `release`."""

    def __init__(self, rows: DataFrame, node: str = "", *, has_records: bool = False) -> None:
        """Take the rows of all tasks. `node`: whose log it is.

        `has_records`: whether the fold told the records of the state.
        """
        self.rows, self.node, self.has_records = rows, node, has_records
        self._few: list[ResultRow] | None = None

    def findings(self) -> list[Finding]:
        """Return the workers' findings, in the order of the log."""
        found = sorted(self._told(FINDING), key=lambda row: (row.idx, row.ordinal))
        return [
            Finding(r.kind, self.node, r.grp, Position(r.idx, r.ordinal), r.text, r.key)
            for r in found
        ]

    def _told(self, tag: str) -> list[ResultRow]:
        """Return the rows of one of `_FEW`: all come at once, since each query has its price."""
        if self._few is None:
            wanted = self.rows.where(f.col("tag").isin(*_FEW)).select(*ResultRow._fields)
            self._few = [ResultRow(*row) for row in wanted.collect()]
        return [row for row in self._few if row.tag == tag]

    def entries(self) -> DataFrame:
        """Return the groups that were taken up as keys and values, in the form of `sql.state`."""
        each = self.rows.where(f.col("tag") == GROUP).select("grp", f.explode("entries").alias("e"))
        return each.select("grp", "e.kind", "e.key", "e.value")

    def head(self) -> tuple[Position, bytes]:
        """Return the last position, and the head of the chain over all records."""
        (row,) = self._told(HEAD)
        return Position(row.idx, row.ordinal), bytes(row.content)

    def count(self) -> int:
        """Return the number of records folded."""
        return sum(row.idx for row in self._told(COUNT))

    def digest(self) -> int:
        """Compute the digest of the whole state, by the rules of `codec.state_image`."""
        told = self.rows.where(f.col("tag").isin(GROUP, REST))
        (sums,) = told.agg(*half_sums("idx", "low", "high")).collect()
        return _whole(sums)

    def began(self) -> int | None:
        """Return the digest of the state that the fold began with; None: it took that as it is."""
        told = self._told(BEGAN)
        return sum(row.idx for row in told) % DIGEST_SPAN if told else None

    def group_digests(self, groups: Sequence[str] | None) -> dict[str, int]:
        """Return what each group, or some, add to the digest; "" is what belongs to none.

        Only those that the fold has taken up are told.
        """
        told = self.rows.where(f.col("tag") == GROUP)
        if groups is not None:
            told = told.where(f.col("grp").isin(list(groups)))
        sums = told.groupBy("grp").agg(*half_sums("idx", "low", "high")).collect()
        return {r.grp: _whole(r) for r in sums}

    def reached(self, marks: Sequence[Mark]) -> dict[Mark, Reached]:
        """Return chain and digest at each of the marks that the fold was given."""
        return summed(self._told(MARK), marks)

    def restores(self) -> list[Restore]:
        """Return the restores of which the log tells (S13)."""
        return restores_in(self._told(RESTORE))

    def stands(self, stands: Sequence[Stand]) -> list[Stood]:
        """Return place, chain and digest at each of the stands that the fold was given."""
        return stood(self._told(STOOD), stands)

    def parts(self) -> Iterator[ResultRow]:
        """Yield the parts of the checkpoint that is to be kept; few rows are here at once."""
        rows = self.rows.where(f.col("tag") == PART).select(*ResultRow._fields)
        return (ResultRow(*row) for row in rows.toLocalIterator())

    def state(self) -> State:
        """Build the coordinator's state. For states that fit into the driver's memory.

        Raises ValueError if the fold was not asked for its records.
        """
        if not self.has_records:
            raise ValueError("the fold was not asked for the records of the state")
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
    *,
    named: Collection[str] = (),
    records: bool = False,
) -> Folded:
    """Fold a node's log from where it begins, whole or up to a cut.

    `marks`: where chain and digest are wanted as well, in order (`Folded.reached`). `stands`: ends
    of segments at which checkpoints are wanted as well (`Folded.stands`). `named`: groups that are
    taken up in any case (`checkpoint.touched`). `records`: whether the state itself is wanted
    (`Folded.state`). Raises ValueError if it is, and not all groups are taken up.
    """
    if records and log.begins.touched_only:
        raise ValueError("behind an earlier run's checkpoint no fold has the whole state")
    until = cut or Cut()
    buckets = {**_without_files(log, stands), **buckets_of(log)}
    own = buckets.get(CLUSTER_FILE)
    cluster = own.sources if own else ()
    wanted, stops = tuple(marks), stops_of(log, stands)
    whole = partial(fold_cluster, sources_by_segment(log), until, log.begins, wanted, stops)
    tasks: list[Task] = [partial(whole, records=records)]  # the longest one begins first
    for each in buckets.values():
        mine = partial(fold_bucket, each, cluster, until, wanted, stops_in(log, stands, each))
        tasks.append(partial(mine, named=named, records=records))
    rows = run_tasks(spark, tasks, RESULT_SCHEMA, RESULT_ARROW)
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    return Folded(kept, log.node, has_records=records)


def _without_files(log: NodeLog, stands: Sequence[Stand]) -> dict[str, Bucket]:
    """Return all buckets, without files, if a checkpoint is wanted: it has a part of each."""
    names = map(bucket_file, range(BUCKETS if stands else 0))
    return {name: Bucket(name, (), log.begins) for name in names}


def _whole(sums: Row) -> int:
    whole: int = (sums.low + (sums.high << 32)) % DIGEST_SPAN
    return whole
