"""The two kinds of connections with a peer, once both sides have greeted: one to send, one to read.

Their sockets never block. The engine's thread alone uses them, and does a bounded amount at a time.
Knows frames, and not what they mean.
"""

from __future__ import annotations

import socket
import ssl
from collections import deque
from collections.abc import Iterator
from typing import Final

from holdfast.raft.api import BadMessage
from holdfast.raft.transport import peer_options
from holdfast.raft.transport.frames import ALIVE, FrameReader, pack
from holdfast.raft.wire.greeting import OURS

_NOT_NOW: Final = (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError)
_RECORD: Final = 16 * 1024
"""The most that one record of TLS carries, so a read leaves nothing of it inside the library."""


class ConnectionEnded(OSError):
    """The peer closed the connection, or it broke."""


class Incoming:
    """What one peer sends."""

    __slots__ = ("_reader", "connection", "has_more", "heard_at", "peer", "protocol", "since")

    def __init__(
        self, peer: str, connection: socket.socket, now: float, protocol: int = OURS.newest
    ) -> None:
        """`now`: seconds of a monotone clock. `protocol`: what both sides speak."""
        connection.settimeout(0)
        self.protocol = protocol
        self.peer, self.connection, self.heard_at = peer, connection, now
        self.since = now
        self.has_more = True
        """Whether a read may bring something of which the poller does not tell."""
        self._reader = FrameReader()

    def frames(self, now: float) -> Iterator[bytes]:
        """Yield what has arrived, at most a turn's worth; answer the peer's questions.

        A piece that is no full record ends it: the poller knows whether another one has come, and
        asking it about all connections costs a quarter of a read that finds nothing on one. Raises
        BadMessage, and ConnectionEnded, behind the last frame before it.
        """
        size, count, is_short = 0, 0, False
        self.has_more = True
        while size < peer_options.READ_BYTES_A_TURN and count < peer_options.READ_FRAMES_A_TURN:
            frame = self._reader.take()
            if frame is None:
                piece = None if is_short else _read(self.connection)
                if piece is None:
                    self.has_more = False
                    return
                self.heard_at = now
                size += len(piece)
                is_short = len(piece) < _RECORD
                self._reader.feed(piece)
                continue
            count += 1
            if frame:
                yield frame
            else:
                self._answer()

    def _answer(self) -> None:
        """Say that this process lives. Who asks and does not read the answers is not served."""
        try:
            sent = self.connection.send(ALIVE)
        except OSError as error:
            raise ConnectionEnded(f"an answer cannot be sent: {error}") from error
        if sent != len(ALIVE):
            raise ConnectionEnded("the peer does not read the answers to its questions")


class Outgoing:
    """What this node sends to one peer; the peer sends nothing but signs of life."""

    __slots__ = (
        *("_asked_at", "_head", "_queue", "_size"),
        *("connection", "heard_at", "peer", "protocol"),
    )

    def __init__(
        self, peer: str, connection: socket.socket, now: float, protocol: int = OURS.newest
    ) -> None:
        """`now`: seconds of a monotone clock. `protocol`: what both sides speak."""
        connection.settimeout(0)
        self.protocol = protocol
        self.peer, self.connection, self.heard_at = peer, connection, now
        self._asked_at: float | None = None
        """When the peer was asked whether it lives; None after its answer, or after progress."""
        self._queue: deque[bytes] = deque()
        self._head = b""
        """The bytes that are being sent. TLS wants the same ones again after an attempt."""
        self._size = 0
        """The bytes of both."""

    @property
    def size(self) -> int:
        """The bytes that wait until the system takes more."""
        return self._size

    @property
    def is_waiting(self) -> bool:
        """Whether something waits until the system takes more."""
        return self._size > 0

    def send(self, frame: bytes) -> bool:
        """Send a frame, or queue it; False if it has no room. Raises ConnectionEnded."""
        data = pack(frame)
        if self._size + len(data) > peer_options.OUTGOING_BYTES_MAX:
            return False
        waited = self.is_waiting
        self._queue.append(data)
        self._size += len(data)
        if not waited:
            self.flush()
        return True

    def flush(self) -> bool:
        """Send what waits, at most a turn's worth; return whether the system took any of it."""
        before, least = self._size, self._size - peer_options.WRITE_BYTES_A_TURN
        while self._size > max(least, 0):
            data = self._head = self._head or self._joined()
            try:
                sent = self.connection.send(data)
            except _NOT_NOW:
                break
            except OSError as error:
                raise ConnectionEnded(str(error)) from error
            self._head = data[sent:]
            self._size -= sent
        return self._size < before

    def _joined(self) -> bytes:
        """Take frames from the queue, so many that one send is worth while."""
        first = self._queue.popleft()
        if not self._queue:
            return first
        taken, size = [first], len(first)
        while self._queue and size + len(self._queue[0]) <= peer_options.WRITE_BYTES:
            taken.append(self._queue.popleft())
            size += len(taken[-1])
        return b"".join(taken)

    def progressed(self, now: float) -> None:
        """Note that bytes that waited have gone: the peer reads, however slowly.

        A question may wait behind megabytes of them, so it is not counted any more.
        """
        self.heard_at, self._asked_at = now, None

    def hear(self, now: float) -> None:
        """Read the peer's signs of life. Raises ConnectionEnded, BadMessage."""
        for _ in range(2):  # one at a time is under way, and the end may follow it
            piece = _read(self.connection)
            if piece is None:
                return
            if piece.strip(b"\0"):
                raise BadMessage("an acceptor answers questions, and sends nothing else")
            self.heard_at, self._asked_at = now, None

    def ask(self, now: float) -> None:
        """Ask after a silence whether the peer lives. Raises ConnectionEnded if it is dead."""
        if self._asked_at is None:
            if now - self.heard_at >= peer_options.PING_SECONDS:
                self.send(b"")  # if there is no room, the queue has to move within the same time
                self._asked_at = now
        elif now - self._asked_at >= peer_options.PONG_SECONDS:
            raise ConnectionEnded(f"no sign of life for {now - self.heard_at:.1f} s")


def _read(connection: socket.socket) -> bytes | None:
    """Return what has arrived, None if nothing has. Raises ConnectionEnded."""
    try:
        piece = connection.recv(_RECORD)
    except _NOT_NOW:
        return None
    except OSError as error:
        raise ConnectionEnded(str(error)) from error
    if not piece:
        raise ConnectionEnded("the peer closed it")
    return piece
