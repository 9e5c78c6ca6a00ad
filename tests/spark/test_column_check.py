"""Columns are compared with payloads a batch at a time, and as strictly as one by one (S22)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from holdfast.coordinator.model.events import Record
from holdfast.replay.read import column_check
from holdfast.replay.read.column_check import contradicting
from holdfast.replay.read.log_rows import contradictions
from holdfast.storage.segments.columns import LATER, SCHEMA
from spark.consumer_logs import eventful_consumer_log
from spark.earlier_segments import BUILD_BEFORE_0_2, RELEASE_0_1_0
from spark.event_logs import eventful_log
from spark.mixed_logs import mixed_log
from spark.rows import columns_of

COMPARED = [name for name in SCHEMA.names if name not in {"payload", "chain"}]


@cache
def records() -> tuple[Record, ...]:
    logs = (eventful_log(), eventful_consumer_log(), mixed_log())
    return tuple(record for log in logs for record in log.records)


def batch_of(rows: Sequence[dict[str, Any]], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema)


def rows_of(told: Sequence[Record]) -> list[dict[str, Any]]:
    return [{**columns_of(record), "payload": b"", "chain": b""} for record in told]


def another(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - what the column holds
    """A value that the column could hold as well, and that is not this one."""
    if value is not None:
        return None
    if pa.types.is_list(kind):
        return []
    if pa.types.is_struct(kind):
        return {}
    return {"string": "x", "bool": True, "binary": b"x"}.get(str(kind), 7)


@pytest.mark.parametrize(
    ("told", "schema"),
    [
        (records, SCHEMA),
        (lambda: eventful_log().records, RELEASE_0_1_0),
        (lambda: eventful_consumer_log().records, BUILD_BEFORE_0_2),
    ],
)
def test_sound_columns_of_each_version_are_compared_without_looking_at_a_row(
    told: Any,  # noqa: ANN401 - makes records
    schema: pa.Schema,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(column_check, "contradictions", None)

    assert contradicting(batch_of(rows_of(told()), schema), told()) == {}


@pytest.mark.parametrize("name", COMPARED)
def test_a_value_of_any_column_that_is_not_the_payload_s_is_found(name: str) -> None:
    """In the first row, in the last one, and in one of each class of events."""
    told, rows = records(), rows_of(records())
    of_class = {type(record.event): number for number, record in enumerate(told)}
    for number in {0, len(told) - 1, *of_class.values()}:
        value = another(rows[number][name], SCHEMA.field(name).type)
        damaged = [*rows[:number], {**rows[number], name: value}, *rows[number + 1 :]]

        assert contradicting(batch_of(damaged), told) == {number: [name]}


def test_a_part_of_an_offset_that_is_not_the_payload_s_is_found() -> None:
    """Commits are compared by their parts: partition, topic and offset of each count."""
    told, rows = records(), rows_of(records())
    numbers = [n for n, row in enumerate(rows) if row["offsets"]]
    assert {type(told[n].event).__name__ for n in numbers} >= {"OffsetsCommitted"}
    for number in numbers:
        for part, value in (("topic", "x"), ("partition", 99), ("offset", 99)):
            offsets = [{**rows[number]["offsets"][0], part: value}, *rows[number]["offsets"][1:]]
            damaged = [*rows[:number], {**rows[number], "offsets": offsets}, *rows[number + 1 :]]

            assert contradicting(batch_of(damaged), told) == {number: ["offsets"]}


def test_offsets_that_moved_to_the_next_record_are_found() -> None:
    told = [record for record in records() if columns_of(record)["offsets"]][:2]
    rows = rows_of(told)
    together = [*rows[0]["offsets"], *rows[1]["offsets"]]
    damaged = [{**rows[0], "offsets": together}, {**rows[1], "offsets": []}]

    assert contradicting(batch_of(damaged), told) == {0: ["offsets"], 1: ["offsets"]}


@pytest.mark.parametrize("lost", sorted({*COMPARED} - LATER))
def test_a_column_that_is_missing_is_found_where_a_payload_tells_something(lost: str) -> None:
    told, rows = records(), rows_of(records())
    schema = pa.schema([field for field in SCHEMA if field.name != lost])

    found = contradicting(batch_of(rows, schema), told)

    assert found == {n: [lost] for n, row in enumerate(rows) if row[lost] is not None}


def test_a_payload_that_no_column_can_hold_is_compared_all_the_same() -> None:
    """A forged payload may tell a number that is too large for the column."""
    record = records()[-1]
    row = rows_of([record])[0]
    forged = record._replace(group_seq=1 << 63)

    assert contradicting(batch_of([row]), [forged]) == {0: ["grp_seq"]}
    assert contradictions(row, forged) == ["grp_seq"]


def test_a_record_that_cannot_be_read_is_left_out_and_the_others_are_compared() -> None:
    told, rows = list(records()[:3]), rows_of(records()[:3])
    rows[2] = {**rows[2], "rule": "x"}

    assert contradicting(batch_of(rows), [told[0], None, told[2]]) == {2: ["rule"]}
