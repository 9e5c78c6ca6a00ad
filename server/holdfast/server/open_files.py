"""How many files a node may have open: each client's connection is one.

The limit of a process is soft up to a hard one, and shells give a soft one of 1,024 that was meant
for programs with `select`. Knows the system's limits; nothing of connections but that they count.
"""

from __future__ import annotations

import contextlib
import resource
from typing import Final

CONNECTIONS_MAX: Final = 1 << 20
"""More than one machine can have."""
FILES_KEPT: Final = 256
"""Open files that no client can take: what the storage, the peers and child processes need."""


def raise_limit() -> None:
    """Let this process and its children open what the system would let it have anyway."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems refuse what they have promised; the limit that there is still holds.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections_max() -> int:
    """How many clients may be connected: what the limit on open files leaves beside the node."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return min(CONNECTIONS_MAX, files - min(FILES_KEPT, files // 2))
