"""What Spark's Python workers do, and what they may import."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from holdfast.replay.findings import CannotCheck
from holdfast.replay.spark.tasks import run_tasks, running_here

ROWS = ("pid bigint", pa.schema([("pid", pa.int64())]))


def _pid() -> Iterator[tuple[object, ...]]:
    yield (os.getpid(),)


def _failing() -> Iterator[tuple[object, ...]]:
    yield (1 // 0,)


def _nothing() -> Iterator[tuple[object, ...]]:
    yield from ()


def _kept_apart() -> Iterator[tuple[object, ...]]:
    yield (gc.get_freeze_count(),)


def test_tasks_run_in_workers_unless_a_session_is_told_otherwise(spark: SparkSession) -> None:
    """A verification of few records starts none."""
    with running_here(spark):
        both = run_tasks(spark, [_pid, _nothing], *ROWS).collect()
        assert [row.pid for row in both] == [os.getpid()]
        assert run_tasks(spark, [_nothing], *ROWS).collect() == []

    assert [row.pid for row in run_tasks(spark, [_pid], *ROWS).collect()] != [os.getpid()]


def test_a_task_that_fails_here_says_nothing_of_the_log(spark: SparkSession) -> None:
    with running_here(spark), pytest.raises(CannotCheck):
        run_tasks(spark, [_failing], *ROWS)


def test_a_worker_imports_nothing_from_the_working_directory(spark: SparkSession) -> None:
    """Spark starts them with `python -m`, in whatever directory the replay was started."""
    numbers = spark.sparkContext.parallelize([0], 1)

    assert numbers.map(lambda _: sys.flags.safe_path).collect() == [True]


def test_garbage_is_not_looked_for_in_what_a_worker_has_imported(spark: SparkSession) -> None:
    """Spark has a worker collect garbage behind each task: its modules alone took 0.1 s."""
    (row,) = run_tasks(spark, [_kept_apart], *ROWS).collect()

    assert row.pid > len(sys.modules)
