"""Whether a cluster can do the work, asked before any work is given to it.

A master that is not there is otherwise waited for, for a minute, and one without workers for ever.
Knows addresses and sessions, no log.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from holdfast.coordinator.model.text import truncate
from holdfast.replay.findings import CannotCheck
from holdfast.replay.spark.options import CONNECT_SCHEME, LOCAL_CLUSTER, STANDALONE_SCHEME
from holdfast.replay.spark.tasks import run_tasks

_CONNECT_SECONDS_MAX: Final = 5.0
_WORKERS_SECONDS_MAX: Final = 60.0
_POLL_SECONDS: Final = 0.2
_CONNECT_PORT: Final = 15002

NEEDED: Final = ("holdfast.replay.verify.fold_job", "holdfast.replay.analyse.queries")
"""Modules that import all that tasks of workers need: names, since Spark's room knows none."""


def check_answers(master: str) -> None:
    """Raise CannotCheck if nothing listens where a master or a Connect server should be."""
    places = _addresses(master)
    refused = [f"{host}:{port}: {said}" for host, port in places if (said := _refusal(host, port))]
    if places and len(refused) == len(places):
        raise CannotCheck(
            f"Spark is not reached at {truncate(master)} ({', '.join(refused)}): start it, or "
            "give the address that it tells when it starts"
        )


def check_workers(spark: SparkSession, master: str) -> None:
    """Raise CannotCheck if a master gives no worker; let one import what tasks need.

    What a worker lacks is raised by Spark, and told by `failures`.
    """
    if master.startswith((STANDALONE_SCHEME, LOCAL_CLUSTER)):
        _await_executor(spark, master)
    schema = pa.schema([("name", pa.string())])
    run_tasks(spark, [partial(_imported, NEEDED)], "name string", schema).collect()


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
    running = spark.sparkContext._jsc.sc()  # noqa: SLF001 - Python has no other way to ask
    deadline = time.monotonic() + _WORKERS_SECONDS_MAX
    while running.getExecutorMemoryStatus().size() < 2:  # noqa: PLR2004 - the driver is one
        if time.monotonic() > deadline:
            raise CannotCheck(
                f"{truncate(master)} has given no worker for {_WORKERS_SECONDS_MAX:.0f} s: start "
                "one, or give it the cores and the memory that spark.executor.memory asks for"
            )
        time.sleep(_POLL_SECONDS)
