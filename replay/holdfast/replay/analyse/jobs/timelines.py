"""Aggregate all intervals of a log to timelines: grids of partitions and time, with what they hide.

Spark sums intervals up by row and column, so that the driver gets cells and never intervals. Every
interval is in exactly one timeline: groups without a grid or a strip of their own share one strip.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as f

from holdfast.replay.analyse.sweep import GAP, OVERLAP, OWNED, Piece, sweep
from holdfast.replay.analyse.timeline import (
    COLUMNS_STRIP,
    GRIDS_MAX,
    STRIPS_MAX,
    Bundle,
    CellRun,
    Scale,
    Size,
    Timeline,
    Totals,
    column_ms,
    scales,
)

REST: Final = -1
"""The key of the strip that groups share."""
_TEXTS: Final = {"owner", "kind"}
_NUMBERS: Final = [n for n in Totals._fields if n not in {"groups", "partitions"}]


def linked_frame(owned: DataFrame) -> DataFrame:
    """Link each interval of a partition to those before it.

    `reach_ms`: until when the partition was owned before; a gap, or an overlap, lies between it and
    `start_ms`.
    """
    order = Window.partitionBy("group", "topic", "partition").orderBy("start_ms", "token", "end_ms")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    return owned.withColumns(
        {
            "before": f.lag("owner").over(order),
            "ended_before": f.lag("ended").over(order),
            "member_before": f.lag("member_id").over(order),
            "reach_ms": f.max("end_ms").over(before),
        }
    )


def timelines(
    spark: SparkSession, linked: DataFrame, first_ms: int, last_ms: int
) -> tuple[tuple[Timeline, ...], Totals]:
    """Make the timelines of all groups, and the totals of the whole log, counted apart from them.

    `linked`: as `linked_frame` gives it, persisted.
    """
    lanes = linked.groupBy("group", "topic", "partition").agg(f.count("*").alias("n")).persist()
    try:
        whole = _whole(linked, lanes)
        if not whole.intervals:
            return (), whole
        span_ms = max(1, last_ms - first_ms)
        chosen = scales(_sizes(lanes), span_ms)
        plan = _plan(spark, chosen)
        placed = _placed(linked, lanes, plan, column_ms(span_ms, COLUMNS_STRIP)).persist()
        told = _told(placed, _bundles(lanes, plan), whole.groups - len(chosen))
        made = list(_assembled(chosen, span_ms, told, _runs(placed, first_ms)))
        placed.unpersist()
        return tuple(made), whole
    finally:
        lanes.unpersist()


def _whole(linked: DataFrame, lanes: DataFrame) -> Totals:
    counted = linked.agg(*_sums(f.lit(0))).collect()[0]
    places = lanes.agg(f.countDistinct("group").alias("g"), f.count("*").alias("n")).collect()[0]
    return _totalled(counted, places.g, places.n)


def _sums(width: Column) -> list[Column]:
    """Make the sums of `Totals`; what is shorter than `width` is below a column."""
    start, end, reach = (f.col(name) for name in ("start_ms", "end_ms", "reach_ms"))
    gap, overlap = start - reach, _overlapped() - start
    sums = {
        "intervals": f.lit(1),
        "intervals_below": (end - start < width).cast("int"),
        "owned_ms": f.greatest(end - f.greatest(start, f.coalesce(reach, start)), f.lit(0)),
        "gaps": (gap > 0).cast("int"),
        "gaps_below": ((gap > 0) & (gap < width)).cast("int"),
        "gap_ms": f.greatest(gap, f.lit(0)),
        "overlaps": (overlap > 0).cast("int"),
        "overlaps_below": ((overlap > 0) & (overlap < width)).cast("int"),
        "overlap_ms": f.greatest(overlap, f.lit(0)),
    }
    return [f.coalesce(f.sum(made), f.lit(0)).alias(name) for name, made in sums.items()]


def _overlapped() -> Column:
    """Until when an owner before has it, too; null if none is before (`least` skips nulls)."""
    return f.when(f.col("reach_ms").isNotNull(), f.least("reach_ms", "end_ms"))


def _totalled(row: Row, groups: int, partitions: int) -> Totals:
    return Totals(groups, partitions, **{name: row[name] for name in _NUMBERS})


def _sizes(lanes: DataFrame) -> list[Size]:
    sizes = lanes.groupBy("group").agg(f.count("*").alias("lanes"), f.sum("n").alias("n"))
    most = sizes.orderBy(f.desc("n"), "group").limit(GRIDS_MAX + STRIPS_MAX)
    return [Size(row["group"], row.lanes, row.n) for row in most.collect()]


def _plan(spark: SparkSession, chosen: Sequence[Scale]) -> DataFrame:
    rows = [(each.group, each.key, each.rows, each.column_ms) for each in chosen]
    return f.broadcast(
        spark.createDataFrame(rows, "group string, key int, rows int, column_ms bigint")
    )


def _numbered(lanes: DataFrame, plan: DataFrame) -> DataFrame:
    """Give numbers to the partitions of groups with several rows, equally many to each row."""
    order = Window.partitionBy("group").orderBy("topic", "partition")
    several = lanes.join(plan.where("rows > 1"), "group")
    numbered = several.withColumns(
        {
            "lane": f.row_number().over(order) - 1,
            "lanes": f.count("*").over(Window.partitionBy("group")),
        }
    )
    return numbered.withColumn("row", f.expr("int(lane * bigint(rows) div lanes)"))


def _placed(linked: DataFrame, lanes: DataFrame, plan: DataFrame, strip_ms: int) -> DataFrame:
    """Give each interval its timeline, its row, and how long a column is there."""
    row_of = _numbered(lanes, plan).select("group", "topic", "partition", "row")
    places = ["group", "topic", "partition"]
    placed = linked.join(plan.select("group", "key", "column_ms"), "group", "left")
    placed = placed.join(f.broadcast(row_of), places, "left")
    return placed.select(
        f.coalesce("key", f.lit(REST)).alias("key"),
        f.coalesce("row", f.lit(0)).alias("row"),
        f.coalesce("column_ms", f.lit(strip_ms)).alias("column_ms"),
        "owner",
        "start_ms",
        "end_ms",
        "reach_ms",
    )


def _pieces(placed: DataFrame, first_ms: int) -> DataFrame:
    """Cut what is owned, the gaps and the overlaps by columns, and sum up what is equal."""
    start, end, reach = (f.col(name) for name in ("start_ms", "end_ms", "reach_ms"))
    since = f.greatest(start, f.coalesce(reach, start))
    owner = f.when(f.col("key") != REST, f.col("owner"))
    parts = f.array(
        _part(OWNED, owner, since, end),
        _part(GAP, f.lit(None), reach, start),
        _part(OVERLAP, owner, start, _overlapped()),
    )
    cut = placed.select("key", "row", "column_ms", f.inline(parts)).where("until > since")
    width = f.col("column_ms")
    cut = cut.select(
        "key",
        "row",
        "kind",
        f.coalesce("owner", f.lit("")).alias("owner"),
        (f.col("since") - first_ms).alias("since"),
        (f.col("until") - first_ms).alias("until"),
        width,
    ).withColumns(
        {
            "first": f.expr("since div column_ms"),
            "last": f.expr("(until - 1) div column_ms"),
        }
    )
    head = f.least("until", (f.col("first") + 1) * width) - f.col("since")
    tail = f.when(f.col("last") > f.col("first"), f.col("until") - f.col("last") * width)
    return cut.groupBy("key", "row", "kind", "owner", "first", "last", "column_ms").agg(
        f.count("*").alias("number"),
        f.sum(head).alias("head_ms"),
        f.sum(f.coalesce(tail, f.lit(0))).alias("tail_ms"),
    )


def _part(kind: str, owner: Column, since: Column, until: Column) -> Column:
    text = owner.cast("string")
    return f.struct(
        f.lit(kind).alias("kind"), text.alias("owner"), since.alias("since"), until.alias("until")
    )


def _runs(placed: DataFrame, first_ms: int) -> list[CellRun]:
    pieces = _pieces(placed, first_ms).select(*Piece._fields)
    spread = pieces.repartition("key", "row").sortWithinPartitions("key", "row", "first", "last")
    found = spread.mapInArrow(_swept, _schema(CellRun._fields)).orderBy("key", "row", "column")
    return [CellRun(*row) for row in found.collect()]


def _swept(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sweep a partition's rows; runs in a worker."""
    pieces = (
        Piece(*row)
        for batch in batches
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    runs = list(sweep(pieces))
    if runs:
        columns = zip(*runs, strict=True)
        named = {name: list(column) for name, column in zip(CellRun._fields, columns, strict=True)}
        schema = pa.schema([(n, pa.string() if n in _TEXTS else pa.int64()) for n in named])
        yield pa.RecordBatch.from_pydict(named, schema)


def _schema(fields: Sequence[str]) -> str:
    return ", ".join(f"`{n}` {'string' if n in _TEXTS else 'bigint'}" for n in fields)


def _bundles(lanes: DataFrame, plan: DataFrame) -> dict[tuple[int, int], Bundle]:
    """Tell which partitions are in each row."""
    single = lanes.join(plan, "group", "left").where("rows is null or rows = 1")
    single = single.selectExpr("coalesce(key, -1) key", "0 row", "topic", "partition")
    several = _numbered(lanes, plan).select("key", "row", "topic", "partition")
    place = f.struct("topic", "partition")
    found = single.union(several).groupBy("key", "row")
    told = found.agg(f.min(place).alias("a"), f.max(place).alias("b"), f.count("*").alias("n"))
    return {
        (row.key, row["row"]): Bundle(_name(row.a), _name(row.b), row.n) for row in told.collect()
    }


def _name(place: Row) -> str:
    return f"{place.topic}/{place.partition}"


def _told(
    placed: DataFrame, bundles: dict[tuple[int, int], Bundle], others: int
) -> dict[int, tuple[tuple[Bundle, ...], Totals]]:
    """Sum up each timeline: its rows, and what is in it, seen or not; `others` share the strip."""
    summed = placed.groupBy("key").agg(*_sums(f.col("column_ms")))
    rows: dict[int, list[Bundle]] = {}
    for (key, _), bundle in sorted(bundles.items()):
        rows.setdefault(key, []).append(bundle)
    told = {}
    for row in summed.collect():
        key, mine = row.key, tuple(rows[row.key])
        groups = others if key == REST else 1
        told[key] = mine, _totalled(row, groups, sum(each.partitions for each in mine))
    return told


def _assembled(
    chosen: Sequence[Scale],
    span_ms: int,
    told: dict[int, tuple[tuple[Bundle, ...], Totals]],
    runs: Sequence[CellRun],
) -> Iterator[Timeline]:
    of: dict[int, list[CellRun]] = {}
    for run in runs:
        of.setdefault(run.key, []).append(run)
    rest = Scale(REST, "", 1, column_ms(span_ms, COLUMNS_STRIP))
    for key, group, _, width in [*chosen, rest]:
        if key in told:
            rows, totals = told[key]
            yield Timeline(group, width, rows, tuple(of.get(key, ())), totals)
