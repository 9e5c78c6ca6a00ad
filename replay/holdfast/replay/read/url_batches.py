"""The rows of files behind a URL, as a worker hands them to Spark: all with the columns of today.

Spark's JVM would need a library for each store. What is here does what its reader of Parquet does
with files of this host: a column that a file lacks is null. Imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.replay.read.urls import local_file
from holdfast.storage.segments.columns import SCHEMA


def read_batches(
    files: Sequence[tuple[str, str]], wanted: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of files; each comes with its segment, which becomes the last column."""
    schema = pa.schema([*(SCHEMA.field(name) for name in wanted), ("segment", pa.string())])
    for address, segment in files:
        with local_file(address) as path, pq.ParquetFile(path) as file:
            there = [name for name in wanted if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=there):
                columns = [_column(batch, field) for field in list(schema)[:-1]]
                names = pa.repeat(pa.scalar(segment, pa.string()), batch.num_rows)
                yield pa.RecordBatch.from_arrays([*columns, names], schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    if column.type == field.type:
        return column
    return pa.array(column.to_pylist(), field.type)  # of an earlier version: lacks inner fields
