"""Runs tasks in Spark's workers, one a partition, and gathers the rows that they give.

The workers open files themselves, so a log's folder must be visible to them under the same path
(any local session; on a cluster, a shared file system). Knows nothing of what a task does.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

Task: TypeAlias = Callable[[], Iterator[tuple[object, ...]]]
"""Something for a worker to do: gives rows."""

_BATCH: Final = 10_000


def run_tasks(
    spark: SparkSession, tasks: Sequence[Task], schema: str, arrow: pa.Schema
) -> DataFrame:
    """The rows of all tasks, one task a partition. The tasks travel to the workers by pickle."""
    work = partial(_work, tuple(tasks), arrow)
    numbers = spark.range(0, len(tasks), 1, numPartitions=len(tasks))
    return numbers.mapInArrow(work, schema)


def _work(
    tasks: tuple[Task, ...], arrow: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Do the tasks whose numbers come in. Garbage collection would only walk living state."""
    gc.disable()
    try:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _batches(tasks[number](), arrow)
    finally:
        gc.enable()


def _batches(rows: Iterator[tuple[object, ...]], arrow: pa.Schema) -> Iterator[pa.RecordBatch]:
    while chunk := list(islice(rows, _BATCH)):
        columns = zip(*chunk, strict=True)
        arrays = [pa.array(c, kind) for c, kind in zip(columns, arrow.types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=arrow)
