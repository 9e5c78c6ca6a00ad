"""Start a Spark session that is quiet, local by default, and gives the same results everywhere.

docs/replay.md tells why each setting below is needed. Knows Spark and Java, not the log.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from holdfast.replay.findings import CannotCheck, WrongUse
from holdfast.replay.spark.begun_jvm import begun_jvm
from holdfast.replay.spark.class_archive import java_options as class_archive
from holdfast.replay.spark.failures import not_started, refused_setting
from holdfast.replay.spark.java import find_java, make_home
from holdfast.replay.spark.options import (
    LOCAL,
    MEMORY,
    PY_FILES,
    WORKER_PYTHON,
    SparkOptions,
)
from holdfast.replay.spark.reach import check_answers, check_workers, workers_watched

_LOG4J: Final = Path(__file__).with_name("log4j2.properties")
_CHATTY_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j")
_LOCAL_PARTITIONS: Final = 4
_SAFE: Final = "PYTHONSAFEPATH"
"""The variable for Python's `-P`: Spark makes the commands of its workers itself."""

_SAID: Final = "java.txt"
"""A file for what Java writes as it starts: a stack where it cannot, and warnings."""
_PYTHON: Final = "PYSPARK_PYTHON"
"""The variable for the program that workers run; it is read as a session starts."""

_PYTHON_PATH: Final = "PYTHONPATH"

_COMMON: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    # Rows that are together by group are together by group and member, too.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}
_STARTED: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "true",
}
"""For every JVM that is started here, wherever its workers are."""
_LOOPBACK: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_HERE: Final = {
    "spark.sql.shuffle.partitions": str(_LOCAL_PARTITIONS),
    "spark.default.parallelism": str(_LOCAL_PARTITIONS),
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}
_ON_LOOPBACK: Final = re.compile(r"spark://(127\.\d+\.\d+\.\d+|localhost):\d+")
_QUICK_JVM: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LONG_JVM: Final = (
    *("-XX:+UseParallelGC", "-XX:-UseGCOverheadLimit", "-XX:+IgnoreUnrecognizedVMOptions"),
    *("-XX:Tier4InvocationThreshold=50000", "-XX:Tier4MinInvocationThreshold=6000"),
    *("-XX:Tier4CompileThreshold=150000", "-XX:Tier4BackEdgeThreshold=400000"),
)
"""Java marks a heap that is nearly full beside the work, and compiles the classes that Spark makes
of each query as far as it can: that took half of the CPU that SQL took (docs/performance.md). So
garbage is collected in pauses, and the last, dear stage of compilation begins at ten times the
usual counts."""
_COLLECTOR: Final = re.compile(r"-XX:\+Use\w+GC\b")
_JAVA_VARIABLES: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_DEFAULT_JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"
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
    master: str = "",
    *,
    quick: bool = False,
    memory: str = "",
    conf: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Start a session for the body, and stop it afterwards.

    `master`: a Spark master (`local[*]`, `spark://…`, `yarn`) or a Spark Connect address
    (`sc://…`); "": this machine, or what `spark-submit` has chosen. `quick`: a local JVM that
    starts sooner and computes more slowly. `memory`: of the JVM that is started here. `conf`:
    settings of Spark's. Raises `NoJava`, WrongUse for what cannot be meant or Spark refuses, and
    CannotCheck for a cluster that does not answer or has no worker.
    """
    options = SparkOptions(master, tuple((conf or {}).items()), memory)
    with opened(options, quick=quick) as spark:
        yield spark


@contextmanager
def opened(options: SparkOptions, *, quick: bool = False) -> Iterator[SparkSession]:
    """Start a session as `session` does, with options that are checked already."""
    _quiet_python_loggers()
    check_answers(options.master)
    with tempfile.TemporaryDirectory(prefix="holdfast-replay-") as scratch:
        spark = _started(options, Path(scratch), quick=quick)
        try:
            master = options.master or spark.sparkContext.master or ""  # as spark-submit chose it
            if not options.is_one_jvm:
                check_workers(spark, master)
            with workers_watched(spark, master):
                yield spark
        finally:
            with suppress(Py4JError, PySparkException, OSError):  # what is gone cannot be stopped
                spark.stop()


def _started(options: SparkOptions, scratch: Path, *, quick: bool) -> SparkSession:
    """Start a session, or tell which setting Spark refuses."""
    said = scratch / _SAID
    try:
        spark = _start(options, scratch, quick=quick)
        spark.conf.get("spark.sql.session.timeZone")  # settings are read when they are first used
        _add_py_files(spark, options)
    except ImportError as error:  # pyspark asks for what Spark Connect needs only when it is used
        raise WrongUse(
            "--remote needs packages of the extra [spark]: pip install 'holdfast[spark]'"
        ) from error
    except (PySparkException, Py4JError) as error:
        by_java = said.read_text(errors="replace") if said.exists() else ""
        _stop_what_began()
        refused = refused_setting(error, options.settings, by_java)
        if refused:
            raise WrongUse(refused) from error
        if by_java and "JAVA_GATEWAY" in str(error):
            raise CannotCheck(not_started(by_java)) from error
        raise
    return spark


def _stop_what_began() -> None:
    """Stop a context that has no session, so that the next attempt does not get it."""
    running = SparkContext._active_spark_context  # noqa: SLF001 - it has no public name
    if running is not None:
        with suppress(Py4JError, PySparkException, OSError):
            running.stop()


def _start(options: SparkOptions, scratch: Path, *, quick: bool) -> SparkSession:
    builder = SparkSession.builder.appName("holdfast replay")
    given = options.settings
    given.pop(PY_FILES, None)  # they are added once it runs, in one way for all
    if options.is_connect:
        return _connected(builder, options.master, {**(_QUICK if quick else {}), **given})
    if options.is_submitted:
        return _configured(builder, {**_COMMON, **given}).getOrCreate()
    java = find_java()
    settings = {**_COMMON, **_jvm_settings(options, scratch, java, quick=quick), **given}
    builder = _configured(builder.master(options.master or LOCAL), settings)
    variables = {**_variables(settings, java, scratch), **_python_path(options)}
    with _environment(variables), begun_jvm():
        return builder.getOrCreate()


def _configured(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


def _variables(settings: Mapping[str, str], java: Path, scratch: Path) -> dict[str, str]:
    """Return the variables that the launcher of the JVM needs."""
    home = make_home(java, scratch / "java", scratch / _SAID)
    variables = {"JAVA_HOME": str(home), _SAFE: "1"}
    if "spark.driver.host" in settings:
        variables["SPARK_LOCAL_IP"] = settings["spark.driver.host"]
    if WORKER_PYTHON in settings:
        variables[_PYTHON] = settings[WORKER_PYTHON]  # the setting alone is heard by spark-submit
    return variables


def _python_path(options: SparkOptions) -> dict[str, str]:
    """Return the variable by which the process that plans a stream finds the packages of workers.

    It runs beside the driver, with the Python of the workers, and Spark gives it none of them.
    """
    paths = options.py_paths
    known = os.environ.get(_PYTHON_PATH)
    return {_PYTHON_PATH: os.pathsep.join([*paths, *filter(None, [known])])} if paths else {}


def _connected(
    builder: SparkSession.Builder, address: str, given: Mapping[str, str]
) -> SparkSession:
    """Connect to a server; set each setting by itself, since a builder only warns of a bad one."""
    from holdfast.replay.spark import connect  # noqa: PLC0415 - needs what Spark Connect needs

    connect.check_server(address)
    spark = _configured(builder.remote(address), _COMMON).getOrCreate()
    connect.wait_once(spark)
    try:
        for key, value in given.items():
            spark.conf.set(key, value)
    except PySparkException:
        spark.stop()
        raise
    return spark


def _add_py_files(spark: SparkSession, options: SparkOptions) -> None:
    """Give the workers the packages that `spark.submit.pyFiles` names."""
    if options.is_submitted:
        return
    for path in options.py_files:
        if options.is_connect:
            spark.addArtifacts(path, pyfile=True)
        else:
            spark.sparkContext.addPyFile(path)


def _jvm_settings(
    options: SparkOptions, scratch: Path, java: Path, *, quick: bool
) -> dict[str, str]:
    """Return the settings for a JVM that is started here."""
    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent, "jars")
    java_options = f'-Dlog4j2.configurationFile="{_LOG4J.as_uri()}" {class_archive(java, jars)}'
    java_options = " ".join([java_options, *_tuning(options, quick=quick)])
    loopback = options.is_here or _ON_LOOPBACK.fullmatch(options.master)
    return {
        **_STARTED,
        "spark.driver.memory": options.memory or MEMORY,
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": java_options,
        # Workers must import nothing from the directory in which they are started.
        f"spark.executorEnv.{_SAFE}": "1",
        **(_LOOPBACK if loopback else {}),
        **(_here_settings(scratch) if options.is_here else {}),
        # An executor is given a GiB otherwise, and a worker that has less of it starts none.
        **({"spark.executor.memory": f"{options.worker_mib}m"} if options.worker_mib else {}),
        **(_QUICK if quick else {}),
    }


def _tuning(options: SparkOptions, *, quick: bool) -> list[str]:
    """Return options for the JVM; without a garbage collector if somebody has chosen one for it.

    A JVM that is told of two does not start.
    """
    chosen = [os.environ.get(name, "") for name in _JAVA_VARIABLES]
    chosen.append(options.settings.get(_DEFAULT_JAVA_OPTIONS, ""))
    ours = _QUICK_JVM if quick else _LONG_JVM
    if not any(map(_COLLECTOR.search, chosen)):
        return list(ours)
    return [each for each in ours if not _COLLECTOR.fullmatch(each)]


def _here_settings(scratch: Path) -> dict[str, str]:
    """Return the settings for workers on this machine, which share its files."""
    return {
        **_HERE,
        "spark.local.dir": str(scratch),
        # Workers must be this Python with these modules, not whatever `python3` is on PATH.
        WORKER_PYTHON: sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }


def _quiet_python_loggers() -> None:
    """Silence loggers that print errors of queries as long JSON: they are raised anyway.

    py4j has no logger of its own for that it was interrupted, or lost its JVM, with a stack.
    """
    for name in _CHATTY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


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
