"""Durable operations on files and directories, and the free space of a file system (S20).

Knows the file system only.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

RESERVE_BYTES_MIN = 256 * 1024 * 1024
RESERVE_DIVISOR = 20  # 5 %


def sync_path(path: Path) -> None:
    """Sync a file or a directory; a directory's fsync makes a rename in it durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Make a directory and its parents, each durable in its own parent."""
    if path.is_dir():
        return
    make_directory(path.parent)
    path.mkdir(mode=0o750)
    sync_path(path.parent)


def rename_durably(source: Path, target: Path) -> None:
    """Rename, replacing a file `target`; after a power cut it is done completely or not at all."""
    source.replace(target)
    sync_path(target.parent)
    if source.parent != target.parent:
        sync_path(source.parent)


def remove_tree(path: Path) -> None:
    """Remove a directory durably, if it exists."""
    if path.exists():
        shutil.rmtree(path)
        sync_path(path.parent)


def free_bytes(path: Path) -> int:
    """Return the bytes that this process may still write on the file system of `path`."""
    usage = os.statvfs(path)
    return usage.f_bavail * usage.f_frsize


def reserve_bytes(path: Path) -> int:
    """Return the `disk_reserve` of S20 in bytes: the larger of 256 MiB and 5 % of the disk."""
    usage = os.statvfs(path)
    return max(RESERVE_BYTES_MIN, usage.f_blocks * usage.f_frsize // RESERVE_DIVISOR)


def below_reserve(path: Path, reserve: int | None = None) -> bool:
    """Return whether proposals must be refused (S20), while snapshots and journal cuts go on.

    `reserve` (bytes) replaces the default reserve.
    """
    return free_bytes(path) < _least(path, reserve)


def room_left(path: Path, reserve: int | None = None) -> int:
    """Return the bytes that are free above the reserve; negative below it. Raises OSError.

    `reserve` (bytes) replaces the default reserve.
    """
    return free_bytes(path) - _least(path, reserve)


def shortage(
    path: Path,
    reserve: int | None = None,
    soon: int = 0,
    taker: str = "files of the journal take at once",
) -> str:
    """Describe a file system that is, or soon will be, `below_reserve`; else return "".

    It names the setting that decides. `soon`: bytes that are about to be taken for good, and by
    what.
    """
    free, least = free_bytes(path), _least(path, reserve)
    if free >= least + soon:
        return ""
    by_rule = " is unset, so it is the larger of 256 MiB and 5 %" if reserve is None else ""
    return (
        f"its file system has {free} bytes left, less than the reserve of {least} bytes "
        f"(node.disk_reserve_bytes{by_rule}){_to_be_taken(soon, taker)}"
    )


def _to_be_taken(soon: int, taker: str) -> str:
    return f" and the {soon} bytes that {taker}" if soon else ""


def _least(path: Path, reserve: int | None) -> int:
    return reserve_bytes(path) if reserve is None else reserve
