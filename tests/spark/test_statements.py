"""Statements in SQL: what they do to the tables that they read, and what Spark knows of theirs."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast.replay.spark.log_tables import SQL_SCHEMA
from holdfast.replay.verify.sql import members
from holdfast.replay.verify.sql.state import living_rows
from holdfast.replay.verify.sql.statements import computed, statement
from spark.event_logs import eventful_log
from spark.rows import leveled, told


@pytest.fixture(scope="module")
def living(spark: SparkSession) -> DataFrame:
    records = leveled(eventful_log().records)
    rows = [told("x", each["grp"], each) for each in records if each["grp"]]
    known = living_rows(spark.createDataFrame(rows, SQL_SCHEMA))
    return known.repartition(2, "grp").localCheckpoint()


def test_what_is_computed_of_groups_is_not_distributed_anew(
    living: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is said of members is read many times: each reading would move all its rows."""
    members.seats(members.lines(living)).explain()
    assert "Exchange" not in capsys.readouterr().out

    members.seats(statement("members/lines", living=living).localCheckpoint()).explain()
    assert "Exchange" in capsys.readouterr().out, "Spark knows it by itself: drop `computed`"


def test_what_is_computed_has_the_same_columns(living: DataFrame) -> None:
    seats = statement("members/seats", said=members.lines(living))

    assert computed(seats).schema == seats.schema


def test_a_table_that_is_persisted_stays_so_when_a_statement_has_read_it(
    spark: SparkSession,
) -> None:
    """Else all that read it later would read the log again."""
    rows = spark.sql("select 'g' as grp, 7 as at, 1 as phase, true as present").persist()

    last = statement("conversion/last", rows=rows)

    assert rows.storageLevel.useMemory
    assert [tuple(row) for row in last.collect()] == [("g", 7)]
