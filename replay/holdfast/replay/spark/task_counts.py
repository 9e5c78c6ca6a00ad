"""Tell how many tasks of Spark's present jobs are done, while somebody waits for them.

Knows Spark's counts of tasks, not what the tasks are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException

from holdfast.replay.progress import Silent, Steps
from holdfast.replay.spark.meanwhile import meanwhile

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

_EVERY_S: Final = 0.5


@contextmanager
def watched(spark: SparkSession, steps: Steps) -> Iterator[None]:
    """Tell `steps` the counts, now and then, during the body. Spark Connect has none to tell."""
    tracker = None if isinstance(steps, Silent) else _tracker(spark)
    if tracker is None:
        yield
        return
    with meanwhile("progress", partial(_watch, tracker, steps)):
        yield


def _tracker(spark: SparkSession) -> StatusTracker | None:
    with suppress(PySparkException, Py4JError, AttributeError):
        return spark.sparkContext.statusTracker()
    return None


def _watch(tracker: StatusTracker, steps: Steps, wait: Callable[[float], bool]) -> None:
    """Ask until it is over; a Spark that is lost is told by whoever works with it."""
    with suppress(PySparkException, Py4JError, OSError):
        while not wait(_EVERY_S):
            done, total = counts(tracker)
            if total:
                steps.tasks(done, total)


def counts(tracker: StatusTracker) -> tuple[int, int]:
    """Return how many tasks of the active jobs are done, and how many there are."""
    done = total = 0
    for job in tracker.getActiveJobsIds():
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            told = tracker.getStageInfo(stage)
            if told is not None:
                done, total = done + told.numCompletedTasks, total + told.numTasks
    return done, total
