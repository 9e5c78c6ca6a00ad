"""Many histories in one table, so that one run of Spark compares all: by SQL and by `evolve`."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from holdfast.coordinator.model.events import Record
from holdfast.coordinator.model.state import State
from holdfast.replay.findings import Finding
from holdfast.replay.spark.log_tables import SQL_SCHEMA
from holdfast.replay.verify.compare import sql_against_fold
from holdfast.replay.verify.group_fold import entries_of
from holdfast.replay.verify.sql.entries import state_entries
from holdfast.replay.verify.sql.state import living_rows
from spark.rows import ENTRIES, leveled, told


class Tables:
    """Histories as rows, and the states that they lead to, as entries; a name for each."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self._entries: list[tuple[str, ...]] = []

    def add(self, name: str, records: list[Record], state: State) -> None:
        mine = [each for each in leveled(records) if each["grp"]]
        self.rows += [told(name, each["grp"], each) for each in mine]
        self.expect(name, state)

    def expect(self, name: str, state: State) -> None:
        self._entries += [
            (f"{name} {group.group_id}", *entry)
            for group in state.groups.values()
            for entry in entries_of(group)
        ]

    def kinds(self) -> set[str]:
        return {kind for _, kind, *_ in self._entries}

    def findings(self, spark: SparkSession) -> list[Finding]:
        kept_from = spark.createDataFrame([(0,)], "kept_from bigint")  # as `leveled` says
        living = living_rows(spark.createDataFrame(self.rows, SQL_SCHEMA)).cache()
        sql = state_entries(living, kept_from)
        evolved: DataFrame = spark.createDataFrame(self._entries, ENTRIES)
        return sql_against_fold(sql, evolved, set())
