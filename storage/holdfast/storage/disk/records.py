"""How one record looks on disk, and its checksum (S21). Bytes in, bytes out: no files, no LMDB.

Every value starts with a CRC-32 (zlib) over the record's identity and its content, so that an
intact record in the wrong place is found as well.

    entry of the journal    key  index u64           value  crc u32 | term u64 | payload
    named record            key  name                value  crc u32 | body
    record of the state     key  see `disk_key`      value  crc u32 | [length u32 | key] | content

Integers are big-endian, so LMDB's byte order is the numeric order.
"""

from __future__ import annotations

import hashlib
import json
import struct
from typing import TYPE_CHECKING
from zlib import crc32

from holdfast.storage.journal.journal import Entry, HardState, Identity, NotedMembership

if TYPE_CHECKING:
    from collections.abc import Callable

KEY_BYTES_MAX = 511  # LMDB's limit
_LONG_PREFIX_BYTES = KEY_BYTES_MAX - hashlib.sha256().digest_size

_INDEX = struct.Struct(">Q")
_PAIR = struct.Struct(">QQ")
_ENTRY_HEAD = struct.Struct(">IQ")
_CRC = struct.Struct(">I")
_LENGTH = struct.Struct(">I")


class RecordDamaged(ValueError):
    """A record does not match its checksum; the reader adds which record it was."""


# --- entries of the journal ---


def index_key(index: int) -> bytes:
    """Encode the key of entry `index`."""
    return _INDEX.pack(index)


def index_of(key: bytes) -> int:
    """Decode an entry's index from its key. Raises `RecordDamaged`."""
    if len(key) != _INDEX.size:
        raise RecordDamaged(f"an entry's key has {len(key)} bytes instead of {_INDEX.size}")
    return int(_INDEX.unpack(key)[0])


def pack_entry(entry: Entry) -> bytes:
    """Encode the stored value of an entry; its checksum covers index, term and payload."""
    head = _PAIR.pack(entry.index, entry.term)
    return _ENTRY_HEAD.pack(crc32(entry.payload, crc32(head)), entry.term) + entry.payload


def unpack_entry(index: int, stored: bytes) -> Entry:
    """Decode an entry that `pack_entry` encoded. Raises `RecordDamaged`."""
    if len(stored) < _ENTRY_HEAD.size:
        raise RecordDamaged("the record is too short")
    checksum, term = _ENTRY_HEAD.unpack_from(stored)
    payload = stored[_ENTRY_HEAD.size :]
    if crc32(payload, crc32(_PAIR.pack(index, term))) != checksum:
        raise RecordDamaged("the checksum does not match")
    return Entry(index, term, payload)


# --- named records: few, small, readable by people, hence JSON ---


def pack_named(name: bytes, body: object) -> bytes:
    """Encode the stored value of a named record; its checksum covers the name, too."""
    text = json.dumps(body, separators=(",", ":"), sort_keys=True).encode()
    return _CRC.pack(crc32(text, crc32(name))) + text


def unpack_named(name: bytes, stored: bytes) -> object:
    """Decode the body that `pack_named` encoded. Raises `RecordDamaged`."""
    if len(stored) < _CRC.size:
        raise RecordDamaged(f"the record {name.decode()!r} is too short")
    text = stored[_CRC.size :]
    if crc32(text, crc32(name)) != _CRC.unpack_from(stored)[0]:
        raise RecordDamaged(f"the checksum of {name.decode()!r} does not match")
    try:
        body: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordDamaged(f"the record {name.decode()!r} is not JSON: {error}") from error
    return body


def hard_state_body(hard: HardState) -> dict[str, object]:
    """Convert a hard state to the body of a named record."""
    return {"term": hard.term, "voted_for": hard.voted_for}


def hard_state_of(body: object) -> HardState:
    """Read the hard state in a named record's body. Raises `RecordDamaged`."""
    match body:
        case {"term": int(term), "voted_for": str() | None as voted_for}:
            return HardState(term, voted_for)
        case _:
            raise RecordDamaged(f"a hard state was expected, not {body!r}")


def pair_of(body: object) -> tuple[int, int]:
    """Read the (index, term) in a named record's body. Raises `RecordDamaged`."""
    match body:
        case [int(index), int(term)]:
            return index, term
        case _:
            raise RecordDamaged(f"an (index, term) was expected, not {body!r}")


def number_of(body: object) -> int:
    """Read the number in a named record's body. Raises `RecordDamaged`."""
    if not isinstance(body, int):
        raise RecordDamaged(f"a number was expected, not {body!r}")
    return body


def identity_body(identity: Identity) -> dict[str, object]:
    """Convert an identity to the body of a named record."""
    return {
        "cluster_id": identity.cluster_id,
        "node_id": identity.node_id,
        "incarnation": identity.incarnation,
        "stage": identity.stage,
        "formed": [list(pair) for pair in identity.formed],
        "promise_ms": identity.promise_ms,
    }


def identity_of(body: object) -> Identity:
    """Read the identity in a named record's body. Raises `RecordDamaged`."""
    match body:
        case {
            "cluster_id": str(cluster_id),
            "node_id": str(node_id),
            "incarnation": str(incarnation),
            "stage": str(stage),
            "formed": list(formed),
            "promise_ms": int(promise_ms),
        }:
            pairs = tuple(_formed_pair(pair) for pair in formed)
            return Identity(cluster_id, node_id, incarnation, stage, pairs, promise_ms)
        case _:
            raise RecordDamaged(f"an identity was expected, not {body!r}")


def _formed_pair(pair: object) -> tuple[str, str]:
    match pair:
        case [str(node), str(disk)]:
            return node, disk
        case _:
            raise RecordDamaged(f"a node and its disk were expected, not {pair!r}")


def membership_body(noted: NotedMembership) -> dict[str, object]:
    """Convert a membership to the body of a named record."""
    return {"index": noted.index, "text": noted.text}


def membership_of(body: object) -> NotedMembership:
    """Read the membership in a named record's body. Raises `RecordDamaged`."""
    match body:
        case {"index": int(index), "text": str(text)}:
            return NotedMembership(index, text)
        case _:
            raise RecordDamaged(f"a membership was expected, not {body!r}")


# --- records of the state ---


def disk_key(key: bytes) -> bytes:
    """Return the key under which LMDB stores `key`.

    A key of 511 bytes or more does not fit, or could be mistaken for a shortened one: it becomes
    its first 479 bytes and its SHA-256, exactly 511 bytes, and the value holds the whole key.
    """
    if not key:
        raise ValueError("a record's key must not be empty")
    if len(key) < KEY_BYTES_MAX:
        return key
    return key[:_LONG_PREFIX_BYTES] + hashlib.sha256(key).digest()


def pack_record(database: str, key: bytes, content: bytes) -> bytes:
    """Encode the stored value of a state record; its checksum covers database and key, too."""
    long_key = _LENGTH.pack(len(key)) + key if len(key) >= KEY_BYTES_MAX else b""
    return _CRC.pack(_record_crc(database, key, content)) + long_key + content


def unpack_record(database: str, stored_key: bytes, stored: bytes) -> tuple[bytes, bytes]:
    """Decode the (key, content) that `pack_record` encoded. Raises `RecordDamaged`."""
    key, start = stored_key, _CRC.size
    if len(stored_key) >= KEY_BYTES_MAX:
        key, start = _long_key(stored)
    content = stored[start:]
    if len(stored) < start or _record_crc(database, key, content) != _CRC.unpack_from(stored)[0]:
        raise RecordDamaged("the checksum does not match")
    if disk_key(key) != stored_key:
        raise RecordDamaged("the record stands under another record's key")
    return key, content


def quick_test(database: str) -> Callable[[bytes, bytes], bool]:
    """Make a test that is true only for what `unpack_record` would accept, in half of its time.

    It takes what LMDB holds, key and value, and is false also for a record with a long key.
    """
    begun, seeds = crc32(database.encode()), dict[int, int]()

    def is_sound(stored_key: bytes, stored: bytes) -> bool:
        size = len(stored_key)
        seed = seeds.get(size)
        if seed is None:
            seed = seeds[size] = crc32(_LENGTH.pack(size), begun)
        return (
            size < KEY_BYTES_MAX
            and len(stored) >= _CRC.size
            and crc32(stored[_CRC.size :], crc32(stored_key, seed))
            == int.from_bytes(stored[: _CRC.size], "big")
        )

    return is_sound


def _long_key(stored: bytes) -> tuple[bytes, int]:
    head = _CRC.size + _LENGTH.size
    if len(stored) < head:
        raise RecordDamaged("the record is too short")
    end = head + int(_LENGTH.unpack_from(stored, _CRC.size)[0])
    return stored[head:end], end


def _record_crc(database: str, key: bytes, content: bytes) -> int:
    place = database.encode() + _LENGTH.pack(len(key)) + key
    return crc32(content, crc32(place))
