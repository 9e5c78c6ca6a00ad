"""Applies committed payloads to the state: decode, evolve, link the hash chains (S1-S3, S6).

One `StateMachine` belongs to one replica and is used by one thread. It is a pure function of its
input: nodes that were given the same entries have the same state, records and chain heads. Beside
the state it builds the rebalance histories for people; nothing depends on them. Knows no
engine, no clock, no disk; of what makes it durable, an interface alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from holdfast.coordinator.kernel.apply import Step, apply_entry
from holdfast.coordinator.kernel.group_types import TYPES
from holdfast.coordinator.model.events import LogEntry, Record
from holdfast.coordinator.model.state import State
from holdfast.coordinator.projections.history import Histories
from holdfast.coordinator.projections.rebalances import tell
from holdfast.coordinator.structures.pmap import PMap
from holdfast.coordinator.structures.transient import Transient
from holdfast.storage.codec.event_codec import (
    CHAIN_START,
    append_chain,
    chain_hash,
    encode_record,
    read_entry,
)
from holdfast.storage.codec.state_image import Digest

logger = logging.getLogger(__name__)

_new: Final[Any] = tuple.__new__  # makes a NamedTuple of its fields

ALL: Final = ""
"""The chain over all records, which covers deleted groups as well (S3)."""


class StoredRecord(NamedTuple):
    """A record and its bytes for the event log, chain hash included."""

    record: Record
    content: bytes


class AppliedEntry(NamedTuple):
    """What one entry did."""

    records: tuple[StoredRecord, ...]
    skipped: Mapping[int, str]
    """The rule by which a part was not applied, by the part's place in the entry."""


class StateMachine:
    """The state, the heads of the chains, and beside them the rebalance histories."""

    def __init__(
        self,
        state: State,
        heads: Mapping[str, bytes] | None = None,
        histories: Histories | None = None,
    ) -> None:
        """Begin with a snapshot's state, chain heads and histories, or with none."""
        self.state = state
        self.heads: PMap[str, bytes] = PMap(heads or {})
        self.histories: Histories = PMap() if histories is None else histories
        self._digest = Digest()
        self._digest.advance(state)
        self._digested_head = self.heads.get(ALL, CHAIN_START)

    def digest(self) -> bytes:
        """Return the digest of state and records (S3); nodes given the same entries have the same.

        Rebalance histories are not in it, because nothing is decided on them. Takes time in
        proportion to what changed since the last call.
        """
        self.begin_digest()
        self._digest.finish()
        return self._digested()

    def begin_digest(self) -> None:
        """Begin to make the digest of this moment: entries applied later do not change it."""
        self._digest.begin(self.state)
        self._digested_head = self.heads.get(ALL, CHAIN_START)

    def step_digest(self, records: int) -> bytes | None:
        """Take in up to so many records that changed; return the digest that was begun, once done.

        What is left of an earlier digest is taken in by the next `begin_digest`.
        """
        return self._digested() if self._digest.step(records) else None

    def _digested(self) -> bytes:
        return self._digest.value.to_bytes(8, "big") + self._digested_head

    def apply(
        self, index: int, term: int, payload: bytes, known: LogEntry | None = None
    ) -> AppliedEntry:
        """Apply one entry. An empty payload is the engine's own and changes nothing but the index.

        `known`: the entry that was encoded here into this payload; it is not decoded again.
        Raises `CodecError` for a payload that this version cannot read: the node must stop, since
        what it cannot read its peers may have applied.
        """
        if not payload:
            self.state = self.state._replace(applied_index=index)
            return AppliedEntry((), {})
        entry, events = read_entry(payload, known)
        applied = apply_entry(self.state, index, term, entry)
        self.state = applied.state
        self._tell(applied.steps)
        skipped = {skip.place: skip.rule for skip in applied.skipped}
        raw = [event for place in applied.parts for event in events[place]]
        return AppliedEntry(self._linked(applied.records, raw), skipped)

    def _tell(self, steps: Sequence[Step]) -> None:
        """Add records to the histories. A record that they cannot take must stop nothing (S6)."""
        histories = Transient(self.histories)
        for step in steps:
            try:
                tell(histories, TYPES, *step)
            except Exception:
                position = step.record.position
                logger.exception("the record at %s is missing in its group's history", position)
        histories.keep()
        self.histories = histories.persistent()

    def _linked(
        self, records: Sequence[Record], events: Sequence[bytes]
    ) -> tuple[StoredRecord, ...]:
        """Chain each record to the one before it, in the chain over all and in its group's."""
        heads = self.heads
        whole = heads.get(ALL) or CHAIN_START
        moved: dict[str, bytes] = {}
        linked: list[StoredRecord] = []
        for record, event in zip(records, events, strict=True):
            content, group_id = encode_record(record, event), record.group_id
            mine = whole = chain_hash(whole, content)
            if group_id:
                last = moved.get(group_id) or heads.get(group_id) or CHAIN_START
                mine = moved[group_id] = chain_hash(last, content)
            linked.append(_new(StoredRecord, (record, append_chain(content, mine))))
        if records:
            moved[ALL] = whole
            self.heads = heads.changed(moved)
        return tuple(linked)


class Snapshots(Protocol):
    """Makes the state durable behind the journal (S18)."""

    def note(self, outcome: AppliedEntry, size: int) -> None:
        """Keep what one entry of `size` bytes added to the event log."""

    def maybe_take(self, machine: StateMachine, term: int) -> None:
        """Begin a snapshot of this moment if enough has changed and none is under way.

        Raises `StateContradicted` if an earlier one contradicts what is stored.
        """

    async def take_now(self, machine: StateMachine, term: int) -> None:
        """Take a snapshot of this moment and wait until it is durable."""

    async def reload(self) -> StateMachine:
        """Read the state of a snapshot that was just installed."""

    async def close(self, machine: StateMachine, term: int) -> None:
        """Wait for snapshots under way and take a last one."""
