"""Analyse a log with Spark: rebalances, owners over time, gaps, moves, restless instances.

The workers make intervals, rebalances and turns (`bucket_tasks`); Spark sums them up here, so that
only rows for people reach the driver. Times are log time in milliseconds (S8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as f

from holdfast.replay.analyse import bucket_tasks
from holdfast.replay.analyse.analysis import (
    Analysis,
    Frozen,
    GroupSummary,
    Mark,
    Restless,
    Step,
)
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.rebalances import Rebalance, Turn
from holdfast.replay.read.node_logs import NodeLog, buckets_of
from holdfast.replay.spark.log_tables import rows
from holdfast.replay.spark.tasks import Task, run_tasks

T = TypeVar("T", bound="tuple[object, ...]")

LISTED_MAX: Final = 1_000
DRAWN_MAX: Final = 20_000
CLOCK_STEP_MS: Final = 50
RESTLESS_TURNS: Final = 3
"""An instance that was lost or swapped this often within the window is restless."""

RESTLESS_WINDOW_MS: Final = 10 * 60 * 1000


def analyse(
    spark: SparkSession, log: NodeLog, marks: Sequence[Mark] = (), frozen: Sequence[Frozen] = ()
) -> Analysis:
    """Analyse a node's log. Raises ValueError for a log without records."""
    table = rows(spark, log)
    records, first_ms, last_ms = _extent(table)
    begins = log.begins
    owned = interval_frame(spark, log, last_ms).persist()
    rebalances = rebalance_frame(spark, log).persist()
    try:
        steps = step_frame(owned).persist()
        analysis = Analysis(
            node=log.node,
            records=records,
            first_ms=begins.log_time_ms if begins.cut else first_ms,
            last_ms=last_ms,
            clock_offsets=_clock_offsets(table),
            groups=tuple(_summaries(steps, rebalances)),
            rebalances=tuple(
                _gathered(rebalances.orderBy("entry", "ordinal"), Rebalance, LISTED_MAX)
            ),
            steps=tuple(_gathered(_telling(steps), Step, LISTED_MAX)),
            restless=tuple(_gathered(restless_frame(spark, log), Restless, LISTED_MAX)),
            intervals=tuple(_gathered(owned.orderBy("start_ms", "token"), Interval, DRAWN_MAX)),
            marks=tuple(sorted(marks)),
            frozen=tuple(frozen),
            cut=begins.last if begins.cut else None,
        )
        steps.unpersist()
        return analysis
    finally:
        owned.unpersist()
        rebalances.unpersist()


def interval_frame(spark: SparkSession, log: NodeLog, end_ms: int) -> DataFrame:
    """Compute all intervals of ownership, with the fields of `Interval`."""
    tasks = [partial(bucket_tasks.intervals, each, end_ms) for each in buckets_of(log).values()]
    return _frame(spark, tasks, Interval, {"group", "topic", "owner", "member_id", "ended"})


def rebalance_frame(spark: SparkSession, log: NodeLog) -> DataFrame:
    """Compute all rebalances, with the fields of `Rebalance`."""
    tasks = [partial(bucket_tasks.rebalances, each) for each in buckets_of(log).values()]
    return _frame(spark, tasks, Rebalance, {"group", "reason", "who", "rule", "command"})


def step_frame(owned: DataFrame) -> DataFrame:
    """Link each interval of a partition to its next: the fields of `Step`, and `kept`."""
    order = Window.partitionBy("group", "topic", "partition").orderBy("start_ms", "token", "end_ms")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    linked = owned.select(
        "group",
        "topic",
        "partition",
        f.lag("owner").over(order).alias("before"),
        f.col("owner").alias("after"),
        f.lag("ended").over(order).alias("ended"),
        f.col("start_ms").alias("at_ms"),
        (f.col("start_ms") - f.max("end_ms").over(before)).alias("gap_ms"),
        (f.lag("member_id").over(order) != f.col("member_id")).alias("other_member"),
    )
    moved = f.col("before") != f.col("after")
    steps = linked.where("before is not null").withColumn("moved", moved)
    return steps.withColumn("kept", ~f.col("moved") & f.col("other_member")).drop("other_member")


def restless_frame(spark: SparkSession, log: NodeLog) -> DataFrame:
    """Find instances that were swapped or lost RESTLESS_TURNS times within RESTLESS_WINDOW_MS."""
    tasks = [partial(bucket_tasks.turns, each) for each in buckets_of(log).values()]
    turns = _frame(spark, tasks, Turn, {"group", "owner", "kind"})
    order = Window.partitionBy("group", "owner").orderBy("at_ms")
    near = order.rangeBetween(-RESTLESS_WINDOW_MS, Window.currentRow)
    telling = turns.where(f.col("kind").isin("swapped", "expired", "refused"))
    counted = telling.withColumn("near", f.count("*").over(near))
    found = counted.groupBy("group", "owner").agg(
        f.max("near").alias("turns"),
        f.concat_ws(", ", f.sort_array(f.collect_set("kind"))).alias("kinds"),
        f.min("at_ms").alias("first_ms"),
        f.max("at_ms").alias("last_ms"),
    )
    return found.where(f.col("turns") >= RESTLESS_TURNS).orderBy(f.desc("turns"), "group", "owner")


def _telling(steps: DataFrame) -> DataFrame:
    """Select the steps worth a look: moves, gaps, overlaps; the longest gaps first."""
    told = steps.where("moved or gap_ms <> 0")
    return told.orderBy(f.desc("gap_ms"), "at_ms", "group", "topic", "partition")


def _summaries(steps: DataFrame, rebalances: DataFrame) -> Iterator[GroupSummary]:
    def total(condition: str) -> Column:
        return f.coalesce(f.sum(f.expr(f"int({condition})")), f.lit(0))

    moved = steps.groupBy("group").agg(
        total("moved").alias("moves"),
        total("kept").alias("kept"),
        f.sum(f.greatest("gap_ms", f.lit(0))).alias("ownerless_ms"),
        f.max(f.greatest("gap_ms", f.lit(0))).alias("ownerless_max_ms"),
        total("gap_ms < 0").alias("overlaps"),
    )
    balanced = rebalances.groupBy("group").agg(
        f.count("*").alias("rebalances"),
        f.expr("int(percentile_approx(stable_ms, 0.5))").alias("stable_p50_ms"),
        f.max("stable_ms").alias("stable_max_ms"),
    )
    numbers = ["rebalances", "moves", "kept", "ownerless_ms", "ownerless_max_ms", "overlaps"]
    joined = balanced.join(moved, "group", "full_outer").fillna(0, numbers)
    yield from _gathered(joined.orderBy("group"), GroupSummary, LISTED_MAX)


def _extent(table: DataFrame) -> tuple[int, int, int]:
    row = table.agg(
        f.count("*").alias("n"),
        f.min("log_time_ms").alias("first"),
        f.max("log_time_ms").alias("last"),
    ).collect()[0]
    if not row.n:
        raise ValueError("the log has no records")
    return row.n, row["first"], row["last"]


def _clock_offsets(table: DataFrame) -> tuple[tuple[int, int], ...]:
    """Compute the offset of log time from wall time over time, in steps of CLOCK_STEP_MS."""
    offset = f.col("log_time_ms") - f.col("wall_time_ms")
    steps = table.groupBy(f.round(offset / CLOCK_STEP_MS).alias("step")).agg(
        f.min("wall_time_ms").alias("since"), f.percentile_approx(offset, 0.5).alias("offset")
    )
    return tuple((row["since"], row["offset"]) for row in steps.orderBy("since").collect())


def _gathered(frame: DataFrame, kind: type[T], most: int) -> Iterator[T]:
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]  # T is a NamedTuple
    found: list[Row] = frame.select(*fields).limit(most).collect()
    return (kind(*row) for row in found)


def _frame(spark: SparkSession, tasks: Sequence[Task], kind: type[T], texts: set[str]) -> DataFrame:
    """Run tasks and make a table of their rows: fields in `texts` are strings, others integers."""
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]  # T is a NamedTuple
    schema = ", ".join(f"`{n}` {'string' if n in texts else 'bigint'}" for n in fields)
    arrow = pa.schema([(n, pa.string() if n in texts else pa.int64()) for n in fields])
    return run_tasks(spark, tasks, schema, arrow)
