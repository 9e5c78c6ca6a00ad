"""Find the instances that were lost or swapped often, and those whose process was fenced.

Spark over turns. A swap that follows a release of the same instance was planned; any other fences a
process that may still run (S12).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

RESTLESS_TURNS: Final = 3
"""An instance that was lost or swapped this often within the window is restless."""

RESTLESS_WINDOW_MS: Final = 10 * 60 * 1000
_LOST: Final = ("expired", "refused")


def restless_frame(turns: DataFrame) -> DataFrame:
    """Make the fields of `Restless` for instances that were restless, or fenced."""
    told = _marked(turns).where(f.col("kind").isin("swapped", *_LOST))
    order = Window.partitionBy("group", "owner").orderBy("at_ms")
    near = order.rangeBetween(-RESTLESS_WINDOW_MS, Window.currentRow)
    counted = told.withColumn("near", f.count("*").over(near))
    found = counted.groupBy("group", "owner").agg(
        f.max("near").alias("turns"),
        f.concat_ws(", ", f.sort_array(f.collect_set("kind"))).alias("kinds"),
        f.min("at_ms").alias("first_ms"),
        f.max("at_ms").alias("last_ms"),
        _number(f.col("planned")).alias("planned"),
        _number(f.col("fenced")).alias("fenced"),
        _number(f.col("kind").isin(*_LOST)).alias("lost"),
    )
    telling = found.where((f.col("turns") >= RESTLESS_TURNS) | (f.col("fenced") > 0))
    return telling.orderBy(f.desc("turns"), f.desc("fenced"), "group", "owner")


def swap_frame(turns: DataFrame) -> DataFrame:
    """Count the swaps of each group."""
    return turns.where("kind = 'swapped'").groupBy("group").agg(f.count("*").alias("swaps"))


def _marked(turns: DataFrame) -> DataFrame:
    """Tell planned swaps from those that fenced; a release comes before its swap, at the latest."""
    order = Window.partitionBy("group", "owner").orderBy("at_ms", "kind")
    released = f.coalesce(f.lag("kind").over(order), f.lit("")) == "released"
    swapped = f.col("kind") == "swapped"
    return turns.withColumns({"planned": swapped & released, "fenced": swapped & ~released})


def _number(condition: Column) -> Column:
    return f.sum(condition.cast("int"))
