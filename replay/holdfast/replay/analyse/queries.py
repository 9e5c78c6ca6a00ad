"""Analyse a log with Spark: rebalances, owners over time, gaps, moves, restless instances.

The workers make intervals, rebalances and turns (`bucket_tasks`); Spark sums them up here, so that
only rows for people reach the driver. Times are log time in milliseconds (S8).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, Generic, NamedTuple, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from holdfast.replay.analyse import bucket_tasks
from holdfast.replay.analyse.analysis import (
    Analysis,
    Bar,
    Cause,
    Commits,
    Frozen,
    GroupSummary,
    Listed,
    Mark,
    Restless,
    Step,
)
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.jobs.instances import restless_frame, swap_frame
from holdfast.replay.analyse.jobs.rates import (
    BARS_MAX,
    bar_frame,
    bar_ms,
    cause_frame,
    caused,
    commit_frame,
)
from holdfast.replay.analyse.jobs.timelines import linked_frame, timelines
from holdfast.replay.analyse.rebalances import Rebalance, Turn
from holdfast.replay.analyse.timeline import Timeline
from holdfast.replay.read.node_logs import NodeLog, buckets_of
from holdfast.replay.spark.log_tables import rows
from holdfast.replay.spark.tasks import run_tasks

T = TypeVar("T", bound="tuple[object, ...]")

LISTED_MAX: Final = 1_000
DRAWN_MAX: Final = 20_000
PICTURED_MAX: Final = 64
"""Partitions of a group of which a picture can show each interval."""
CLOCK_STEP_MS: Final = 50
_TEXTS: Final = frozenset(
    (
        *("fact", "group", "topic", "owner", "member_id", "ended", "kind"),
        *("reason", "who", "rule", "command"),
    )
)
"""The fields of facts that are strings; the others are integers."""


def analyse(
    spark: SparkSession, log: NodeLog, marks: Sequence[Mark] = (), frozen: Sequence[Frozen] = ()
) -> Analysis:
    """Analyse a node's log. Raises ValueError for a log without records."""
    table = rows(spark, log)
    records, first_ms, last_ms, clock_offsets = _extent(table)
    begins = log.begins
    facts = fact_frame(spark, log, last_ms).persist()
    linked = linked_frame(_only(facts, Interval)).persist()
    try:
        rebalances, turns = _only(facts, Rebalance), _only(facts, Turn)
        begun_ms = begins.log_time_ms if begins.cut else first_ms
        drawn, whole = timelines(spark, linked, begun_ms, last_ms)
        width_ms, of_cause = bar_ms(last_ms - begun_ms), caused(rebalances)
        steps = step_frame(linked)
        groups = _listed(_summaries(steps, rebalances, swap_frame(turns)), GroupSummary)
        slowest = _listed(_slowest(rebalances), Rebalance)
        told = _listed(_telling(steps), Step)
        restless = _listed(restless_frame(turns), Restless)
        commits = _listed(commit_frame(table, last_ms), Commits)
        return Analysis(
            node=log.node,
            records=records,
            first_ms=begun_ms,
            last_ms=last_ms,
            clock_offsets=clock_offsets,
            groups=groups.rows,
            rebalances=tuple(sorted(slowest.rows, key=_place)),
            steps=told.rows,
            restless=restless.rows,
            intervals=_gathered(_drawable(linked, drawn), Interval, DRAWN_MAX),
            marks=tuple(sorted(marks)),
            frozen=tuple(frozen),
            cut=begins.last if begins.cut else None,
            timelines=drawn,
            whole=whole,
            listed=Listed(groups.total, slowest.total, told.total, restless.total, commits.total),
            causes=_gathered(cause_frame(of_cause), Cause, LISTED_MAX),
            bars=_gathered(bar_frame(of_cause, begun_ms, width_ms), Bar, BARS_MAX * LISTED_MAX),
            bar_ms=width_ms,
            commits=commits.rows,
        )
    finally:
        linked.unpersist()
        facts.unpersist()


def fact_frame(spark: SparkSession, log: NodeLog, end_ms: int) -> DataFrame:
    """Read the log once: rows with the name of a kind, and the fields of all (`FIELDS`)."""
    tasks = [partial(bucket_tasks.facts, each, end_ms) for each in buckets_of(log).values()]
    fields = ("fact", *bucket_tasks.FIELDS)
    schema = ", ".join(f"`{n}` {'string' if n in _TEXTS else 'bigint'}" for n in fields)
    arrow = pa.schema([(n, pa.string() if n in _TEXTS else pa.int64()) for n in fields])
    return run_tasks(spark, tasks, schema, arrow)


def _only(facts: DataFrame, kind: type[T]) -> DataFrame:
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]  # T is a NamedTuple
    return facts.where(f.col("fact") == kind.__name__).select(*fields)


def step_frame(linked: DataFrame) -> DataFrame:
    """Make of each interval with one before it the fields of `Step`, and `kept`."""
    moved = f.col("before") != f.col("owner")
    return linked.where("before is not null").select(
        "group",
        "topic",
        "partition",
        "before",
        f.col("owner").alias("after"),
        f.col("ended_before").alias("ended"),
        f.col("start_ms").alias("at_ms"),
        (f.col("start_ms") - f.col("reach_ms")).alias("gap_ms"),
        moved.alias("moved"),
        (~moved & (f.col("member_before") != f.col("member_id"))).alias("kept"),
    )


def _telling(steps: DataFrame) -> DataFrame:
    """Select the steps worth a look: moves, gaps, overlaps; the longest gaps first."""
    told = steps.where("moved or gap_ms <> 0")
    return told.orderBy(f.desc("gap_ms"), "at_ms", "group", "topic", "partition")


def _drawable(linked: DataFrame, drawn: Sequence[Timeline]) -> DataFrame:
    """Select all intervals of the busiest groups of which a picture can show each interval.

    A group is there whole or not at all.
    """
    names, left = [], DRAWN_MAX
    for each in drawn:
        fits = len(each.rows) == each.totals.partitions <= PICTURED_MAX
        if each.group and fits and each.totals.intervals <= left:
            names.append(each.group)
            left -= each.totals.intervals
    return linked.where(f.col("group").isin(names)).orderBy("start_ms", "token")


def _slowest(rebalances: DataFrame) -> DataFrame:
    """Order by time to stable; those that never were stable first."""
    return rebalances.orderBy(f.desc_nulls_first("stable_ms"), "entry", "ordinal")


def _place(rebalance: Rebalance) -> tuple[int, int]:
    return rebalance.entry, rebalance.ordinal


def _summaries(steps: DataFrame, rebalances: DataFrame, swaps: DataFrame) -> DataFrame:
    """Sum up each group, the busiest first."""

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
    joined = balanced.join(moved, "group", "full_outer").join(swaps, "group", "left")
    joined = joined.fillna(0, [*numbers, "swaps"])
    return joined.orderBy(f.desc("rebalances"), f.desc("moves"), "group")


def _extent(table: DataFrame) -> tuple[int, int, int, tuple[tuple[int, int], ...]]:
    """Count the records, and find the first and the last log time and the clock's offsets.

    An offset is what log time differs from wall time by, in steps of CLOCK_STEP_MS.
    """
    offset = f.col("log_time_ms") - f.col("wall_time_ms")
    steps = table.groupBy(f.round(offset / CLOCK_STEP_MS).alias("step")).agg(
        f.count("*").alias("n"),
        f.min("log_time_ms").alias("first"),
        f.max("log_time_ms").alias("last"),
        f.min("wall_time_ms").alias("since"),
        f.percentile_approx(offset, 0.5).alias("offset"),
    )
    found = steps.orderBy("since").collect()
    if not found:
        raise ValueError("the log has no records")
    first, last = min(row["first"] for row in found), max(row["last"] for row in found)
    offsets = tuple((row["since"], row["offset"]) for row in found)
    return sum(row["n"] for row in found), first, last, offsets


class _Rows(NamedTuple, Generic[T]):
    """The first LISTED_MAX rows of a table, and how many it has."""

    rows: tuple[T, ...]
    total: int


def _listed(frame: DataFrame, kind: type[T]) -> _Rows[T]:
    """Gather what is listed; all is counted only if that is not all."""
    found = _gathered(frame, kind, LISTED_MAX + 1)
    if len(found) <= LISTED_MAX:
        return _Rows(found, len(found))
    return _Rows(found[:LISTED_MAX], frame.count())


def _gathered(frame: DataFrame, kind: type[T], most: int) -> tuple[T, ...]:
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]  # T is a NamedTuple
    found: list[Row] = frame.select(*fields).limit(most).collect()
    return tuple(kind(*row) for row in found)
