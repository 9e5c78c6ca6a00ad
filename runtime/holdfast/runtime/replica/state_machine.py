"""Committed payloads, applied to the state: decode, evolve, link the hash chains (S1-S3, S6).

One `StateMachine` belongs to one replica and is used by one thread. It is a pure function of what
it was given: nodes that were given the same entries have the same state, records and chain heads.
Knows no engine, no clock, no disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.coordinator.kernel.apply import apply_entry
from holdfast.coordinator.model.events import LogEntry, Record
from holdfast.coordinator.model.pmap import PMap
from holdfast.coordinator.model.state import State
from holdfast.storage.codec.event_codec import (
    CHAIN_START,
    append_chain,
    chain_hash,
    encode_record,
    read_entry,
)
from holdfast.storage.codec.state_image import Digest

ALL: Final = ""
"""The chain over all records; a deleted group's life stays covered by it (S3)."""


class StoredRecord(NamedTuple):
    """A record and its bytes for the event log, chain hash included."""

    record: Record
    content: bytes


class AppliedEntry(NamedTuple):
    """What one entry did. `skipped`: places of the parts not applied, and by which rule."""

    records: tuple[StoredRecord, ...]
    skipped: Mapping[int, str]


class StateMachine:
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

    def apply(
        self, index: int, term: int, payload: bytes, known: LogEntry | None = None
    ) -> AppliedEntry:
        """Apply one entry. An empty payload is the engine's own and changes nothing but the index.

        `known`: the value that the payload was made of, if that was here; it is not decoded again.
        Raises `CodecError` for a payload that this version cannot read: the node must stop, since
        what it cannot read its peers may have applied.
        """
        if not payload:
            self.state = self.state._replace(applied_index=index)
            return AppliedEntry((), {})
        entry, events = read_entry(payload, known)
        applied = apply_entry(self.state, index, term, entry)
        self.state = applied.state
        skipped = {skip.place: skip.rule for skip in applied.skipped}
        raw = [event for place in applied.parts for event in events[place]]
        return AppliedEntry(tuple(self._linked(applied.records, raw)), skipped)

    def _linked(self, records: Sequence[Record], events: Sequence[bytes]) -> Iterator[StoredRecord]:
        """Chain each record to the one before it, over all and in its own group."""
        whole = self.heads.get(ALL) or CHAIN_START
        moved: dict[str, bytes] = {}
        for record, event in zip(records, events, strict=True):
            content = encode_record(record, event)
            mine = whole = chain_hash(whole, content)
            if record.group_id:
                group_id = record.group_id
                last = moved.get(group_id) or self.heads.get(group_id)
                mine = moved[group_id] = chain_hash(last or CHAIN_START, content)
            yield StoredRecord(record, append_chain(content, mine))
        if records:
            moved[ALL] = whole
            self.heads = self.heads.update_all(moved.items())
