"""What belongs to no group: by SQL the same as by `evolve`, and each kind of defect is found."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.coordinator.model import levels
from holdfast.coordinator.model.events import SettingsChanged
from holdfast.coordinator.model.state import State
from holdfast.replay.app import verify
from holdfast.replay.read.log_rows import Bucket
from holdfast.replay.spark.log_tables import SQL_SCHEMA
from holdfast.replay.verify.checkpoint.rows import checkpoint_rows
from holdfast.replay.verify.cluster_entries import entries_of
from holdfast.replay.verify.sql.entries import cluster_state
from holdfast.replay.verify.sql.requests import DEFAULTS
from holdfast.storage.segments.columns import SCHEMA
from holdfast.storage.segments.segment_reader import CLUSTER_FILE
from spark.cluster_logs import (
    DEDUPE,
    DEFECTS,
    REQUEST_DEFECTS,
    cluster_log,
    dedupe_log,
    wrong_requests,
    wrong_state,
)
from spark.cut_logs import beginning
from spark.event_logs import EventLog, write_node
from spark.rows import columns_of

LOG = cluster_log()
Told = set[tuple[str, str, str]]


def row_of(columns: dict[str, Any]) -> tuple[Any, ...]:
    told = {**columns, "payload": None, "chain": None}
    return tuple(told.get(name) for name in SCHEMA.names)


def by_sql(spark: SparkSession, rows: list[tuple[Any, ...]]) -> Told:
    found = cluster_state(spark.createDataFrame(rows, SQL_SCHEMA).persist())
    assert not found.requests_left_out
    return {(row.kind, row.key, row.value) for row in found.entries.collect()}


def by_evolve(state: State) -> Told:
    return {(entry.kind, entry.key, entry.value) for entry in entries_of(state)}


def rows_of(log: EventLog) -> list[tuple[Any, ...]]:
    return [row_of(columns_of(record)) for record in log.records]


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> Told:
    return by_sql(spark, rows_of(LOG))


def test_sql_comes_to_the_same_state_as_evolve(told: Told) -> None:
    assert told == by_evolve(LOG.state)
    assert {kind for kind, *_ in told} == {
        *("cluster", "setting", "topic", "acl", "revocation", "request")
    }
    assert ("cluster", "requests floor") in {(kind, key) for kind, key, _ in told}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_of_evolve_is_found(
    name: str, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = by_evolve(wrong_state(DEFECTS[name], LOG.records, monkeypatch))

    assert DEFECTS[name].found_by in {_named(each) for each in wrong ^ told}


def _named(entry: tuple[str, str, str]) -> str:
    kind, key, _ = entry
    return f"cluster {key}" if kind == "cluster" else kind


@pytest.mark.parametrize("name", REQUEST_DEFECTS)
def test_s15_a_defect_of_the_dedupe_table_is_found(
    name: str, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = by_evolve(wrong_requests(name, LOG.records, monkeypatch))

    assert {_named(each) for each in wrong ^ told} & {"request", "cluster requests floor"}


@pytest.mark.parametrize("seed", range(4))
def test_s15_requests_are_forgotten_by_the_same_rules(seed: int, spark: SparkSession) -> None:
    log = dedupe_log(seed)

    assert by_sql(spark, rows_of(log)) == by_evolve(log.state)


@pytest.mark.parametrize("count", [7, 12, 17, 40, len(LOG.records) - 1])
def test_s24_sql_goes_on_from_a_checkpoint(count: int, spark: SparkSession, tmp_path: Path) -> None:
    begins = beginning(tmp_path, LOG, count)
    names = SCHEMA.names
    first = [
        row_of(dict(zip(names, row, strict=True)))
        for row in checkpoint_rows(Bucket(CLUSTER_FILE, (), begins))
        if not row[names.index("grp")]
    ]
    rows = first + [row_of(columns_of(record)) for record in LOG.records[count:]]

    assert by_sql(spark, rows) == by_evolve(LOG.state)


def test_s15_a_table_whose_bounds_have_changed_is_left_out_and_the_report_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = cluster_log()
    log.entry("", SettingsChanged("", DEDUPE))

    report = verify([write_node(tmp_path / "n1", "n1", log.rows)], spark=spark)

    assert report.findings == ()
    assert [note for note in report.notes if "dedupe.window_ms" in note]


def test_what_sql_knows_of_settings_and_levels_is_what_the_coordinator_does() -> None:
    """SQL states it again, since it shares no code."""
    defaults = {setting.name: setting.default for setting in REGISTRY.values()}
    assert {name: defaults[name] for name in DEFAULTS} == DEFAULTS
    assert levels.PRINCIPALS == levels.GROUP_TYPES
    rule = files("holdfast.replay.verify.sql").joinpath("rules", "cluster", "principals.sql")
    assert f"number >= {levels.PRINCIPALS} " in rule.read_text("utf-8")
