"""Long things in chunks: entries over the chunk size (S7, E-10) and snapshots (S18), in a window.

A stream has at most `WINDOW` chunks under way, so heartbeats wait behind no more than these.
What is lost is sent again from the receiver's last word; a receiver that knows nothing of the
stream makes the sender begin anew.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

WINDOW = 4


class Piece(NamedTuple):
    """Bytes of a stream."""

    offset: int
    """Where in the stream they begin, in bytes."""
    data: bytes
    last: bool


class OutStream:
    """The sender's end of the entry or snapshot with this index."""

    def __init__(
        self, index: int, term: int, chunks: Iterator[bytes], now: float, *, total: int = 0
    ) -> None:
        """`chunks` is read as the window opens. A snapshot's total is not known beforehand: 0."""
        self.index, self.term, self.total, self.begun_at = index, term, total, now
        self._pieces = _pieces(chunks, marks_end=not total)
        self._flying: deque[Piece] = deque()
        self._moved_at = now

    def next_pieces(self, now: float) -> list[Piece]:
        """Return the pieces that the window lets go now."""
        fresh: list[Piece] = []
        while len(self._flying) < WINDOW:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._flying.append(piece)
            fresh.append(piece)
        if fresh:
            self._moved_at = now
        return fresh

    def acked(self, offset: int, now: float) -> bool:
        """Note that `offset` bytes arrived.

        False if the receiver lacks bytes that are not held here.
        """
        while self._flying and self._flying[0].offset + len(self._flying[0].data) <= offset:
            if self._flying[0].last and not self._flying[0].data:
                break
            self._flying.popleft()
            self._moved_at = now
        return not self._flying or self._flying[0].offset <= offset

    def lost_pieces(self, now: float, patience: float) -> list[Piece]:
        """Return the pieces to send again, because nothing was heard for `patience` seconds."""
        if not self._flying or now - self._moved_at < patience:
            return []
        self._moved_at = now
        return list(self._flying)


def _pieces(chunks: Iterator[bytes], *, marks_end: bool) -> Iterator[Piece | None]:
    """Turn chunks into pieces with offsets; with `marks_end`, an empty last piece ends the stream.

    None for an empty chunk: another thread reads the source and is not so far yet.
    """
    offset = 0
    for chunk in chunks:
        if not chunk:
            yield None
            continue
        yield Piece(offset, chunk, last=False)
        offset += len(chunk)
    if marks_end:
        yield Piece(offset, b"", last=True)


def slices(data: bytes, size: int) -> Iterator[bytes]:
    """Cut bytes into slices of at most `size`; nothing stays one empty slice."""
    return (data[at : at + size] for at in range(0, max(1, len(data)), size))


@dataclass(frozen=True, slots=True)
class StreamKey:
    """Names the stream that a chunk belongs to: its sender, the term, and what it carries."""

    peer: str
    term: int
    index: int
    of_term: int
    is_snapshot: bool


class Cursor:
    """The receiver's end: takes one stream at a time, in order."""

    def __init__(self) -> None:
        """Start without a stream."""
        self.key: StreamKey | None = None
        self.offset = 0

    def accepts(self, key: StreamKey, offset: int) -> bool:
        """Return whether these bytes are the next ones.

        The first bytes of a new stream always are.
        """
        if key != self.key:
            if offset != 0:
                return False
            self.key, self.offset = key, 0
        return offset == self.offset

    def expected(self, key: StreamKey) -> int:
        """Return the offset at which the sender should continue."""
        return self.offset if key == self.key else 0

    def drop(self) -> None:
        """Forget the stream."""
        self.key, self.offset = None, 0
