"""Statements in SQL: what they do to the tables that they read."""

from __future__ import annotations

from pyspark.sql import SparkSession

from holdfast.replay.verify.sql.statements import statement


def test_a_table_that_is_persisted_stays_so_when_a_statement_has_read_it(
    spark: SparkSession,
) -> None:
    """Else all that read it later would read the log again."""
    rows = spark.sql("select 'g' as grp, 7 as at, 1 as phase, true as present").persist()

    last = statement("conversion/last", rows=rows)

    assert rows.storageLevel.useMemory
    assert [tuple(row) for row in last.collect()] == [("g", 7)]
