"""Frames of a connection between nodes: each is its length in four bytes, and so many bytes.

An empty frame asks whether the other side still lives, and is the answer to that. Bytes come in
pieces of any size; what claims more than a frame may have is refused before it is kept. Pure:
knows neither sockets nor what a frame means.
"""

from __future__ import annotations

import struct
from typing import Final

from holdfast.raft.api import BadMessage

FRAME_BYTES_MAX: Final = 2 << 20
"""No frame is longer: entries and snapshots travel in chunks far below this (S7)."""
ALIVE: Final = bytes(4)
"""An empty frame."""

_LENGTH: Final = struct.Struct(">I")


def pack(frame: bytes) -> bytes:
    """Return a frame behind its length."""
    return _LENGTH.pack(len(frame)) + frame


class FrameReader:
    """Makes frames of the pieces in which they arrive."""

    __slots__ = ("_at", "_most", "_needed", "_pieces", "_size")

    def __init__(self, most: int = FRAME_BYTES_MAX) -> None:
        """`most`: no frame may have more bytes."""
        self._most = most
        self._pieces: list[bytes] = []
        self._at = 0
        self._size = 0
        self._needed = _LENGTH.size

    @property
    def wanted(self) -> int:
        """How many more bytes the present frame needs, as far as its length is known."""
        return self._needed - self._size

    @property
    def unread(self) -> bytes:
        """The bytes that are in no frame yet."""
        return b"".join(self._pieces)[self._at :]

    def feed(self, piece: bytes) -> None:
        """Add the bytes that came next."""
        self._pieces.append(piece)
        self._size += len(piece)

    def take(self) -> bytes | None:
        """Return the next frame; None if it is not complete. Raises BadMessage if it is too long.

        Pieces are joined when a frame is complete, so that a long one is not copied at each piece.
        """
        if self._size < self._needed:
            return None
        if len(self._pieces) > 1:
            self._pieces, self._at = [self.unread], 0
        held, begin = self._pieces[0], self._at + _LENGTH.size
        (length,) = _LENGTH.unpack_from(held, self._at)
        if length > self._most:
            raise BadMessage(f"a frame claims {length} bytes, and may have {self._most}")
        self._needed = _LENGTH.size + length
        if self._size < self._needed:
            return None
        self._at, self._size = begin + length, self._size - self._needed
        self._needed = _LENGTH.size
        if not self._size:
            self._pieces, self._at = [], 0
        return held[begin : begin + length]
