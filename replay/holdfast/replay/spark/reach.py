"""Whether a cluster can do the work: asked before any is given to it, and watched meanwhile.

A master that is not there is otherwise waited for, for a minute, and one without workers for ever,
also if they were there once. Knows addresses and sessions, no log.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Final

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from holdfast.coordinator.model.text import truncate
from holdfast.replay.findings import CannotCheck
from holdfast.replay.spark.meanwhile import meanwhile
from holdfast.replay.spark.options import (
    CONNECT_SCHEME,
    LOCAL_CLUSTER,
    STANDALONE_SCHEME,
    without_secrets,
)
from holdfast.replay.spark.tasks import run_tasks

_CONNECT_SECONDS_MAX: Final = 5.0
_WORKERS_SECONDS_MAX: Final = 60.0
_POLL_SECONDS: Final = 0.2
_WATCH_SECONDS: Final = 2.0
_CONNECT_PORT: Final = 15002
_DYNAMIC: Final = "spark.dynamicAllocation.enabled"

NEEDED: Final = ("holdfast.replay.verify.fold_job", "holdfast.replay.analyse.queries")
"""Modules that import all that tasks of workers need: names, since Spark's room knows none."""


def check_answers(master: str) -> None:
    """Raise CannotCheck if nothing listens where a master or a Connect server should be."""
    places = _addresses(master)
    refused = [f"{host}:{port}: {said}" for host, port in places if (said := _refusal(host, port))]
    if places and len(refused) == len(places):
        shown = truncate(without_secrets(master))
        raise CannotCheck(
            f"Spark is not reached at {shown} ({', '.join(refused)}): start it, or "
            "give the address that it tells when it starts"
        )


def check_workers(spark: SparkSession, master: str) -> None:
    """Raise CannotCheck if a master gives no worker; let one import what tasks need.

    What a worker lacks is raised by Spark, and told by `failures`.
    """
    if _keeps_workers(spark, master):
        _await_executor(spark, master)
    schema = pa.schema([("name", pa.string())])
    run_tasks(spark, [partial(_imported, NEEDED)], "name string", schema).collect()


@contextmanager
def workers_watched(spark: SparkSession, master: str) -> Iterator[None]:
    """Let Spark's jobs fail in the body once there was no worker for them for a minute.

    Spark itself would wait for ever: a worker that ended is no fault of a job, to it.
    """
    if not _keeps_workers(spark, master):
        yield
        return
    context = spark.sparkContext
    tracker = context.statusTracker()

    def is_stuck() -> bool:
        return bool(tracker.getActiveJobsIds()) and not has_executor(spark)

    with meanwhile("workers", partial(watch, is_stuck, context.cancelAllJobs)):
        yield


def watch(
    is_stuck: Callable[[], bool], cancel: Callable[[], object], wait: Callable[[float], bool]
) -> None:
    """Cancel whenever Spark has been stuck for a minute; ends when `wait` says that it is over.

    A Spark that is lost meanwhile is told by whoever works with it.
    """
    polls = 0
    with suppress(PySparkException, Py4JError, OSError):
        while not wait(_WATCH_SECONDS):
            polls = polls + 1 if is_stuck() else 0
            if polls * _WATCH_SECONDS >= _WORKERS_SECONDS_MAX:
                cancel()
                polls = 0


def has_executor(spark: SparkSession) -> bool:
    """Return whether a worker has started something for us; the driver is in that list as well."""
    running = spark.sparkContext._jsc.sc()  # noqa: SLF001 - Python has no other way to ask
    return int(running.getExecutorMemoryStatus().size()) > 1


def _keeps_workers(spark: SparkSession, master: str) -> bool:
    """Return whether workers are given to us as we begin, and stay also while we have no work.

    With dynamic allocation they are asked for when a job waits, and may come when others end.
    """
    if not master.startswith((STANDALONE_SCHEME, LOCAL_CLUSTER)):
        return False
    return (spark.sparkContext.getConf().get(_DYNAMIC) or "").lower() != "true"


def _imported(names: Sequence[str]) -> Iterator[tuple[str]]:
    for name in names:
        yield (import_module(name).__name__,)


def _addresses(master: str) -> list[tuple[str, int]]:
    """Return hosts and ports; none for a kind of master that is found in another way."""
    if master.startswith(CONNECT_SCHEME):
        host, _, port = master.removeprefix(CONNECT_SCHEME).partition("/")[0].partition(":")
        return [(host, int(port or _CONNECT_PORT))]
    if not master.startswith(STANDALONE_SCHEME):
        return []
    found = []
    for place in master.removeprefix(STANDALONE_SCHEME).split(","):
        host, _, number = place.rpartition(":")
        found.append((host.strip("[]"), int(number)))
    return found


def _refusal(host: str, port: int) -> str:
    """Return why nothing answers there; "" if something does."""
    try:
        socket.create_connection((host, port), _CONNECT_SECONDS_MAX).close()
    except (OSError, OverflowError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""


def _await_executor(spark: SparkSession, master: str) -> None:
    """Wait until a worker has started an executor for us."""
    deadline = time.monotonic() + _WORKERS_SECONDS_MAX
    while not _is_given_one(spark, master):
        if time.monotonic() > deadline:
            raise CannotCheck(
                f"{truncate(master)} has given no worker for {_WORKERS_SECONDS_MAX:.0f} s: start "
                "one, or give it the cores and the memory that spark.executor.memory asks for"
            )
        time.sleep(_POLL_SECONDS)


def _is_given_one(spark: SparkSession, master: str) -> bool:
    """Ask whether there is an executor. Raises CannotCheck if the master has given us up."""
    try:
        return has_executor(spark)
    except Py4JError as error:  # of a context that is stopped nothing can be asked
        if spark.sparkContext._jsc.sc().isStopped():  # noqa: SLF001 - as above
            raise CannotCheck(
                f"the workers of {truncate(master)} cannot start what works for us, or that "
                "master is of another version of Spark: look at the logs of both"
            ) from error
        raise
