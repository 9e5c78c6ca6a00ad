"""One connection at the peer port before it is accepted, or while it is told why it is not.

It does what can be done without waiting. Knows neither who may come in nor what is said.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from holdfast.raft.transport import peer_options
from holdfast.raft.transport.connections import ConnectionEnded
from holdfast.raft.transport.frames import FrameReader
from holdfast.raft.wire.greeting import BYTES_MAX

_IGNORED: Final = 16 * 1024


class Guest:
    """The connection, what is to be done next, and until when. The port's thread only."""

    __slots__ = ("connection", "events", "goodbye", "host", "next", "reader", "since", "until")

    def __init__(self, connection: socket.socket, step: Callable[[Guest], bool], host: str) -> None:
        """`step`: what is done first. `host`: the address that it came from, without the port."""
        self.host, self.connection, self.next = host, connection, step
        """What is done when there is something to read; True if more can be done at once."""
        self.events = 0
        """What the poller watches for; 0: not this connection."""
        self.since = time.monotonic()
        self.until = self.since + peer_options.HANDSHAKE_SECONDS
        self.goodbye: Callable[[], bytes] | None = None
        """What is said when the time is over, if anything."""
        self.reader = FrameReader(BYTES_MAX)

    def received(self, most: int) -> bytes:
        """Return what has arrived. Raises ConnectionEnded, and BlockingIOError for nothing."""
        piece = self.connection.recv(most)
        if not piece:
            raise ConnectionEnded("the other side closed it")
        return piece

    def say(self, data: bytes) -> bool:
        """Send a few bytes; False if there is no room for them, as for who reads nothing."""
        try:
            return self.connection.send(data) == len(data)
        except OSError:
            return False

    def leave(self) -> None:
        """Write no more, and wait for a moment until the other side has read and closes."""
        with suppress(OSError):
            socket.socket.shutdown(self.connection, socket.SHUT_WR)
        self.until = time.monotonic() + peer_options.LEAVING_SECONDS
        self.goodbye, self.next = None, Guest._ignore

    def _ignore(self) -> bool:
        """Take what still comes from the system: left there, it would turn the end into a reset."""
        if not socket.socket.recv(self.connection, _IGNORED):
            raise ConnectionEnded("it has left")
        return False
