"""Another node, played by hand on plain sockets: what it says is bytes that a test chooses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.raft.transport.frames import FrameReader, pack
from holdfast.raft.wire.greeting import Greeting, decode_answer

PATIENCE_S = 20.0


def place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def read(connection: socket.socket, most: int = 1 << 21) -> bytes:
    """The next frame."""
    reader = FrameReader(most)
    while (frame := reader.take()) is None:
        piece = connection.recv(reader.wanted)
        assert piece, "the other side closed the connection"
        reader.feed(piece)
    return frame


def ends(connection: socket.socket) -> bool:
    """Wait until the other side closes. Raises TimeoutError."""
    with suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass
    return True


@contextmanager
def dialled(address: str, greeting: bytes) -> Iterator[socket.socket]:
    """A connection on which this was said first."""
    with socket.create_connection(place(address), PATIENCE_S) as connection:
        connection.sendall(pack(greeting))
        yield connection


def answer_to(address: str, greeting: bytes) -> Greeting | str:
    """What a node answers to a greeting."""
    with dialled(address, greeting) as connection:
        return decode_answer(read(connection))


class OtherAcceptor:
    """A node that answers every greeting with the same bytes, and notes what comes after it."""

    def __init__(self, answer: bytes, *, pongs: bool = True) -> None:
        self.answer, self.pongs = answer, pongs
        self.greeted, self.heard = list[bytes](), bytearray()

    @contextmanager
    def listening(self, address: str) -> Iterator[None]:
        with socket.create_server(place(address)) as server:
            threading.Thread(target=self._serve, args=(server,), daemon=True).start()
            yield
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)

    def _serve(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection, suppress(OSError, AssertionError):
                    self._serve_one(connection)

    def _serve_one(self, connection: socket.socket) -> None:
        self.greeted.append(read(connection))
        connection.sendall(self.answer)
        while piece := connection.recv(1 << 16):
            self.heard += piece
            if self.pongs:
                connection.sendall(bytes(4))
