"""A state as a stream of bytes in bounded chunks, and back. No files, no LMDB.

A frame is: database number u8, key length u16, value length u32 (big-endian), key, value, both as
stored, with the record's own checksum inside. The last frame has database number 255, an empty
key and as value the count of frames before it (u64) and the SHA-256 over their bytes: a stream
without it is incomplete.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, NamedTuple

from holdfast.storage.disk.records import KEY_BYTES_MAX
from holdfast.storage.errors import InstallRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CONTENT_BYTES_MAX = 64 * 1024 * 1024

_HEAD = struct.Struct(">BHI")
_COUNT = struct.Struct(">Q")
_END = 255
_END_BYTES = _COUNT.size + hashlib.sha256().digest_size


class StreamedRecord(NamedTuple):
    """One record as it is stored."""

    database: int
    """The number of its database."""
    key: bytes
    stored: bytes
    """The value on disk, with its checksum."""


def encode_stream(records: Iterable[StreamedRecord], size: int) -> Iterator[bytes]:
    """Encode records as a stream in chunks of `size` bytes; the last one may be shorter."""
    pending, digest, count = bytearray(), hashlib.sha256(), 0
    for record in records:
        frame = _frame(*record)
        digest.update(frame)
        count += 1
        pending += frame
        yield from _full_chunks(pending, size)
    pending += _frame(_END, b"", _COUNT.pack(count) + digest.digest())
    yield from _full_chunks(pending, size)
    if pending:
        yield bytes(pending)


class StreamDecoder:
    """Decodes chunks of any size into the records that they complete."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._digest = hashlib.sha256()
        self._count = 0
        self.whole = False

    def feed(self, chunk: bytes) -> list[StreamedRecord]:
        """Return the records that `chunk` completes. Raises `InstallRefused` if it is no stream."""
        self._pending += chunk
        records: list[StreamedRecord] = []
        start = 0
        while (end := self._frame_end(start)) is not None:
            frame = bytes(self._pending[start:end])
            start = end
            self._take(frame, records)
        del self._pending[:start]
        return records

    def _frame_end(self, start: int) -> int | None:
        if len(self._pending) - start < _HEAD.size:
            return None
        if self.whole:
            raise InstallRefused("there are bytes behind its end")
        database, key_size, content_size = _HEAD.unpack_from(self._pending, start)
        if key_size > KEY_BYTES_MAX or content_size > CONTENT_BYTES_MAX:
            raise InstallRefused(f"a record of {key_size} + {content_size} bytes is too large")
        if database == _END and (key_size, content_size) != (0, _END_BYTES):
            raise InstallRefused("its end is malformed")
        end = start + _HEAD.size + int(key_size) + int(content_size)
        return end if end <= len(self._pending) else None

    def _take(self, frame: bytes, records: list[StreamedRecord]) -> None:
        database, key_size, _ = _HEAD.unpack_from(frame)
        content_start = _HEAD.size + key_size
        if database == _END:
            self._finish(frame[content_start:])
            return
        self._digest.update(frame)
        self._count += 1
        key = frame[_HEAD.size : content_start]
        records.append(StreamedRecord(database, key, frame[content_start:]))

    def _finish(self, content: bytes) -> None:
        if content != _COUNT.pack(self._count) + self._digest.digest():
            raise InstallRefused("its digest does not match")
        self.whole = True


def _frame(database: int, key: bytes, content: bytes) -> bytes:
    return _HEAD.pack(database, len(key), len(content)) + key + content


def _full_chunks(pending: bytearray, size: int) -> Iterator[bytes]:
    start = 0
    while len(pending) - start >= size:
        yield bytes(pending[start : start + size])
        start += size
    del pending[:start]
