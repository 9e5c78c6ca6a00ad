"""Where Spark runs and with what: what a user may choose, checked before anything starts.

Knows the forms of masters, addresses, memory and settings; starts nothing, asks no network.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.replay.findings import WrongUse

LOCAL: Final = "local[*]"
MEMORY: Final = "1200m"
"""With it the JVM stays below 2 GiB, also where it computes the state of ten million events."""
CONNECT_SCHEME: Final = "sc://"
STANDALONE_SCHEME: Final = "spark://"
LOCAL_CLUSTER: Final = "local-cluster"
_OF_WORKERS: Final = ("spark.executor", "spark.python", "spark.pyspark")
"""Settings that begin so say how workers are to run."""
SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""The variable by which `spark-submit` tells a program of the JVM that it started for it."""

PY_FILES: Final = "spark.submit.pyFiles"
WORKER_PYTHON: Final = "spark.pyspark.python"

_MASTER: Final = re.compile(
    r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[ *\d+ *, *\d+ *, *(?P<mib>\d+) *\]"
    r"|spark://[^/\s]+:\d+(,[^/\s]+:\d+)*|yarn|k8s://\S+"
)
_MEMORY: Final = re.compile(r"(\d{1,9})([mgt])b?", re.IGNORECASE)
_MIB: Final = {"m": 1, "g": 1 << 10, "t": 1 << 20}
_MEMORY_MIB_MIN: Final = 512  # Spark refuses to start with less than 450
_WORKER_MIB_MIN: Final = 450
_ELSEWHERE: Final = {
    "spark.master": "say --master",
    "spark.remote": "say --remote",
    "spark.driver.memory": "say --memory",
    "spark.sql.session.timeZone": "log times are compared in UTC",
    "spark.app.name": "it is how a run of Holdfast's is found",
}
"""Settings that are not free, and why or what to say instead."""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Where Spark runs, and with what. Raises WrongUse for what cannot be meant."""

    master: str = ""
    """A Spark master, or the address of a Spark Connect server; "": here, or as submitted."""
    conf: tuple[tuple[str, str], ...] = ()
    """Settings of Spark's, beside and above those of ours."""
    memory: str = ""
    """Heap of the driver's JVM, as `2g`; "": the default."""

    def __post_init__(self) -> None:
        """Check each by itself, then what excludes what."""
        if self.is_connect:
            _check_address(self.master)
        elif self.master:
            _check_master(self.master)
        for key, _ in self.conf:
            _check_key(key)
        if self.memory:
            _check_memory(self.memory)
        self._check_together()

    @classmethod
    def given(
        cls, master: str | None, remote: str | None, conf: Iterable[str], memory: str | None
    ) -> SparkOptions:
        """Read what was given on a command line; None: nothing was."""
        if master and remote:
            raise WrongUse("--master and --remote both say where Spark runs. Give one of them")
        if remote is not None and not remote.startswith(CONNECT_SCHEME):
            shown = without_secrets(remote)
            raise WrongUse(f"--remote {shown!r} is no address of Spark Connect: sc://HOST:PORT")
        if master is not None and master.startswith(CONNECT_SCHEME):
            shown = without_secrets(master)
            raise WrongUse(f"--master {shown!r} is an address of Spark Connect: say --remote")
        return cls(master or remote or "", tuple(map(_setting, conf)), memory or "")

    @property
    def is_connect(self) -> bool:
        """Whether a Spark Connect server does the work."""
        return self.master.startswith(CONNECT_SCHEME)

    @property
    def is_submitted(self) -> bool:
        """Whether `spark-submit` started this program, and has chosen a master."""
        return not self.is_connect and SUBMITTED in os.environ

    @property
    def is_here(self) -> bool:
        """Whether all workers are processes of this machine that this program starts."""
        return not self.is_submitted and (self.master or LOCAL).startswith("local")

    @property
    def is_one_jvm(self) -> bool:
        """Whether the driver's JVM runs all tasks, in workers of which nobody has said anything."""
        of_workers = any(key.startswith(_OF_WORKERS) for key in self.settings)
        return self.is_here and not self.master.startswith(LOCAL_CLUSTER) and not of_workers

    @property
    def worker_mib(self) -> int | None:
        """Memory of each worker of a local cluster, in MiB; None: it is no local cluster."""
        found = _MASTER.fullmatch(self.master)
        return int(found["mib"]) if found and found["mib"] else None

    @property
    def py_files(self) -> list[str]:
        """Packages that workers are given, as they were named."""
        return [path for path in self.settings.get(PY_FILES, "").split(",") if path]

    @property
    def py_paths(self) -> list[str]:
        """Those of them that are on this machine, as whole paths."""
        return [str(Path(path).absolute()) for path in self.py_files if "://" not in path]

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings that were given; of a key that was given twice, the last."""
        return dict(self.conf)

    def _check_together(self) -> None:
        if self.memory and self.is_connect:
            raise WrongUse("--memory is of a JVM that is started here; a server has its own")
        if self.is_submitted and self.master:
            raise WrongUse("spark-submit has chosen the master already: give --master to it alone")
        if self.is_submitted and self.memory:
            raise WrongUse("spark-submit has started the JVM: give it --driver-memory instead")


def without_secrets(address: str) -> str:
    """Return a master or address for people: Spark Connect's carries a token behind the place."""
    return re.split("/?;", address, maxsplit=1)[0]


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise WrongUse(f"--conf {text!r} is no setting: write KEY=VALUE")
    return key.strip(), value


def _check_key(key: str) -> None:
    if key in _ELSEWHERE:
        raise WrongUse(f"--conf {key} cannot be given: {_ELSEWHERE[key]}")
    if not re.fullmatch(r"spark\.[\w.-]+", key):
        raise WrongUse(f"--conf {key!r} is no setting of Spark's: their names begin with spark.")


def _check_master(master: str) -> None:
    found = _MASTER.fullmatch(master)
    if found is None:
        raise WrongUse(
            f"--master {without_secrets(master)!r} is no Spark master: write local[N], "
            "local-cluster[N,CORES,MIB], spark://HOST:PORT, yarn or k8s://ADDRESS"
        )
    if found["mib"] and int(found["mib"]) < _WORKER_MIB_MIN:
        raise WrongUse(f"--master {master}: Spark's workers need {_WORKER_MIB_MIN} MiB or more")


def _check_address(address: str) -> None:
    if not re.fullmatch(r"sc://[^/:;\s]+(:\d{1,5})?(/(;\S*)?)?", address):
        shown = without_secrets(address)
        raise WrongUse(f"--remote {shown!r} is no address of Spark Connect: write sc://HOST:PORT")


def _check_memory(memory: str) -> None:
    found = _MEMORY.fullmatch(memory)
    if found is None:
        raise WrongUse(f"--memory {memory!r} is no amount: write 512m, 2g or 1t")
    mib = int(found[1]) * _MIB[found[2].lower()]
    if mib < _MEMORY_MIB_MIN:
        raise WrongUse(f"--memory {memory} is too little for Spark: give it 512m or more")
    here = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    if mib > here:
        raise WrongUse(f"--memory {memory} is more than this machine has, which is {here}m")
