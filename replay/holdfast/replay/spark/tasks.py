"""Run tasks in Spark's workers, one a partition, and collect their rows; few records need none.

The workers open files themselves, so a log's folder must be visible to them under the same path
(any local session; on a cluster, a shared file system). Knows nothing of what a task does.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from holdfast.replay.findings import CannotCheck
from holdfast.replay.spark.failures import sentence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Task: TypeAlias = Callable[[], Iterator[tuple[object, ...]]]
"""A function for a worker to run; it yields rows."""

Reader: TypeAlias = Callable[[], Iterator[pa.RecordBatch]]
"""A function for a worker to run; it yields rows as Arrow has them."""

_BATCH: Final = 1_000
_HERE: Final = "spark.holdfast.tasksHere"


@contextmanager
def running_here(spark: SparkSession) -> Iterator[None]:
    """Let the tasks of a session run in this process meanwhile: to start workers costs seconds."""
    before = is_here(spark)
    spark.conf.set(_HERE, "true")
    try:
        yield
    finally:
        with suppress(Exception):  # a session that is lost says so by itself
            spark.conf.set(_HERE, str(before).lower())


def is_here(spark: SparkSession) -> bool:
    """Return whether the tasks of a session run in this process."""
    return spark.conf.get(_HERE, "false") == "true"


def run_tasks(
    spark: SparkSession, tasks: Sequence[Task], schema: str, arrow: pa.Schema
) -> DataFrame:
    """Return the rows of all tasks, one task a partition. Tasks reach the workers by pickle."""
    if is_here(spark):
        batches = list(in_batches(iter(rows_here(tasks)), arrow))
        return spark.createDataFrame(pa.Table.from_batches(batches, arrow), schema)
    work = partial(_work, tuple(tasks), arrow)
    numbers = spark.range(0, len(tasks), 1, numPartitions=len(tasks))
    return numbers.mapInArrow(work, schema)


def run_readers(spark: SparkSession, readers: Sequence[Reader], schema: str) -> DataFrame:
    """Return the batches of all readers, one reader a partition; `schema` is what they yield."""
    numbers = spark.range(0, len(readers), 1, numPartitions=len(readers))
    return numbers.mapInArrow(partial(_relay, tuple(readers)), schema)


def rows_here(tasks: Sequence[Task]) -> list[tuple[object, ...]]:
    """Run tasks one after the other. Raises CannotCheck if one fails, as Spark's failures do."""
    try:
        return [row for task in tasks for row in task()]
    except CannotCheck:
        raise
    except Exception as error:
        raise CannotCheck(sentence(error)) from error


def _work(
    tasks: tuple[Task, ...], arrow: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run the tasks with these numbers. Garbage collection would walk live state: it is off.

    Spark collects garbage behind each task: what a worker has imported, which is most of what that
    would walk, is left out of it.
    """
    gc.freeze()
    gc.disable()
    try:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from in_batches(tasks[number](), arrow)
    finally:
        gc.enable()


def _relay(
    readers: tuple[Reader, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from readers[number]()


def in_batches(rows: Iterator[tuple[object, ...]], arrow: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows as a worker hands them to Spark."""
    while chunk := list(islice(rows, _BATCH)):
        columns = zip(*chunk, strict=True)
        arrays = [pa.array(c, kind) for c, kind in zip(columns, arrow.types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=arrow)
