"""Sockets that helper threads block on: read a frame until a deadline, and end the waits of others.

Knows frames and deadlines, and neither peers nor what is said.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Final

from holdfast.raft.transport.connections import ConnectionEnded
from holdfast.raft.transport.frames import FrameReader

_PIECE: Final = 256 * 1024
_LEAST_SECONDS: Final = 0.001
"""A timeout of 0 would make a socket one that does not block."""


class OpenSockets:
    """Those on which threads of one owner may be waiting. Any thread."""

    def __init__(self) -> None:
        """Begin without any."""
        self._open: dict[socket.socket, tuple[str, ...]] = {}
        """Each with the fingerprints of the certificate that the other side has shown."""
        self._lock = threading.Lock()
        self._is_closed = False
        self._refused: frozenset[str] = frozenset()

    def add(self, connection: socket.socket, shown: tuple[str, ...] = ()) -> None:
        """Keep a socket. Raises OSError, and closes it, if it is not to be used any more.

        `shown`: the fingerprints of the other side's certificate, if they are known already.
        """
        with self._lock:
            if not self._is_closed and self._refused.isdisjoint(shown):
                self._open[connection] = shown
                return
        connection.close()
        why = "this node is being closed" if self._is_closed else "its certificate is revoked"
        raise OSError(why)

    def close(self, connection: socket.socket) -> None:
        """Close a socket, which nobody waits on any more."""
        with self._lock:
            self._open.pop(connection, None)
        connection.close()

    def release(self, connection: socket.socket) -> None:
        """Leave a socket to another owner."""
        with self._lock:
            self._open.pop(connection, None)

    def end_all(self) -> None:
        """End all waits, for good; each thread closes its own socket."""
        with self._lock:
            self._is_closed = True
            for connection in self._open:
                end(connection)

    def end_of(self, certificates: frozenset[str]) -> None:
        """End the waits on sockets whose other sides have shown one of these; keep no such one."""
        with self._lock:
            self._refused = certificates
            for connection, shown in self._open.items():
                if not certificates.isdisjoint(shown):
                    end(connection)


def end(connection: socket.socket) -> None:
    """Have every wait on a socket end, in whichever thread."""
    with suppress(OSError):
        # Of the socket below TLS: its own method would take the session away from the other thread.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def read_frame(connection: socket.socket, reader: FrameReader, deadline: float) -> bytes:
    """Return the next frame; waits until the deadline, a time of the monotone clock.

    Raises BadMessage, and OSError if the connection ends or the time is over.
    """
    while (frame := reader.take()) is None:
        connection.settimeout(max(deadline - time.monotonic(), _LEAST_SECONDS))
        piece = connection.recv(min(reader.wanted, _PIECE))
        if not piece:
            raise ConnectionEnded("the other side closed the connection")
        reader.feed(piece)
    return frame


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of `host:port`; a host of IPv6 stands in brackets."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)
