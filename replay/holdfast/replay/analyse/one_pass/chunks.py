"""Linked intervals as tables of a bounded size, that wait in Spark until the scales are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from holdfast.replay.analyse.one_pass.interval_table import Linked, Numbers, Spans

CHUNK: Final = 50_000
"""Intervals of a table at most: it is one value of a row of Spark's."""
_TEXTS: Final = ("group", "topic", "owner", "member_id", "ended")


def chunks(linked: Linked) -> Iterator[pa.Table]:
    """Cut all intervals into tables; `lane` numbers the partitions of a group in their order."""
    lane = lanes_of_groups(linked)
    for first in range(0, len(linked), CHUNK):
        yield _chunk(linked, lane, slice(first, first + CHUNK))


def lanes_of_groups(linked: Linked) -> Numbers:
    """Give numbers to the partitions of each group, from 0 on."""
    lane = linked.lane
    starts = linked.group_starts
    lengths = np.diff([*starts.tolist(), len(linked)])
    return lane - np.repeat(lane[starts], lengths)


def _chunk(linked: Linked, lane: Numbers, of: slice) -> pa.Table:
    spans = linked.spans.part(of)
    return pa.table(
        {
            **{name: _texts(linked.codes[name][of], linked.names[name]) for name in _TEXTS},
            "partition": linked.partition[of],
            "lane": lane[of],
            "token": linked.token[of],
            "predecessor_ms": linked.predecessor_ms[of],
            "start_ms": spans.start,
            "end_ms": spans.end,
            "reach_ms": spans.reach,
            "after": spans.after,
        }
    )


def _texts(codes: Numbers, names: list[str]) -> pa.DictionaryArray:
    """Encode texts with those names alone that are used."""
    used, places = np.unique(codes, return_inverse=True)
    told = pa.array([names[code] for code in used.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), told)


def spans_of(table: pa.Table) -> Spans:
    """Return the times of a table."""
    start, end, reach, after = (
        table.column(name).to_numpy() for name in ("start_ms", "end_ms", "reach_ms", "after")
    )
    return Spans(start, end, reach, after)


def names_of(table: pa.Table, name: str) -> tuple[Numbers, list[str]]:
    """Return a column of texts: numbers, and the texts in their order."""
    chunk = table.column(name).combine_chunks()
    if isinstance(chunk, pa.ChunkedArray):
        (chunk,) = chunk.chunks
    return chunk.indices.to_numpy().astype(np.int64), chunk.dictionary.to_pylist()
