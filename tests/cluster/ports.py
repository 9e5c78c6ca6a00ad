"""Ports for the nodes of tests' clusters, which nothing else takes meanwhile.

Also not while a node is down: tests run in several processes at once, and their clusters would take
each other's ports. They lie outside the range from which the system hands out ports by itself, so
no outgoing connection has one. Knows nothing of nodes.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TextIO

HOST = "127.0.0.1"
BLOCK = 16
"""Ports that are reserved together: five nodes have three each."""
FIRSTS = range(10_000, 32_000, BLOCK)
LOCKS = Path(tempfile.gettempdir()) / f"holdfast-test-ports-{os.getuid()}"

_held: list[TextIO] = []
"""A lock file for each block that this process has; the system unlocks it when the process ends."""


def reserve() -> int:
    """Reserve a block of ports; return the first.

    Not given back before this process ends: a test may start a stopped cluster again.
    """
    LOCKS.mkdir(exist_ok=True)
    for first in random.sample(FIRSTS, len(FIRSTS)):
        if _lock(first) and all(map(_is_free, range(first, first + BLOCK))):
            return first
    raise AssertionError(f"no {BLOCK} ports in a row are free from {FIRSTS[0]} to {FIRSTS[-1]}")


def _lock(first: int) -> bool:
    lock = (LOCKS / str(first)).open("w")
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _held.append(lock)
        return True
    lock.close()
    return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
