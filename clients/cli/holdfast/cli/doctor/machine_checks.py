"""Checks of a node's machine and of its files, from facts; used for a remote node and for a local.

Pure: `asking` and `looking` gather the facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.cli.doctor.findings import ERROR, WARNING, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.cli.doctor.machine_facts import Machine

SYNC_SLOW_MS: Final = 50.0
"""From here on a sync is noticed by callers: each change waits for one on a majority."""
SYNC_BAD_MS: Final = 350.0
"""The shortest election timeout, as it is if nobody changed it."""
OPEN_FILES_LEAST: Final = 4_096
MEMORY_SHARE: Final = 0.8
DISK_SHARE: Final = 0.1
DISK_LEAST: Final = 256 << 20
"""The least reserve, below which changes are refused (S20)."""
EXPIRES_SOON_DAYS: Final = 30
EXPIRES_NOW_DAYS: Final = 7
_DAY_MS: Final = 86_400_000


def memory(node: str, of: Machine) -> Iterator[Finding]:
    """Check how much of its memory the node uses."""
    if of.memory_bytes and of.resident_bytes > MEMORY_SHARE * of.memory_bytes:
        share = of.resident_bytes / of.memory_bytes
        yield Finding(
            *("memory", WARNING, node),
            f"the node uses {share:.0%} of the {_size(of.memory_bytes)} that it may have",
            "The system ends a process that asks for more, and a snapshot needs some beside it",
            "give the machine or the container more memory, or keep fewer groups and offsets",
        )


def disk_space(node: str, of: Machine) -> Iterator[Finding]:
    """Check the free space of the data directory's file system."""
    if not of.disk_total_bytes:
        return
    free = of.disk_free_bytes
    reserve = max(DISK_LEAST, of.disk_total_bytes // 20)
    if free >= max(DISK_SHARE * of.disk_total_bytes, 2 * reserve):
        return
    yield Finding(
        *("disk", ERROR if free < reserve else WARNING, node),
        f"{_size(free)} of {_size(of.disk_total_bytes)} are free",
        f"Below a reserve of {_size(reserve)}, unless node.disk_reserve_bytes says otherwise, "
        "changes are refused, and if the leader lacks it, all of them",
        "make room on that file system, or enlarge it",
    )


def sync_time(node: str, of: Machine) -> Iterator[Finding]:
    """Check how long the disk takes to sync."""
    took = of.sync_p99_ms
    if took is None or took < SYNC_SLOW_MS:
        return
    yield Finding(
        *("fsync", ERROR if took >= SYNC_BAD_MS else WARNING, node),
        f"one sync of the disk in a hundred takes {took:.0f} ms or more",
        "Every change waits for a sync on a majority of the nodes; from an election timeout on "
        "(raft.election_min_ms) leaders are lost by it",
        "use a local SSD with power-loss protection, and no network disk that others share",
    )


def open_files(node: str, of: Machine) -> Iterator[Finding]:
    """Check the limit on open files."""
    if 0 < of.open_files_max < OPEN_FILES_LEAST:
        yield Finding(
            *("settings", WARNING, node),
            f"the process may have only {of.open_files_max} files open",
            "Each client's connection is one, so further clients are turned away",
            "raise the hard limit: LimitNOFILE= in the unit, or `ulimit -Hn`",
        )


def certificate_end(node: str, file: str, expires_ms: int, now_ms: int) -> Iterator[Finding]:
    """Check when a certificate expires. `file`: the key in [tls]."""
    left_ms = expires_ms - now_ms
    if left_ms >= EXPIRES_SOON_DAYS * _DAY_MS:
        return
    days = left_ms // _DAY_MS
    expired = left_ms <= 0
    yield Finding(
        *("certificates", ERROR if days < EXPIRES_NOW_DAYS else WARNING, node),
        f"{file} has expired" if expired else f"{file} expires in {days} days",
        "From then on nobody can connect with it, and connections end at their age",
        "renew it (`holdfast certs renew`); a node that runs takes the new files by itself "
        "(docs/operations/certificates.md)",
    )


def _size(count: int) -> str:
    gib = count / (1 << 30)
    return f"{gib:.1f} GiB" if gib >= 1 else f"{count / (1 << 20):.0f} MiB"
