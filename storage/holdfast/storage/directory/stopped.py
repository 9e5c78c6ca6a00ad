"""Hold the data directory of a stopped node, to read it: no node runs on it, and none starts.

An environment of LMDB that is opened without LMDB's own lock is safe to read only so. Knows the
lock file of `DataDirectory`, and nothing of what is in the directory.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.storage.directory.data_directory import LOCK_NAME
from holdfast.storage.errors import DirectoryRefused, Refusal


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Lock the directory, so that no node starts on it meanwhile; several may read it so.

    Raises DirectoryRefused if it is no data directory, or if a node runs on it.
    """
    try:
        lock = os.open(directory / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        detail = "it is not the data directory of a node (node.data_dir); name one"
        raise DirectoryRefused(directory, Refusal.NOT_OURS, detail) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        detail = "a node runs on it. Stop the node first, or read its log with `holdfast log tail`"
        raise DirectoryRefused(directory, Refusal.IN_USE, detail) from error
    try:
        yield
    finally:
        os.close(lock)
