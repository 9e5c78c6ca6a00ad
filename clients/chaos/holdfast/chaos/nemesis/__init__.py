"""Every kind of fault there is, and which of them can be had here."""

from __future__ import annotations

from typing import Final

from holdfast.chaos.nemesis import clients, disks, links, mistakes, processes, tools
from holdfast.chaos.nemesis.battle import Battle, Kind

KINDS: Final = (
    *processes.KINDS,
    *links.KINDS,
    *disks.KINDS,
    *mistakes.KINDS,
    *clients.KINDS,
    *tools.KINDS,
)
BY_NAME: Final = {kind.name: kind for kind in KINDS}

__all__ = ["BY_NAME", "KINDS", "Battle", "Kind", "missing"]


def missing(*, proxies: bool) -> dict[str, str]:
    """What kinds of faults need and is not here, with a sentence each."""
    lacking: dict[str, str] = {}
    if not proxies:
        lacking[links.PROXY] = "only a cluster that the run starts itself has proxies between nodes"
    if not tools.has_strace():
        lacking[tools.STRACE] = "strace is not installed, or may not trace here"
    if not tools.has_faketime():
        lacking[tools.FAKETIME] = "libfaketime is not installed (also as `pip install libfaketime`)"
    return lacking
