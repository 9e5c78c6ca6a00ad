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
FILES_KEPT: Final = 128
"""What the storage, connections to peers and child processes need."""
PEERS_LEAST: Final = 128
PEERS_MOST: Final = 1_024
"""Connections to the peer port, where strangers may dial too: the more there may be, the harder it
is to fill the port; each costs up to 67 KiB."""
PEERS_SHARE: Final = 64
"""One file in so many, between the two bounds."""
EACH_PEER: Final = 4
"""Connections that one peer may need at once: a stream, a call, and those that are just ending."""


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
    return min(CONNECTIONS_MAX, files - min(FILES_KEPT + _peers(files), files // 2))


def peer_connections_max(nodes: int) -> int:
    """How many connections the peer port of one of so many nodes takes.

    They come from what no client can take; at least half of that is left to the node itself.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return PEERS_MOST
    return max(min(_peers(files), files // 4), EACH_PEER * nodes)


def _peers(files: int) -> int:
    return min(max(PEERS_LEAST, files // PEERS_SHARE), PEERS_MOST)
