"""What the machine gives this process: memory, disk, open files. Linux; 0 is unknown."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.storage.durations import BOUNDS_S

if TYPE_CHECKING:
    from holdfast.storage.durations import Durations

_PAGE: Final = resource.getpagesize()
_CONTROL_GROUP: Final = Path("/sys/fs/cgroup/memory.max")


class Disk(NamedTuple):
    """A file system, in bytes."""

    free: int = 0
    total: int = 0


def disk_of(directory: Path) -> Disk:
    """Return the size of a directory's file system; zeros if there is no such directory."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return Disk()
    return Disk(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


def resident_bytes() -> int:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def memory_bytes(control_group: Path = _CONTROL_GROUP) -> int:
    """Return the memory that this process may use: of the machine, or of its control group."""
    whole = os.sysconf("SC_PHYS_PAGES") * _PAGE
    with contextlib.suppress(OSError, ValueError):  # not there, or `max`
        return min(whole, int(control_group.read_text()))
    return whole


def open_files_max() -> int:
    """Return how many files this process may have open; 0 if there is no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 0 if soft == resource.RLIM_INFINITY else soft


def slowest_ms(durations: Durations) -> float:
    """Return what one duration in a hundred reached or exceeded: the bound below its class."""
    left = sum(durations.counts) // 100
    for number in range(len(BOUNDS_S), 0, -1):
        left -= durations.counts[number]
        if left < 0:
            return BOUNDS_S[number - 1] * 1000
    return 0.0


def open_files_most() -> int:
    """Return how many files a node that is started like this process could open; 0: no limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 0 if hard == resource.RLIM_INFINITY else hard
