"""The machine under the figures: processor time, memory and load from /proc, syncs, versions.

Knows nothing of what is measured.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_CPUCLOCK_SCHED: Final = 2
"""Linux makes the number of a process's clock of its id and this (clock_getcpuclockid(3))."""
_PACKAGES: Final = ("holdfast", "grpcio", "protobuf", "uvloop", "lmdb", "pysyncobj")
_SYNCS: Final = 300
_SYNC_BYTES: Final = 256


def cpu_seconds(pid: int) -> float:
    """Processor time (user and system) of a process so far, all its threads, ended ones too.

    From the process's own clock, which counts nanoseconds: `/proc/<pid>/stat` has ticks of 10 ms,
    and `/proc/<pid>/schedstat` only the first thread. Raises OSError if there is no such process.
    """
    return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)


def cpu_seconds_with_children(pid: int) -> float:
    """The same in ticks of 10 ms, with the children that the process has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / _TICKS


def switches(pid: int) -> dict[int, int]:
    """Context switches so far, voluntary and not, by id of each living thread of a process."""
    found = {}
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        with contextlib.suppress(OSError):  # a thread that ended meanwhile
            found[int(status.parent.name)] = _switches(status.read_text())
    return found


def _switches(status: str) -> int:
    """What a thread's /proc/<pid>/task/<tid>/status tells."""
    return sum(
        int(line.rpartition(":")[2]) for line in status.splitlines() if "_ctxt_switches:" in line
    )


def busy_seconds() -> float:
    """Processor time that everything on this machine has used so far, over all cores."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle, waiting = fields[3], fields[4]
    return (sum(fields) - idle - waiting) / _TICKS


def memory_bytes(pid: int) -> int:
    """`RssAnon` of a process: what it holds in memory that no file backs (LMDB's map is a file)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/{pid}/status has no RssAnon: this kernel does not report it")


def disk_bytes(folder: Path) -> int:
    """What the files under a folder take on the disk: their blocks, not their length."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # a file that was renamed or removed meanwhile
            total += path.lstat().st_blocks * 512
    return total


def load() -> float:
    """Load average of the last minute."""
    return os.getloadavg()[0]


def sync_times(folder: Path) -> list[float]:
    """Milliseconds that single fdatasyncs of 256 bytes took on the disk under `folder`."""
    times = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(_SYNCS):
            file.write(b"x" * _SYNC_BYTES)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - began) * 1000)
    return times


def conditions(folder: Path) -> dict[str, object]:
    """What a reader needs in order to compare: machine, disk, versions."""
    return {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "file_system": _file_system(folder),
        "load_at_start": load(),
        "commit": _commit(),
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _file_system(folder: Path) -> str:
    asked = subprocess.run(
        ["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or "unknown"


def _commit() -> str:
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
