"""Sums of record hashes by block, of batches of columns, of both kinds that manifests have.

`record_hashes` says `segments.segments.record_hash` again for many records at once, `fast_hashes`
the same of `segments.fast_hash`. Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from holdfast.replay.read.log_rows import ResultRow
from holdfast.storage.segments.fast_hash import SEED, hash_of_bytes
from holdfast.storage.segments.segments import BLOCK_INDEXES

Hashes: TypeAlias = Callable[[pa.RecordBatch, Any], Any]
"""Hashes the records of a batch, whose indexes are at hand as an array of numpy, to 64 bits."""

SUMS: Final = "sums"
"""The tag of a row with the sums of one block."""
_PLACE: Final = np.dtype([("idx", ">u8"), ("ordinal", ">u4")])
_HASH_BYTES: Final = 8
_LOW_HALF: Final = np.uint64((1 << 32) - 1)
_HALF_BITS: Final = np.uint64(32)
_PRIMES: Final = tuple(
    np.array(
        [
            *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9),
            *(0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
        ],
        np.uint64,
    )
)
"""Those of the specification of XXH64, in its order."""


def record_hashes(batch: pa.RecordBatch, indexes: Any) -> Any:  # noqa: ANN401 - arrays of numpy
    """Hash positions and payloads by SHA-256, of which the head counts."""
    places = np.empty(len(indexes), _PLACE)
    places["idx"], places["ordinal"] = indexes, batch.column("ordinal").to_numpy()
    head, size = places.tobytes(), _PLACE.itemsize
    heads = (head[at : at + size] for at in range(0, len(head), size))
    payloads = batch.column("payload").to_pylist()
    made = [
        sha256(place + payload).digest()[:_HASH_BYTES]
        for place, payload in zip(heads, payloads, strict=True)
    ]
    return np.frombuffer(b"".join(made), ">u8").astype(np.uint64)


def fast_hashes(batch: pa.RecordBatch, indexes: Any) -> Any:  # noqa: ANN401 - as above
    """Hash positions and payloads by XXH64: each value with the hash of the one before as seed."""
    ordinals = batch.column("ordinal").to_numpy().astype(np.uint64)
    seeds = _xxh64_of_int(ordinals, _xxh64_of_long(indexes.astype(np.uint64), np.uint64(SEED)))
    payloads = batch.column("payload").to_pylist()
    made = map(hash_of_bytes, payloads, seeds.tolist())
    return np.fromiter(made, np.uint64, len(payloads))


def _xxh64_of_long(values: Any, seeds: Any) -> Any:  # noqa: ANN401 - as above
    """Hash 8 bytes each."""
    one, two, _, four, five = _PRIMES
    mixed = _rotated(values * two, 31) * one
    return _avalanche(_rotated((seeds + five + np.uint64(8)) ^ mixed, 27) * one + four)


def _xxh64_of_int(values: Any, seeds: Any) -> Any:  # noqa: ANN401 - as above
    """Hash 4 bytes each."""
    one, two, three, _, five = _PRIMES
    mixed = values * one
    return _avalanche(_rotated((seeds + five + np.uint64(4)) ^ mixed, 23) * two + three)


def _rotated(values: Any, bits: int) -> Any:  # noqa: ANN401 - as above
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _avalanche(values: Any) -> Any:  # noqa: ANN401 - as above
    _, two, three, _, _ = _PRIMES
    values = (values ^ (values >> np.uint64(33))) * two
    values = (values ^ (values >> np.uint64(29))) * three
    return values ^ (values >> np.uint64(32))


class BlockSum(NamedTuple):
    """The sums over one block: number of records, and both halves of their hashes."""

    block: int
    records: int
    low: int
    high: int


class RecordSums:
    """The sums over the batches that were added."""

    def __init__(self, hashes: Hashes = record_hashes) -> None:
        """Begin with none. `hashes`: which are summed."""
        self._hashes = hashes
        self._sums: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0])

    def add(self, batch: pa.RecordBatch) -> None:
        """Add records, of which no position is negative."""
        indexes = batch.column("idx").to_numpy()
        hashes = self._hashes(batch, indexes)
        low, high = hashes & _LOW_HALF, hashes >> _HALF_BITS
        blocks = indexes // BLOCK_INDEXES
        for block in np.unique(blocks).tolist():
            mine, total = blocks == block, self._sums[block]
            total[0] += int(mine.sum())
            total[1] += int(low[mine].sum())
            total[2] += int(high[mine].sum())

    def __iter__(self) -> Iterator[BlockSum]:
        """Yield the sums, in the order of blocks."""
        for block, total in sorted(self._sums.items()):
            yield BlockSum(block, *total)


def sum_row(key: str, told: BlockSum) -> ResultRow:
    """Make the row by which a task tells the sums of a block of what `key` names."""
    return ResultRow(
        SUMS, key=key, text=f"{told.low} {told.high}", idx=told.block, ordinal=told.records
    )


def sum_of_row(row: ResultRow) -> tuple[str, BlockSum]:
    """Read what `sum_row` made."""
    low, high = map(int, row.text.split())
    return row.key, BlockSum(row.idx, row.ordinal, low, high)
