"""The columns beside a payload: what SQL reads, also of segments that earlier versions sealed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.coordinator.model.events import Record
from holdfast.replay.read.log_rows import START, Cut, Source, contradictions, read_rows
from holdfast.replay.spark.log_tables import SQL_SCHEMA
from holdfast.storage.segments.columns import LATER, SCHEMA, WHOLE
from holdfast.storage.segments.segments import typed_columns
from spark.cluster_logs import cluster_log
from spark.consumer_logs import eventful_consumer_log
from spark.earlier_segments import BEFORE_WHOLE, BUILD_BEFORE_0_2, RELEASE_0_1_0
from spark.event_logs import EventLog, eventful_log
from spark.mixed_logs import mixed_log
from spark.rows import columns_of


def told(record: Record) -> dict[str, object]:
    return {**columns_of(record), "payload": b"", "chain": b""}


def stored(folder: Path, log: EventLog, schema: pa.Schema) -> list[dict[str, Any]]:
    """The rows of a file in which the records of a log have these columns alone."""
    rows = [told(record) for record in log.records]
    path = folder / "bucket-00.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema), path)
    return list(read_rows(Source(str(path), START), Cut()))


def test_s22_a_segment_of_an_earlier_version_says_what_its_records_say(tmp_path: Path) -> None:
    """It lacks columns, which are null for all events that there were then."""
    log = eventful_log()
    rows = stored(tmp_path, log, RELEASE_0_1_0)

    assert [contradictions(*pair) for pair in zip(rows, log.records, strict=True)] == [[]] * len(
        rows
    )
    later = set(SCHEMA.names) - set(RELEASE_0_1_0.names) - WHOLE
    assert {typed_columns(record)[name] for record in log.records for name in later} == {None}


def test_s22_a_segment_of_a_build_before_0_2_contradicts_nothing_by_what_it_lacks(
    tmp_path: Path,
) -> None:
    """Its columns that are there must say what the payload says, as everywhere."""
    log = eventful_consumer_log()
    rows = stored(tmp_path, log, BUILD_BEFORE_0_2)

    assert not any(contradictions(*pair) for pair in zip(rows, log.records, strict=True))
    nth = next(n for n, row in enumerate(rows) if row["type"] == "TargetStored")
    other = {**rows[nth], "targets": rows[nth]["targets"][1:], "epoch": 99}
    assert contradictions(other, log.records[nth]) == ["epoch", "targets"]


def test_s22_a_segment_that_does_not_tell_the_whole_state_contradicts_nothing_by_that(
    tmp_path: Path,
) -> None:
    log = cluster_log()
    rows = stored(tmp_path, log, BEFORE_WHOLE)

    assert not any(contradictions(*pair) for pair in zip(rows, log.records, strict=True))


@pytest.mark.parametrize("lost", sorted(LATER | WHOLE))
def test_a_column_that_is_missing_among_others_of_its_time_is_found(lost: str) -> None:
    """No version ever wrote such a segment."""
    record = next(each for each in _all() if typed_columns(each)[lost] is not None)
    row = {name: value for name, value in told(record).items() if name != lost}

    assert contradictions(row, record) == [lost]


def _all() -> list[Record]:
    logs = (eventful_consumer_log(), mixed_log(), cluster_log(), eventful_log())
    return [record for log in logs for record in log.records]


def _first(kind: str) -> Record:
    return next(each for each in _all() if type(each.event).__name__ == kind)


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("GroupCreated", {"group_type"}),
        ("MemberSubscribed", {"member_id", "instance_id", "joined", "topics", "regex", "classic"}),
        ("EpochRaised", {"epoch"}),
        ("AssignmentRequested", {"member_id", "epoch", "assignor", "late"}),
        ("TargetStored", {"epoch", "targets", "assignor", "installed_by"}),
        (
            "MemberAdvanced",
            {"member_id", "epoch", "asked_back", "freed", "granted", "waiting"},
        ),
        ("RegexResolved", {"topics", "regex"}),
        ("GroupConverted", {"group_type", "generation", "converted"}),
    ],
)
def test_a_column_that_contradicts_its_payload_is_found(kind: str, columns: set[str]) -> None:
    record = _first(kind)
    row = told(record)

    assert contradictions(row, record) == []
    for name in columns:
        assert contradictions({**row, name: "something else"}, record) == [name]


def test_sql_reads_the_columns_that_are_written() -> None:
    """So that no file is opened to find its columns out."""
    depth, names, word = 0, list[str](), ""
    for sign in SQL_SCHEMA + ",":
        depth += (sign == "<") - (sign == ">")
        if sign == "," and not depth:
            names.append(word.split(maxsplit=1)[0])
            word = ""
        else:
            word += sign
    assert names == SCHEMA.names
