"""The record of a committed offset, as bytes: most records of a state are of offsets.

It is `holdfast.v1.StateRecord` with an `OffsetState`, written by hand, since a replay encodes each
of them for the digest, and a node each that changed; a test holds it against protobuf's own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from holdfast.coordinator.model.state import Offset
from holdfast.storage.codec.wire import nested, signed, text, varint

_VERSION: Final = 1 << 3
_KEY: Final = bytes((2 << 3 | 2,))
_BODY: Final = varint(19 << 3 | 2)
_OFFSET: Final = bytes((1 << 3,))
_LEADER_EPOCH: Final = bytes((2 << 3,))
_METADATA: Final = bytes((3 << 3 | 2,))
_COMMITTED: Final = bytes((4 << 3,))
_EPOCH_SPAN: Final = 1 << 32
_KEYS_KEPT: Final = 1 << 12
"""Ids of groups, topics and numbers of partitions: the records of a group follow on each other."""


def offset_record(version: int, key: tuple[str, ...], value: Offset) -> bytes:
    """Encode the record. Raises TypeError or ValueError if the schema cannot hold a value.

    `version`: of the schema, below 128.
    """
    offset, leader_epoch, metadata, committed_ms = value
    body = b"".join((
        *(signed(_OFFSET, offset), _epoch(leader_epoch)),
        *(text(_METADATA, metadata), signed(_COMMITTED, committed_ms)),
    ))  # fmt: skip
    return b"".join((bytes((_VERSION, version)), *map(_key, key), nested(_BODY, body)))


@lru_cache(maxsize=_KEYS_KEPT)
def _key(part: str) -> bytes:
    return nested(_KEY, part.encode())


@lru_cache(maxsize=_KEYS_KEPT)
def _epoch(leader_epoch: int) -> bytes:
    """Encode a number as protobuf's sint32: small negative ones are short, too."""
    if not -_EPOCH_SPAN // 2 <= leader_epoch < _EPOCH_SPAN // 2:
        raise ValueError(f"{leader_epoch} is no number of 32 bits with a sign")
    folded = leader_epoch << 1 if leader_epoch >= 0 else (-leader_epoch << 1) - 1
    return _LEADER_EPOCH + varint(folded) if folded else b""
