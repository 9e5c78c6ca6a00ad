"""Notices two processes that have one node's name and a certificate each, as a copied machine has.

Each newer connection from a peer ends the older one, so two such processes take it from each other
without end. A node alone dials again only when its own connection has ended. Knows no message.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from typing import Final

from holdfast.raft.transport.peer_options import SILENCE_SECONDS
from holdfast.raft.transport.peer_trouble import Trouble

TIMES: Final = 3
"""So many open connections of one peer are displaced within `SILENCE_SECONDS` by rivals alone: a
node gives up an open one only after so long a silence, or when its machine loses power."""


class Rivals:
    """The displaced connections. Engine's thread only."""

    def __init__(self, trouble: Trouble) -> None:
        """`trouble`: takes the warnings."""
        self._trouble = trouble
        self._displaced: dict[str, deque[float]] = {}

    def displaces(self, peer: str, older: socket.socket, newer: socket.socket, now: float) -> None:
        """Note that a peer has dialled again; `older` is not closed yet. `now`: as in `Streams`."""
        if not _is_open(older):
            return
        times = self._displaced.setdefault(peer, deque(maxlen=TIMES))
        times.append(now)
        if len(times) == TIMES and now - times[0] < SILENCE_SECONDS:
            text = _RIVALS.format(peer=peer, one=_address(older), other=_address(newer))
            self._trouble.warn(f"name of {peer}", text, "rivals")


def _is_open(connection: socket.socket) -> bool:
    """Return whether the other side has neither closed a connection nor lost it; reads nothing."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    return not poll.poll(0)


def _address(connection: socket.socket) -> str:
    try:
        host, port = connection.getpeername()[:2]
    except OSError:
        return "an address that is not known any more"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


_RIVALS: Final = (
    "two processes say that they are node {peer!r}, each with a valid certificate: one connects "
    "from {one}, the other from {other}, and each takes the connection from the other. Only one of "
    "them may run, or what one acknowledged is lost with the other. If a machine or a data "
    "directory was copied, stop the copy and do not start it again under this name. If nothing was "
    "copied, somebody has this node's key: give all nodes certificates of a new authority"
)
