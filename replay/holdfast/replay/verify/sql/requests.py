"""The dedupe table by SQL (S15): which served requests are kept, and in which order.

Each request that is served is numbered, and pushes out at most eight of the oldest: those that are
older than twice the window, and those beyond the number that may be kept. How many are gone after
the k-th is, for every j up to k, at most what was due at j, and eight for each one since; the least
of these is the number, as long as the settings are the same. Nothing here may import `coordinator`;
results have the form of `cluster_entries.entries_of`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as f

from holdfast.replay.verify.sql.places import entry, ordinal, place

_WINDOW: Final = "dedupe.window_ms"
_MOST: Final = "dedupe.requests_max"
DEFAULTS: Final = {_WINDOW: 600_000, _MOST: 50_000}
"""What is in force until somebody sets something else."""
_AT_ONCE: Final = 8
"""So many go at most as one comes."""
_WINDOWS: Final = 2
_UUID_7: Final = (
    "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$"
)
"""The first 48 bits of such an id are the time at which it was made."""
_BEGUN: Final = "type = 'RequestsCounted'"
"""A row that tells, for a checkpoint, the next number, and the time of what is not known."""


class _Bounds(NamedTuple):
    """The settings in force, and what a checkpoint has told."""

    window_ms: int
    most: int
    oldest: int
    next: int
    floor_ms: int


def request_rows(rows: DataFrame) -> DataFrame:
    """Select the requests that were served, and those that a checkpoint tells of, by place."""
    served = rows.where("type in ('RequestRecorded', 'RequestKept')")
    group = f.coalesce("scope", "grp").alias("of")
    kept = (f.col("type") == "RequestKept").alias("kept")
    return served.select(
        place().alias("at"), group, "principal", "log_time_ms", "request", "number", kept
    )


def request_entries(requests: DataFrame, own: DataFrame) -> DataFrame | None:
    """Compute the table, one row a request, and its counters; None: its settings have changed.

    `requests`: of `request_rows`; `own`: the cluster's own records. Both are read several times.
    """
    bounds = _bounds(requests, own)
    if bounds is None:
        return None
    steps = _steps(requests, bounds)
    totals = steps.agg(
        f.max("number").alias("last"), f.max("gone").alias("gone"), f.max("much").alias("much")
    )
    total = totals.collect()[0]
    served, oldest = total.last is not None, total.gone or bounds.oldest
    after = total.last + 1 if served else bounds.next
    floor_ms = bounds.floor_ms
    if served and total.much:
        floor_ms = max(floor_ms, _floor(requests, steps, bounds))
    counted = {"requests next": after, "requests floor": floor_ms}
    return _kept(requests, bounds, oldest).unionByName(_counted(requests, counted))


def _bounds(requests: DataFrame, own: DataFrame) -> _Bounds | None:
    """Find what bounds the table; None if a bound has changed since the first request."""
    first = requests.agg(f.min("at").alias("at")).collect()[0].at
    changes = own.where("scope = '' and settings is not null").select(
        "at", f.explode("settings").alias("setting")
    )
    told = changes.where(f.col("setting.key").isin(_WINDOW, _MOST)).orderBy("at").collect()
    if first is not None and any(row.at > first for row in told):
        return None
    known = dict(DEFAULTS)
    for row in told:
        value = row.setting.value
        known[row.setting.key] = DEFAULTS[row.setting.key] if value is None else int(value)
    return _begun(known, requests, own)


def _begun(known: dict[str, int], requests: DataFrame, own: DataFrame) -> _Bounds:
    told: Row | None = own.where(_BEGUN).select("number", "place.log_time_ms").first()
    after, floor_ms = (told.number, told.log_time_ms) if told else (0, 0)
    kept = requests.where("kept").count() if told else 0
    return _Bounds(known[_WINDOW], known[_MOST], after - kept, after, floor_ms)


def _steps(requests: DataFrame, bounds: _Bounds) -> DataFrame:
    """Give the requests numbers, and tell how many had gone before and after each came.

    Those of a checkpoint have come before; they grow old with the others.
    """
    in_order = Window.orderBy("at")
    limit_ms = _WINDOWS * bounds.window_ms + 1
    older = Window.orderBy("log_time_ms").rangeBetween(Window.unboundedPreceding, -limit_ms)
    aged = f.count(f.lit(1)).over(older) + bounds.oldest
    served = requests.select("at", "log_time_ms", "kept", aged.alias("aged")).where("not kept")
    numbered = served.withColumn("number", f.row_number().over(in_order) - 1 + bounds.next)
    much = f.col("number") + 1 - bounds.most
    due = f.greatest("aged", much, f.lit(bounds.oldest))
    least = f.min(due - f.col("number") * _AT_ONCE).over(in_order) + f.col("number") * _AT_ONCE
    all_at_once = (f.col("number") + 1 - bounds.next) * _AT_ONCE + bounds.oldest
    gone = f.least(least, all_at_once)
    steps = numbered.withColumn("gone", gone).withColumn("much", much > 0)
    return steps.withColumn("before", f.lag("gone", 1, bounds.oldest).over(in_order))


def _floor(requests: DataFrame, steps: DataFrame, bounds: _Bounds) -> int:
    """Find the time of the youngest that had to go for want of room, or was made ahead of it."""
    going = steps.where("gone > before").select(
        f.col("log_time_ms").alias("now_ms"),
        f.explode(f.expr("sequence(before, gone - 1)")).alias("number"),
    )
    numbered = _numbered(requests, bounds)
    lost = numbered.join(going, "number").where(
        f.col("log_time_ms") >= f.col("now_ms") - _WINDOWS * bounds.window_ms
    )
    made = f.least(_made_ms(), f.col("log_time_ms") + bounds.window_ms)
    found = lost.agg(f.max(f.greatest("log_time_ms", made)).alias("floor")).collect()
    return int(found[0].floor or 0)


def _made_ms() -> Column:
    hexed = f.substring(f.regexp_replace("request.request_id", "-", ""), 1, 12)
    time_ms = f.conv(hexed, 16, 10).cast("bigint")
    return f.when(f.col("request.request_id").rlike(_UUID_7), time_ms).otherwise(0)


def _numbered(requests: DataFrame, bounds: _Bounds) -> DataFrame:
    """Give all requests their numbers; those of a checkpoint have their numbers."""
    served = requests.where("not kept").drop("number")
    number = f.row_number().over(Window.orderBy("at")) - 1 + bounds.next
    return served.withColumn("number", number.cast("bigint")).unionByName(requests.where("kept"))


def _kept(requests: DataFrame, bounds: _Bounds, oldest: int) -> DataFrame:
    last = _numbered(requests, bounds).where(f.col("number") >= oldest)
    key = f.concat_ws("|", "principal", "of", "request.request_id")
    where = f.concat_ws(".", entry("at"), ordinal("at"))
    content = [f.lower(f.hex(f"request.{name}")) for name in ("digest", "answer")]
    value = f.concat_ws(":", *content, "log_time_ms", "number", where)
    return last.select(*_named("request"), key.alias("key"), value.alias("value"))


def _counted(requests: DataFrame, counters: dict[str, int]) -> DataFrame:
    told = [(name, str(value)) for name, value in counters.items() if value]
    rows = requests.sparkSession.createDataFrame(told, "key string, value string")
    return rows.select(*_named("cluster"), "key", "value")


def _named(kind: str) -> tuple[Column, Column]:
    return f.lit("").alias("grp"), f.lit(kind).alias("kind")
