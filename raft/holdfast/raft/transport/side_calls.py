"""Calls between nodes beside the log: a request, and an answer in chunks, on an own connection.

So their bytes never delay a heartbeat (S7, S18). Both sides block in helper threads of their own;
a peer has one answer of a kind at a time, so those are few. What an answer reads from the disk
waits for all others' requests there. After the greetings the caller sends the request as one frame;
each frame of the answer begins with a byte that says what it is.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from holdfast.raft.api import BadMessage
from holdfast.raft.transport import peer_options
from holdfast.raft.transport.blocking import OpenSockets, end, read_frame
from holdfast.raft.transport.connections import ConnectionEnded
from holdfast.raft.transport.dialling import Dialler
from holdfast.raft.transport.frames import FRAME_BYTES_MAX, FrameReader, pack
from holdfast.raft.transport.identity import shown
from holdfast.raft.transport.tls import shown_fingerprints
from holdfast.raft.wire.greeting import REFUSAL_CHARACTERS
from holdfast.storage.disk.priority import idle_disk_for_good

logger = logging.getLogger(__name__)

_CHUNK, _END, _FAILURE = b"\x00", b"\x01", b"\x02"
_FRAME_MAX: Final = FRAME_BYTES_MAX + 1

Answer = Callable[[bytes], Iterator[bytes]]
"""Turns a request into chunks. Raises BadMessage for no request, OSError if nothing is there."""


class SideCalls:
    """The calls that this node makes, and those that it serves. Any thread."""

    def __init__(self, dialler: Dialler) -> None:
        """`dialler`: makes the connections of calls."""
        self._dialler = dialler
        self._offers: dict[str, Answer] = {}
        self._answering: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._asked: dict[socket.socket, str] = {}
        """The connections of this node's calls, with the peer that is asked."""
        self._sockets = OpenSockets()

    def close(self) -> None:
        """End all calls, for good."""
        self._sockets.end_all()

    # --- asking ---

    def call(self, peer: str, method: str, request: bytes) -> Iterator[bytes]:
        """Return a peer's answer in chunks; blocks.

        Raises OSError if it breaks off or is refused.
        """
        try:
            connection = self._dialler.dial(peer, method).connection
            self._sockets.add(connection, shown_fingerprints(connection))
        except OSError as error:
            raise OSError(f"{peer} does not answer {method}: {error}") from error
        with self._lock:
            self._asked[connection] = peer
        try:
            yield from self._chunks(connection, request)
        except (OSError, BadMessage) as error:
            raise OSError(f"{peer} does not answer {method}: {error}") from error
        finally:
            with self._lock:
                del self._asked[connection]
            self._sockets.close(connection)

    def _chunks(self, connection: socket.socket, request: bytes) -> Iterator[bytes]:
        last = time.monotonic() + peer_options.CALL_SECONDS_MAX
        connection.settimeout(peer_options.CALL_SILENCE_SECONDS)
        connection.sendall(pack(request))
        reader = FrameReader(_FRAME_MAX)
        while True:
            silence = time.monotonic() + peer_options.CALL_SILENCE_SECONDS
            frame = read_frame(connection, reader, min(last, silence))
            kind, body = frame[:1], frame[1:]
            if kind == _END:
                return
            if kind == _FAILURE:
                raise OSError(shown(body.decode(errors="replace"), REFUSAL_CHARACTERS))
            if kind != _CHUNK:
                raise BadMessage("no node sends this: an answer that is neither chunk nor end")
            yield body

    def peer_is_gone(self, peer: str) -> None:
        """End this node's calls to a peer that gives no sign of life elsewhere."""
        with self._lock:
            for connection in (c for c, asked in self._asked.items() if asked == peer):
                end(connection)

    def end_of(self, certificates: frozenset[str]) -> None:
        """End all calls, made or served, whose other side has shown one of these certificates."""
        self._sockets.end_of(certificates)

    # --- answering ---

    def offer(self, method: str, answer: Answer) -> None:
        """Have `answer` serve calls of `method`, one at a time for each peer."""
        self._offers[method] = answer

    def reserve(self, peer: str, method: str) -> str:
        """Keep a place for a call, until it is served; say why there is none, or nothing."""
        if method not in self._offers:
            return f"this node answers no calls of {shown(method)}"
        with self._lock:
            if (peer, method) in self._answering:
                return f"{peer} is being answered"
            self._answering.add((peer, method))
        return ""

    def serve(self, peer: str, method: str, connection: socket.socket) -> None:
        """Serve a call for which a place is kept, in a thread of its own."""
        arguments = (peer, method, connection)
        thread = threading.Thread(target=self._serve, args=arguments, name="peer-call", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            logger.warning(
                "%s's call of %s is not answered: %s. The peer asks again; raise this process's "
                "limit on threads if that goes on",
                peer,
                method,
                error,
            )
            self._ended(*arguments)

    def _serve(self, peer: str, method: str, connection: socket.socket) -> None:
        idle_disk_for_good()
        try:
            self._sockets.add(connection, shown_fingerprints(connection))
            self._answer(self._offers[method], connection)
        except (OSError, BadMessage) as error:
            logger.debug("the answer to %s's %s broke off: %s", peer, method, error)
        finally:
            self._ended(peer, method, connection)

    def _ended(self, peer: str, method: str, connection: socket.socket) -> None:
        self._sockets.close(connection)
        with self._lock:
            self._answering.discard((peer, method))

    def _answer(self, answer: Answer, connection: socket.socket) -> None:
        last = time.monotonic() + peer_options.CALL_SECONDS_MAX
        silence = time.monotonic() + peer_options.CALL_SILENCE_SECONDS
        request = read_frame(connection, FrameReader(), silence)
        for chunk in _told(answer, request):
            if time.monotonic() > last:
                raise ConnectionEnded(f"it took longer than {peer_options.CALL_SECONDS_MAX} s")
            connection.settimeout(peer_options.CALL_SILENCE_SECONDS)
            connection.sendall(pack(chunk))


def _told(answer: Answer, request: bytes) -> Iterator[bytes]:
    """Yield the frames of an answer; what keeps it from being whole is told, too."""
    try:
        for chunk in answer(request):
            yield _CHUNK + chunk
    except (BadMessage, OSError) as error:
        yield _FAILURE + str(error)[:REFUSAL_CHARACTERS].encode(errors="replace")
        return
    yield _END
