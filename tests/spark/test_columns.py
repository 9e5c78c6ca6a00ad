"""The columns beside a payload: what SQL reads, also of segments that earlier versions sealed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.coordinator.model.events import Record
from holdfast.replay.read.log_rows import START, Cut, Source, contradictions, read_rows
from holdfast.replay.spark.log_tables import SQL_SCHEMA
from holdfast.storage.segments.columns import SCHEMA
from holdfast.storage.segments.segments import typed_columns
from spark.consumer_logs import eventful_consumer_log
from spark.event_logs import EventLog, eventful_log
from spark.rows import columns_of

OLD = SCHEMA.names[: SCHEMA.names.index("chain") + 1]
"""The columns of versions without the heartbeat protocol, in their order."""


def told(record: Record) -> dict[str, object]:
    return {**columns_of(record), "payload": b"", "chain": b""}


def stored(folder: Path, log: EventLog) -> Path:
    """The records of a log without the columns that came later."""
    rows = [told(record) for record in log.records]
    path = folder / "bucket-00.parquet"
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA).select(OLD), path)
    return path


def test_s22_a_segment_of_an_earlier_version_says_what_its_records_say(tmp_path: Path) -> None:
    """It lacks columns, which are null for all events that there were then."""
    log = eventful_log()
    rows = list(read_rows(Source(str(stored(tmp_path, log)), START), Cut()))

    assert [contradictions(*pair) for pair in zip(rows, log.records, strict=True)] == [[]] * len(
        rows
    )
    later = set(SCHEMA.names) - set(OLD)
    assert {typed_columns(record)[name] for record in log.records for name in later} == {None}


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("GroupCreated", {"group_type"}),
        ("MemberSubscribed", {"member_id", "instance_id", "joined", "topics", "regex"}),
        ("EpochRaised", {"epoch"}),
        ("AssignmentRequested", {"member_id", "epoch"}),
        ("TargetStored", {"epoch", "targets"}),
        (
            "MemberAdvanced",
            {"member_id", "epoch", "asked_back", "freed", "granted", "waiting"},
        ),
        ("RegexResolved", {"topics", "regex"}),
    ],
)
def test_a_column_that_contradicts_its_payload_is_found(kind: str, columns: set[str]) -> None:
    log = eventful_consumer_log()
    record = next(each for each in log.records if type(each.event).__name__ == kind)
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
