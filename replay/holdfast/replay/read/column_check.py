"""Compare the columns of a batch with its payloads: all values of a column at once.

Only a batch in which something differs is compared row by row (`log_rows.contradictions`), which
says what differs. Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from holdfast.coordinator.model.events import OffsetCommitted, Record
from holdfast.replay.read.log_rows import contradictions
from holdfast.storage.segments.columns import LATER, SCHEMA, WHOLE
from holdfast.storage.segments.segments import column_readers, offsets_of

_OF_COMMITS: Final = frozenset({"offsets", "beside"})
"""The columns of commits, which are most of the records; they are compared without structs."""
_NOT_OF_DELETED: Final = (None, None, None)
"""What the event of offsets that are gone does not tell of each."""
_COMPARED: Final = tuple(name for name in SCHEMA.names if name not in {"payload", "chain"})


def contradicting(batch: pa.RecordBatch, records: Sequence[Record | None]) -> dict[int, list[str]]:
    """Return which columns differ from what the payload says, by the number of the row.

    `records`: what the payloads say; None for one that cannot be read, which is not compared.
    """
    with suppress(Exception):  # a value that no such column can hold differs, too
        whole = [record for record in records if record is not None]
        if len(whole) == len(records) and all(_comparisons(batch, whole)):
            return {}
    rows = zip(batch.to_pylist(), records, strict=True)
    found = ((n, contradictions(row, record)) for n, (row, record) in enumerate(rows) if record)
    return {number: wrong for number, wrong in found if wrong}


def _comparisons(batch: pa.RecordBatch, records: Sequence[Record]) -> Iterator[bool]:
    """Yield, for each column, whether it is as the payloads say."""
    there = frozenset(batch.schema.names)
    told = _told(records)
    for name in _COMPARED:
        if name in there:
            yield _is_alike(name, batch.column(name), told.get(name))
        elif not any(name in lacked and lacked.isdisjoint(there) for lacked in (LATER, WHOLE)):
            yield all(value is None for value in told.get(name, ()))


def _is_alike(name: str, column: pa.Array, values: Sequence[Any] | None) -> bool:
    if values is None:
        return bool(column.null_count == len(column))
    if name in _OF_COMMITS:
        return _are_alike_offsets(column, values)
    return bool(column.equals(pa.array(values, column.type)))


def _told(records: Sequence[Record]) -> dict[str, Sequence[Any]]:
    """Return what payloads say, column by column; what no event tells of is left out."""
    positions, groups, seqs, log_times, wall_times, causes, principals, request_ids, events = zip(
        *records, strict=True
    )
    (indexes, ordinals), (rules, commands) = zip(*positions, strict=True), zip(*causes, strict=True)
    return {
        "idx": indexes,
        "ordinal": ordinals,
        "grp": groups,
        "grp_seq": seqs,
        "log_time_ms": log_times,
        "wall_time_ms": wall_times,
        "type": [type(event).__name__ for event in events],
        "rule": rules,
        "command": commands,
        "principal": principals,
        "request_id": request_ids,
        **_told_by_events(events),
    }


def _told_by_events(events: Sequence[Any]) -> dict[str, Sequence[Any]]:
    by_class: dict[type, list[int]] = {}
    for number, event in enumerate(events):
        by_class.setdefault(type(event), []).append(number)
    columns: dict[str, list[Any]] = {}
    for numbers in by_class.values():
        for name, read in column_readers(events[numbers[0]]):
            column = columns.setdefault(name, [None] * len(events))
            take = offsets_of if name in _OF_COMMITS else read
            for number in numbers:
                column[number] = take(events[number])
    return dict(columns)


def _are_alike_offsets(column: pa.Array, values: Sequence[Any]) -> bool:
    lengths = pa.array([None if each is None else len(each) for each in values], pa.int32())
    if not column.value_lengths().equals(lengths):
        return False
    stored = column.flatten()
    told = [
        one if type(one) is OffsetCommitted else (*one, *_NOT_OF_DELETED)
        for each in values
        if each
        for one in each
    ]
    by_field = dict(zip(OffsetCommitted._fields, zip(*told, strict=True), strict=False))
    fields = zip(stored.type, stored.flatten(), strict=True)
    return not stored.null_count and all(
        held.equals(pa.array(by_field.get(field.name, ()), field.type)) for field, held in fields
    )
