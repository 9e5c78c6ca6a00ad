"""Committed payloads, folded into the state: decode, apply, link the hash chains (S1-S3, S6).

One `Fold` belongs to one replica and is used by one thread. It is a pure function of what it was
given: nodes that were given the same entries have the same state, records and chain heads. Knows
no engine, no clock, no disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.coordinator.events import Record
from holdfast.coordinator.pmap import PMap
from holdfast.coordinator.replay import apply_entry
from holdfast.coordinator.state import State
from holdfast.storage.codec import (
    CHAIN_START,
    append_chain,
    chain_hash,
    decode_entry,
    encode_record,
)
from holdfast.storage.state_image import Digest

ALL: Final = ""
"""The chain over all records; a deleted group's life stays covered by it (S3)."""


class StoredRecord(NamedTuple):
    """A record and its bytes for the event log, chain hash included."""

    record: Record
    content: bytes


class Folded(NamedTuple):
    """What one entry did. `skipped`: groups whose part was not applied, and by which rule."""

    records: tuple[StoredRecord, ...]
    skipped: Mapping[str, str]


class Fold:
    """The state, and the heads of the chains."""

    def __init__(self, state: State, heads: Mapping[str, bytes] | None = None) -> None:
        """Begin at a snapshot's state and chain heads, or at nothing."""
        self.state = state
        self.heads: PMap[str, bytes] = PMap(heads or {})
        self._digest = Digest()
        self._digest.advance(state)

    def digest(self) -> bytes:
        """The digest of state and history (S3): equal on nodes that were given the same entries.

        Costs time in proportion to what changed since it was last asked for.
        """
        total = self._digest.advance(self.state)
        return total.to_bytes(8, "big") + self.heads.get(ALL, CHAIN_START)

    def step(self, index: int, term: int, payload: bytes) -> Folded:
        """Fold one entry. An empty payload is the engine's own and changes nothing but the index.

        Raises `CodecError` for a payload that this version cannot read: the node must stop, since
        what it cannot read its peers may have applied.
        """
        if not payload:
            self.state = self.state._replace(applied_index=index)
            return Folded((), {})
        applied = apply_entry(self.state, index, term, decode_entry(payload))
        self.state = applied.state
        skipped = {skip.group_id: skip.rule for skip in applied.skipped}
        return Folded(tuple(self._linked(applied.records)), skipped)

    def _linked(self, records: Sequence[Record]) -> Iterator[StoredRecord]:
        """Chain each record to the one before it, over all and in its own group."""
        whole = self.heads.get(ALL, CHAIN_START)
        for record in records:
            content = encode_record(record)
            mine = whole = chain_hash(whole, content)
            if record.group_id:
                mine = chain_hash(self.heads.get(record.group_id, CHAIN_START), content)
                self.heads = self.heads.set(record.group_id, mine)
            yield StoredRecord(record, append_chain(content, mine))
        if records:
            self.heads = self.heads.set(ALL, whole)
