"""Rows of named tuples as bytes, on their way from a worker to the driver: Arrow, no pickle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar, get_type_hints

import pyarrow as pa

T = TypeVar("T", bound="tuple[Any, ...]")

_TYPES: Final = {
    str: pa.string(),
    int: pa.int64(),
    int | None: pa.int64(),
    bool: pa.bool_(),
}
"""By the type of a field."""


def packed(kind: type[T], rows: Sequence[T]) -> bytes:
    """Encode rows of one kind."""
    fields = get_type_hints(kind)
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [
        pa.array(column, _TYPES[told])
        for column, told in zip(columns, fields.values(), strict=True)
    ]
    return table_bytes(pa.Table.from_arrays(arrays, list(fields)))


def unpacked(kind: type[T], content: bytes) -> list[T]:
    """Decode the rows that `packed` encoded."""
    columns = [column.to_pylist() for column in bytes_table(content).columns]
    return [kind(*row) for row in zip(*columns, strict=True)]


def table_bytes(table: pa.Table) -> bytes:
    """Encode a table as an Arrow stream."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    content: bytes = out.getvalue().to_pybytes()
    return content


def bytes_table(content: bytes) -> pa.Table:
    """Decode a table."""
    with pa.ipc.open_stream(content) as stream:
        return stream.read_all()
