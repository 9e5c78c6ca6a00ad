"""Count all rebalances by cause and time, and how the members of each group committed.

Spark over rebalances, and over the columns of the log: no payload is decoded here.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

BARS_MAX: Final = 120
"""Spans of time in the chart of rebalances at most."""
_SPANS_S: Final = (1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 21_600, 86_400)
_HEARTBEAT: Final = "ConsumerGroupHeartbeat"


def bar_ms(span_ms: int) -> int:
    """Choose how long the span of a bar is: a round time, so that there are at most BARS_MAX."""
    fitting = [each * 1000 for each in _SPANS_S if each * 1000 * BARS_MAX >= span_ms]
    days = -(-span_ms // (BARS_MAX * 86_400_000))
    return fitting[0] if fitting else days * 86_400_000


def caused(rebalances: DataFrame) -> DataFrame:
    """Add `cause`: the command that began it; for a heartbeat, what it told.

    The reason of a classic rebalance is free text, with the names of members in it.
    """
    heartbeat = f.col("command") == _HEARTBEAT
    named = f.when(heartbeat | (f.col("command") == ""), f.col("reason"))
    return rebalances.withColumn("cause", f.coalesce(named, f.col("command")))


def cause_frame(of_cause: DataFrame) -> DataFrame:
    """Sum up each cause: the fields of `Cause`, the most frequent first."""
    found = of_cause.groupBy("cause").agg(
        f.count("*").alias("rebalances"),
        f.sum(f.col("stable_ms").isNull().cast("int")).alias("never"),
        f.expr("int(percentile_approx(stable_ms, 0.5))").alias("stable_p50_ms"),
        f.max("stable_ms").alias("stable_max_ms"),
    )
    return found.orderBy(f.desc("rebalances"), "cause")


def bar_frame(of_cause: DataFrame, first_ms: int, width_ms: int) -> DataFrame:
    """Count rebalances by cause and time: the fields of `Bar`."""
    at = f.floor((f.col("start_ms") - first_ms) / width_ms)
    found = of_cause.groupBy(at.alias("at"), "cause").agg(f.count("*").alias("rebalances"))
    return found.orderBy("at", "cause")


def commit_frame(table: DataFrame, last_ms: int) -> DataFrame:
    """Tell how each group committed: the fields of `Commits`, the longest silence first."""
    told = table.where("type = 'OffsetsCommitted'").select(
        f.col("grp").alias("group"), "log_time_ms", f.inline("offsets")
    )
    each = told.groupBy("group", "topic", "partition").agg(
        f.count("*").alias("n"),
        f.min("log_time_ms").alias("first"),
        f.max("log_time_ms").alias("last"),
    )
    place = f.concat_ws("/", "topic", f.col("partition").cast("string"))
    turns = f.sum(f.col("n") - 1)
    every = f.when(turns > 0, (f.sum(f.col("last") - f.col("first")) / turns).cast("bigint"))
    found = each.groupBy("group").agg(
        f.count("*").alias("partitions"),
        f.sum("n").alias("commits"),
        every.alias("every_ms"),
        f.min_by(place, "last").alias("silent"),
        (f.lit(last_ms) - f.min("last")).alias("silent_ms"),
    )
    return found.orderBy(f.desc("silent_ms"), "group")
