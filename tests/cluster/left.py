"""What a stopped node left on disk: its event log, its state, and the digest of both.

Read offline, with the storage's own functions, from the sealed segments and the rest in LMDB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.event_codec import decode_record, split_chain
from holdfast.storage.codec.state_image import digest_of, restore
from holdfast.storage.segments.seal import rows_through
from holdfast.storage.segments.segments import read_rows, segments_in
from holdfast.storage.state.state_store import StateStore

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.coordinator.model.events import Record
    from holdfast.coordinator.model.state import State
    from holdfast.storage.segments.segments import Row

_EVERYTHING = Position((1 << 63) - 1, 0)
_CHAINS = "chains"


class Left(NamedTuple):
    """One node's whole history and what it makes. `last`: the last entry that it covers."""

    last: int
    chain: bytes
    digest: int
    state: State
    records: tuple[Record, ...]


def read_left(data: Path) -> Left:
    """Read the data directory of a node that was stopped gracefully."""
    store = StateStore(data / "state")
    try:
        meta = store.meta()
        assert meta is not None, f"{data} holds no snapshot"
        contents = [record.content for record in store.load() if record.database != _CHAINS]
        rows = list(rows_through(store, _EVERYTHING))
    finally:
        store.close()
    sealed = [row for segment in segments_in(data / "segments") for row in read_rows(segment)]
    state = restore(contents)
    records = tuple(_record(row) for row in sorted({*sealed, *rows}))
    return Left(meta.index, meta.chain, digest_of(state), state, records)


def _record(row: Row) -> Record:
    payload, _ = split_chain(row.content)
    return decode_record(payload)
