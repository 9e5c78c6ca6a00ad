"""How many files a node may have open: each client's connection is one.

A process may raise its soft limit up to the hard one; shells give a soft limit of 1,024, meant for
programs with `select`. Knows the system's limits, and of connections only their number.
"""

from __future__ import annotations

import contextlib
import resource
from typing import Final

CONNECTIONS_MAX: Final = 1 << 20
"""More connections than one machine can have."""
FILES_KEPT: Final = 128
"""Files kept for the storage, connections to peers and child processes."""
PEERS_LEAST: Final = 128
PEERS_MOST: Final = 1_024
"""Bounds of the connections to the peer port. Strangers may dial it, too: the more connections it
takes, the harder it is to fill; each costs up to 67 KiB."""
PEERS_SHARE: Final = 64
"""The peer port gets one file in this many, between the two bounds."""
EACH_PEER: Final = 4
"""Connections that one peer may need at once: a stream, a call, and those that are closing."""


def raise_limit() -> None:
    """Raise the soft limit on open files of this process and its children to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems refuse their own hard limit; then the soft limit stays as it is.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections_max() -> int:
    """Return how many clients may be connected: the limit on open files less the node's own."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return min(CONNECTIONS_MAX, files - min(FILES_KEPT + _peers(files), files // 2))


def peer_connections_max(nodes: int) -> int:
    """Return how many connections the peer port takes in a cluster of `nodes` nodes.

    They come from the files kept from clients; at least half of those are left to the node itself.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return PEERS_MOST
    return max(min(_peers(files), files // 4), EACH_PEER * nodes)


def _peers(files: int) -> int:
    return min(max(PEERS_LEAST, files // PEERS_SHARE), PEERS_MOST)
