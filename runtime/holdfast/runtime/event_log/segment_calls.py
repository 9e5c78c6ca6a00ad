"""Calls between nodes for sealed segments: their requests, and the side that answers.

One call lists what a node has sealed. Another reads a file of a segment from an offset on, in
bounded chunks, so that a broken transfer continues where it ended. A third reads the checkpoint at
a position. Only finished files are served: names are made here from numbers, never taken from a
request. Knows the folder of segments; no gRPC
and no engine.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.raft.api import BadMessage
from holdfast.storage.segments.checkpoint import checkpoint_name
from holdfast.storage.segments.segments import BUCKETS, MANIFEST, bucket_file, segments_in

METHOD: Final = "Segments"
CHUNK_BYTES: Final = 256 * 1024

Call = Callable[[str, bytes], Iterator[bytes]]
"""(peer, request) -> the peer's answer in chunks. Raises OSError when it breaks off."""

_READ: Final = struct.Struct(">QQBQ")
_CHECKPOINT: Final = struct.Struct(">QI")


class Piece(NamedTuple):
    """A file of the segment from entry `first` to `last`: its bucket, from byte `offset` on."""

    first: int
    last: int
    bucket: int
    offset: int


def encode_list() -> bytes:
    """Ask for the manifests of all finished segments: one chunk each, in the order of the log."""
    return b""


def encode_read(piece: Piece) -> bytes:
    """Ask for the rest of a file."""
    return _READ.pack(*piece)


def encode_checkpoint(last: Position) -> bytes:
    """Ask for the checkpoint at a position."""
    return _CHECKPOINT.pack(*last)


def decode(request: bytes) -> Piece | Position | None:
    """Decode a request; None: it asks for the list; a position: for the checkpoint there.

    Raises BadMessage.
    """
    if not request:
        return None
    if len(request) == _CHECKPOINT.size:
        return Position(*_CHECKPOINT.unpack(request))
    if len(request) != _READ.size:
        raise BadMessage(f"a request for segments has {_READ.size} bytes, not {len(request)}")
    piece = Piece(*_READ.unpack(request))
    if piece.bucket >= BUCKETS:
        raise BadMessage(f"a segment has no bucket {piece.bucket}")
    return piece


class SegmentSource:
    """Answers peers from this node's sealed segments. Any thread may call it."""

    def __init__(self, folder: Path) -> None:
        """`folder`: the folder of this node's segments; it need not exist yet."""
        self._folder = folder

    def answer(self, request: bytes) -> Iterator[bytes]:
        """Return the chunks of an answer. Raises BadMessage; OSError if the file is absent."""
        asked = decode(request)
        if isinstance(asked, Piece):
            return self._read(asked)
        return self._list() if asked is None else self._checkpoint(asked)

    def _list(self) -> Iterator[bytes]:
        for segment in segments_in(self._folder):
            yield (segment / MANIFEST).read_bytes()

    def _read(self, piece: Piece) -> Iterator[bytes]:
        name = f"{piece.first:020d}-{piece.last:020d}"
        return _chunks(self._folder / name / bucket_file(piece.bucket), piece.offset)

    def _checkpoint(self, last: Position) -> Iterator[bytes]:
        return _chunks(self._folder / checkpoint_name(last), 0)


def _chunks(path: Path, offset: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(offset)
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
