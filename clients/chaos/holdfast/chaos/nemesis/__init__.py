"""Breaks a cluster: all kinds of faults, and which of them are available here.

Knows the cluster from outside, its links and its clients, and no checker.
"""

from __future__ import annotations

from typing import Final

from holdfast.chaos.nemesis import disks, links, mistakes, processes, tools
from holdfast.chaos.nemesis.fault_context import FaultContext, Kind

KINDS: Final = (
    *processes.KINDS,
    *links.KINDS,
    *disks.KINDS,
    *mistakes.KINDS,
    *processes.CLIENT_KINDS,
    *tools.KINDS,
)
BY_NAME: Final = {kind.name: kind for kind in KINDS}

__all__ = ["BY_NAME", "KINDS", "FaultContext", "Kind", "missing"]


def missing(*, proxies: bool) -> dict[str, str]:
    """Return the needs of faults that are not met here, with a sentence each."""
    lacking: dict[str, str] = {}
    if not proxies:
        lacking[links.PROXY] = "only a cluster that the run starts itself has proxies between nodes"
    if not tools.has_strace():
        lacking[tools.STRACE] = "strace is not installed, or may not trace here"
    if not tools.has_faketime():
        lacking[tools.FAKETIME] = "libfaketime is not installed (also as `pip install libfaketime`)"
    return lacking
