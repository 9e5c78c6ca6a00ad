"""Start a Spark session that is quiet, local by default, and gives the same results everywhere.

docs/replay.md tells why each setting below is needed. Knows Spark and Java, not the log.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.sql import SparkSession

from holdfast.replay.spark.java import find_java, make_home

LOCAL: Final = "local[*]"
CONNECT_SCHEME: Final = "sc://"
_LOG4J: Final = Path(__file__).with_name("log4j2.properties")
_CHATTY_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j")
_LOCAL_PARTITIONS: Final = 4
_SAFE: Final = "PYTHONSAFEPATH"
"""The variable for Python's `-P`: Spark makes the commands of its workers itself."""

_COMMON: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
}
_LOCAL: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(_LOCAL_PARTITIONS),
    "spark.default.parallelism": str(_LOCAL_PARTITIONS),
    "spark.sql.adaptive.enabled": "true",
}
_QUICK_JVM: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_QUICK: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For logs of up to about a million events: there, code generation costs more than it saves, and so
does adaptive planning."""


@contextmanager
def session(
    master: str = LOCAL, *, quick: bool = False, memory: str = "2g"
) -> Iterator[SparkSession]:
    """Start a session for the body, and stop it afterwards.

    `master`: a Spark master (`local[*]`, `spark://…`, `yarn`) or a Spark Connect address
    (`sc://…`). `quick`: a local JVM that starts sooner and computes more slowly. `memory`: of the
    local JVM. Raises `NoJava`.
    """
    _quiet_python_loggers()
    with tempfile.TemporaryDirectory(prefix="holdfast-replay-") as scratch:
        spark = _start(master, Path(scratch), quick=quick, memory=memory)
        try:
            yield spark
        finally:
            with suppress(Py4JError, OSError):  # a JVM that is gone cannot be stopped
                spark.stop()


def is_local(master: str) -> bool:
    """Return whether everything runs in one JVM on this machine."""
    return master.startswith("local")


def _start(master: str, scratch: Path, *, quick: bool, memory: str) -> SparkSession:
    builder = SparkSession.builder.appName("holdfast replay")
    settings = dict(_COMMON)
    if master.startswith(CONNECT_SCHEME):
        builder = builder.remote(master)
    else:
        builder = builder.master(master)
        if is_local(master):
            settings |= _local_settings(scratch, quick=quick, memory=memory)
    for key, value in settings.items():
        builder = builder.config(key, value)
    if master.startswith(CONNECT_SCHEME):
        return builder.getOrCreate()
    java_home = str(make_home(find_java(), scratch / "java"))
    with _environment({"JAVA_HOME": java_home, _SAFE: "1"}):
        return builder.getOrCreate()


def _local_settings(scratch: Path, *, quick: bool, memory: str) -> dict[str, str]:
    """Return the settings for a driver, executor and workers on this machine."""
    java_options = f'-Dlog4j2.configurationFile="{_LOG4J.as_uri()}"'
    if quick:
        java_options = f"{java_options} {_QUICK_JVM}"
    return {
        **_LOCAL,
        "spark.driver.memory": memory,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": java_options,
        # Workers must be this Python with these modules, not whatever `python3` is on PATH.
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        # They must import nothing from the directory in which the replay was started.
        f"spark.executorEnv.{_SAFE}": "1",
        **(_QUICK if quick else {}),
    }


def _quiet_python_loggers() -> None:
    """Silence loggers that print errors of queries as long JSON: they are raised anyway."""
    for name in _CHATTY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables for the launcher of the JVM, and put back what was there before."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
