"""The hash of a record that a JVM computes without Python: Spark's own `xxhash64` (docs/adr/0059).

It is `xxhash64(idx, ordinal, payload)` of SQL over a segment's columns: each value is hashed with
the hash of the one before it as its seed. It finds accidents, not an attacker; the sums over
SHA-256 and the hash chains stand beside it. Knows positions and bytes.
"""

from __future__ import annotations

from typing import Final

from xxhash import xxh64_intdigest

from holdfast.coordinator.model.ids import Position

SEED: Final = 42
"""Spark's, which cannot be chosen there."""
hash_of_bytes: Final = xxh64_intdigest
"""Hashes bytes with a seed to 64 bits."""


def fast_hash(position: Position, payload: bytes) -> int:
    """Hash position and payload to 64 bits: numbers have the width of their columns."""
    index = hash_of_bytes(position.index.to_bytes(8, "little"), SEED)
    ordinal = hash_of_bytes(position.ordinal.to_bytes(4, "little"), index)
    return hash_of_bytes(payload, ordinal)
