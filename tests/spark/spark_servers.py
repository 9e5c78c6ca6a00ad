"""Spark's own servers on 127.0.0.1, as a cluster has them; they end with the test's process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

from harness.poll import until
from holdfast.replay.spark.java import find_java, make_home

HOME: Final = Path(pyspark.__file__).parent
QUICK: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SECONDS_MAX: Final = 300
"""A JVM starts in a few seconds; other work may keep the machine."""

LEASH: Final = 'exec 3<&0; "$@" </dev/null & read -r _ <&3; kill $!; wait $!'
"""Runs a program until nobody holds the other end of standard input any more."""

MASTER: Final = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0")
WORKER: Final = ("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "2")
CONNECT: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.ui.enabled": "false",
}


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """Start a master and a worker; give the master's address."""
    work = ("--work-dir", str(folder / "work"))
    quiet = ("--webui-port", "0")
    with (
        started((*MASTER, *quiet), folder, r"Starting Spark master at (spark://\S+)") as master,
        started((*WORKER, *quiet, *work, master), folder, "(registered) with master"),
    ):
        yield master


@contextmanager
def connect(folder: Path) -> Iterator[str]:
    """Start a Spark Connect server whose workers are this Python; give its address."""
    settings = [word for key, value in CONNECT.items() for word in ("--conf", f"{key}={value}")]
    server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer")
    words = ("org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", *settings, *server)
    python = {"PYSPARK_PYTHON": sys.executable, "PYTHONSAFEPATH": "1"}
    told = r"Connect server started at: (\S+:\d+)"
    with started((*words, "spark-internal"), folder, told, python) as address:
        yield f"sc://{address}"


@contextmanager
def started(
    words: tuple[str, ...], folder: Path, told: str, more: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Start a program of Spark's, and give what it tells once it is ready."""
    log = folder / f"{words[0].rpartition('.')[2]}.log"
    home = make_home(find_java(), folder / "java")
    variables = {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_HOME": str(home)}
    variables |= {"SPARK_DAEMON_JAVA_OPTS": QUICK, **(more or {})}
    command = ["sh", "-c", LEASH, "sh", str(HOME / "bin" / "spark-class"), *words]
    with (
        log.open("wb") as out,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # which closes as it ends, however this process does
            stdout=out,
            stderr=out,
            env={**os.environ, **variables},
        ),
    ):
        yield _told(log, told)


def _told(log: Path, pattern: str) -> str:
    """Wait until a server has said that it is ready, and return what the pattern holds of it."""
    until(lambda: re.search(pattern, log.read_text()), f"{log}: {pattern}", within_s=SECONDS_MAX)
    return str(re.findall(pattern, log.read_text())[0])
