"""Sums of record hashes by block, of batches of columns (`segments.segments.record_hash`).

The check of a file's form makes them, since it reads each file once, however many nodes have it.
Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from holdfast.storage.segments.segments import BLOCK_INDEXES

_PLACE: Final = np.dtype([("idx", ">u8"), ("ordinal", ">u4")])
_HASH_BYTES: Final = 8
_LOW_HALF: Final = np.uint64((1 << 32) - 1)
_HALF_BITS: Final = np.uint64(32)


class BlockSum(NamedTuple):
    """The sums over one block: number of records, and both halves of their hashes."""

    block: int
    records: int
    low: int
    high: int


class RecordSums:
    """The sums over the batches that were added."""

    def __init__(self) -> None:
        self._sums: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0])

    def add(self, batch: pa.RecordBatch) -> None:
        """Add records, of which no position is negative."""
        indexes = batch.column("idx").to_numpy()
        hashes = _hashes(batch, indexes)
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


def _hashes(batch: pa.RecordBatch, indexes: Any) -> Any:  # noqa: ANN401 - arrays of numpy
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
