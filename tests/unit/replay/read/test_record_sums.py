"""Sums of record hashes by block: what the workers make of columns is what the writer made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coordinator.model.ids import Position
from holdfast.replay.read.record_sums import (
    BlockSum,
    Hashes,
    RecordSums,
    fast_hashes,
    record_hashes,
)
from holdfast.storage.segments.fast_hash import fast_hash
from holdfast.storage.segments.segments import BLOCK_INDEXES, record_hash

POSITIONS = st.builds(Position, st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 31) - 1))
NEAR = st.builds(Position, st.integers(0, 3 * BLOCK_INDEXES), st.integers(0, 3))
RECORDS = st.lists(st.tuples(POSITIONS | NEAR, st.binary(max_size=100)), max_size=20)


@given(RECORDS)
def test_s22_fast_sums_are_those_of_the_writer_s_own_hash(
    records: list[tuple[Position, bytes]],
) -> None:
    """The writer hashes each record by xxHash's library; here positions are hashed by columns."""
    assert summed(records, fast_hashes) == told(records, fast_hash)


@given(RECORDS)
def test_s22_sums_are_those_of_the_writer_s_own_hash(
    records: list[tuple[Position, bytes]],
) -> None:
    assert summed(records, record_hashes) == told(records, record_hash)


def summed(records: list[tuple[Position, bytes]], hashes: Hashes) -> list[BlockSum]:
    """The sums by the workers' way: two batches, one after the other."""
    sums = RecordSums(hashes)
    for some in (records[::2], records[1::2]):
        places = [place for place, _ in some]
        columns = {
            "idx": pa.array([place.index for place in places], pa.int64()),
            "ordinal": pa.array([place.ordinal for place in places], pa.int32()),
            "payload": pa.array([payload for _, payload in some], pa.binary()),
        }
        sums.add(pa.RecordBatch.from_pydict(columns))
    return list(sums)


def told(
    records: list[tuple[Position, bytes]], of: Callable[[Position, bytes], int]
) -> list[BlockSum]:
    """The sums by their definition: low and high halves of 64 bits, by block of indexes."""
    totals: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    for place, payload in records:
        value, total = of(place, payload), totals[place.index // BLOCK_INDEXES]
        total[0] += 1
        total[1] += value % (1 << 32)
        total[2] += value >> 32
    return [BlockSum(block, *total) for block, total in sorted(totals.items())]
