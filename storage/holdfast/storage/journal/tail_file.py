"""How a file of the journal's tail looks, and what can be read of one. Bytes in, bytes out.

    block 0     magic | id of the journal, 16 bytes | serial number of the file u64 | crc u32
    then        batches, each at the beginning of a block of 512 bytes:
                mark of the file, 8 bytes | sequence number u64 | length u32 | crc u32 | body

The mark is a digest of the journal's id and the file's serial number. So bytes that are left of an
earlier use of the file, or that came from another disk, are never taken for batches. The checksum
covers the head and the body. A disk writes a block whole or not at all, so a batch that is written
never touches a block that holds an acknowledged one. Integers are big-endian. Knows no batch's
content and no file system.
"""

from __future__ import annotations

import struct
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCK = 512
JOURNAL_ID_BYTES = 16
BODY_BYTES_MAX = (1 << 32) - 1

_MAGIC = b"hf-tail\x01"
_FILE_HEAD = struct.Struct(">8s16sQ")
_CRC = struct.Struct(">I")
_BATCH_PLACE = struct.Struct(">8sQI")
_BATCH_HEAD = struct.Struct(">8sQII")
BATCH_HEAD_BYTES = _BATCH_HEAD.size

_PREFIX = "tail-"
_DIGITS = 16


def file_name(serial: int) -> str:
    """Return the name of the file with this serial number."""
    return f"{_PREFIX}{serial:0{_DIGITS}d}"


def serial_of(name: str) -> int | None:
    """Return the serial number in a file's name; None if it is no name of a tail's file."""
    digits = name.removeprefix(_PREFIX)
    ours = name.startswith(_PREFIX) and len(digits) == _DIGITS
    return int(digits) if ours and digits.isascii() and digits.isdigit() else None


def mark_of(journal_id: bytes, serial: int) -> bytes:
    """Return what each batch of a file begins with."""
    return sha256(_FILE_HEAD.pack(_MAGIC, journal_id, serial)).digest()[:8]


def file_head(journal_id: bytes, serial: int) -> bytes:
    """Encode the first block of a file."""
    head = _FILE_HEAD.pack(_MAGIC, journal_id, serial)
    return (head + _CRC.pack(crc32(head))).ljust(BLOCK, b"\0")


def journal_id_of(content: bytes, serial: int) -> bytes | None:
    """Return the id of the journal that a file belongs to; None if its head is damaged."""
    journal_id = content[len(_MAGIC) : len(_MAGIC) + JOURNAL_ID_BYTES]
    sound = len(journal_id) == JOURNAL_ID_BYTES and content[:BLOCK] == file_head(journal_id, serial)
    return journal_id if sound else None


def batch_bytes(pieces: Sequence[bytes]) -> int:
    """Return how many bytes of a file a batch with this body takes."""
    size = _BATCH_HEAD.size + sum(map(len, pieces))
    return -(-size // BLOCK) * BLOCK


def pack_batch(mark: bytes, sequence: int, pieces: Sequence[bytes]) -> bytes:
    """Encode a batch; `pieces` are its body."""
    body = b"".join(pieces)
    place = _BATCH_PLACE.pack(mark, sequence, len(body))
    padding = bytes(-(len(place) + _CRC.size + len(body)) % BLOCK)
    return b"".join((place, _CRC.pack(crc32(body, crc32(place))), body, padding))


class Found(NamedTuple):
    """What a file holds."""

    batches: tuple[tuple[int, bytes], ...]
    """(sequence number, body) of each whole batch from the beginning up to the first other one."""
    end: int
    """Where the first block begins that holds none of them."""
    stranded: int | None
    """Where a whole batch begins behind that place: what stood before it is damaged."""
    torn: bool
    """Whether a batch that is not whole begins behind the last whole one."""

    @property
    def touched(self) -> bool:
        """Whether anything was ever written behind the head, whole or torn."""
        return bool(self.batches) or self.torn


def read_file(content: bytes, mark: bytes) -> Found:
    """Read all batches with this mark, whatever their numbers."""
    batches, at = list[tuple[int, bytes]](), BLOCK
    while (batch := _batch_at(content, mark, at)) is not None:
        batches.append(batch)
        at += batch_bytes([batch[1]])
    marked = _marked_blocks(content, mark, at)
    stranded = next((place for place in marked if _batch_at(content, mark, place)), None)
    return Found(tuple(batches), at, stranded, torn=bool(marked))


def _batch_at(content: bytes, mark: bytes, at: int) -> tuple[int, bytes] | None:
    if len(content) < at + _BATCH_HEAD.size:
        return None
    found, sequence, length, checksum = _BATCH_HEAD.unpack_from(content, at)
    start = at + _BATCH_HEAD.size
    body = content[start : start + length]
    if found != mark or len(body) != length:
        return None
    place = _BATCH_PLACE.pack(mark, sequence, length)
    return (sequence, body) if crc32(body, crc32(place)) == checksum else None


def _marked_blocks(content: bytes, mark: bytes, start: int) -> list[int]:
    """Return the blocks from `start` on that begin with the mark, whether a batch is whole or not.

    A torn batch has its mark at its first block alone, and only if that block was written.
    """
    found, at = list[int](), content.find(mark, start)
    while at >= 0:
        if at % BLOCK == 0:
            found.append(at)
        at = content.find(mark, at + 1)
    return found
