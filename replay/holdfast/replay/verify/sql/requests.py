"""The dedupe table by SQL (S15): which served requests are kept, and in which order.

The rules are in `rules/requests`. What bounds the table, and how much of it was
forgotten, comes to the driver between them. Nothing here may import `coordinator`; results have the
form of `cluster_entries.entries_of`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from holdfast.replay.verify.sql.statements import statement

_WINDOW: Final = "dedupe.window_ms"
_MOST: Final = "dedupe.requests_max"
DEFAULTS: Final = {_WINDOW: 600_000, _MOST: 50_000}
"""What is in force until somebody sets something else."""


def request_rows(rows: DataFrame) -> DataFrame:
    """Select the requests that were served, and those that a checkpoint tells of, by place."""
    return statement("requests/served", rows=rows)


def request_entries(requests: DataFrame, own: DataFrame) -> DataFrame | None:
    """Compute the table, one row a request, and its counters; None: its settings have changed.

    `requests`: of `request_rows`; `own`: the cluster's own records. Both are read several times.
    """
    begun = statement("requests/bounds", requests=requests, own=own).collect()[0]
    if begun.changed:
        return None
    bounds = _bounds(requests.sparkSession, begun)
    numbered = statement("requests/numbers", requests=requests, bounds=bounds)
    steps = statement("requests/steps", numbered=numbered, bounds=bounds)
    total = steps.agg(
        f.max("number").alias("last"), f.max("gone").alias("gone"), f.max("much").alias("much")
    ).collect()[0]
    totals = _one_row(
        requests.sparkSession,
        oldest=total.gone or begun.oldest,
        next_number=begun.next_number if total.last is None else total.last + 1,
        floor_ms=max(begun.floor_ms, _floor(numbered, steps, bounds) if total.much else 0),
    )
    return statement("requests/entries", numbered=numbered, totals=totals)


def _bounds(spark: SparkSession, begun: Row) -> DataFrame:
    """Return what bounds the table as a row: what is set, and what a checkpoint has told."""
    return _one_row(
        spark,
        window_ms=DEFAULTS[_WINDOW] if begun.window_ms is None else begun.window_ms,
        most=DEFAULTS[_MOST] if begun.most is None else begun.most,
        oldest=begun.oldest,
        next_number=begun.next_number,
    )


def _floor(numbered: DataFrame, steps: DataFrame, bounds: DataFrame) -> int:
    """Find the time of the youngest that had to go for want of room, or was made ahead of it."""
    found = statement("requests/floor", numbered=numbered, steps=steps, bounds=bounds).collect()
    return int(found[0].floor_ms or 0)


def _one_row(spark: SparkSession, **numbers: int) -> DataFrame:
    """Return numbers as a table, which Spark takes for literals: so no job is run for them."""
    columns = ", ".join(f"bigint({number}) as {name}" for name, number in numbers.items())
    return spark.sql(f"select {columns}")
