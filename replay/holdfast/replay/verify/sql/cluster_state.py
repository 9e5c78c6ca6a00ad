"""The state that belongs to no group, by SQL: counters, settings, topics, who may do what.

The rules are in `rules/cluster`; the dedupe table is told by `sql.requests`. Nothing here may
import `coordinator`; results have the form of `cluster_entries.entries_of`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from holdfast.replay.verify.sql.statements import statement


def own_rows(rows: DataFrame) -> DataFrame:
    """Select the cluster's own records, each `at` its place."""
    return statement("cluster/own", rows=rows)


def cluster_entries(rows: DataFrame, own: DataFrame) -> DataFrame:
    """Compute what belongs to no group, without the dedupe table, one row a key.

    `rows`: all records; `own`: the cluster's own of them, which are read several times.
    """
    return statement("cluster/entries", rows=rows, own=own, kept_from=level_begins(own))


def level_begins(own: DataFrame) -> DataFrame:
    """Find from where on members keep principals: one row; null if that level was never raised."""
    return statement("cluster/principals", own=own)
