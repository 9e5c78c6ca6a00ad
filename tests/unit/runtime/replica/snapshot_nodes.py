"""A node as far as snapshots go: a state machine, its store, its snapshots."""

from __future__ import annotations

from pathlib import Path

from harness.core import Core
from holdfast.coordinator.model.events import Cause, Event, GroupCreated, LogEntry, Part, Proposed
from holdfast.runtime.replica.snapshots import StateSnapshots
from holdfast.storage.codec.event_codec import encode_entry
from holdfast.storage.codec.state_image import digest_of
from holdfast.storage.state.state_store import StateStore

DEADLINE = 20.0
MAP_BYTES = 64 << 20


class Node:
    """One node's state: a state machine, its store, its snapshots."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        StateStore.create(path / "state")
        self.path = path
        self.reopen()

    def reopen(self) -> None:
        self.store = StateStore(self.path / "state", map_bytes=MAP_BYTES)
        self.snapshots = StateSnapshots(self.store, self.path / "state.copy")
        self.machine = self.snapshots.load()

    def evolve(self, first: int, last: int) -> None:
        for index in range(first, last + 1):
            entry = LogEntry(index, index, (entry_part(index),))
            payload = encode_entry(entry)
            self.snapshots.note(self.machine.apply(index, 1, payload), len(payload))

    def apply(self, group_id: str, event: Event) -> None:
        """Apply an entry with one event, which comes next."""
        state = self.machine.state
        proposed = Proposed(event, Cause("S3", "RaiseLevel"))
        part = Part(group_id, 1, state.version_of(group_id), (proposed,))
        payload = encode_entry(LogEntry(1, 1, (part,)))
        outcome = self.machine.apply(state.applied_index + 1, 1, payload)
        self.snapshots.note(outcome, len(payload))

    def follow(self, core: Core) -> None:
        """Apply what that coordinator's log has beyond this node's state."""
        for made in core.log[self.machine.state.applied_index :]:
            payload = encode_entry(made.entry)
            outcome = self.machine.apply(made.index, made.term, payload)
            self.snapshots.note(outcome, len(payload))

    def take(self) -> None:
        self.snapshots.take(self.machine, 1).result()

    def digest(self) -> tuple[int, dict[str, bytes]]:
        return digest_of(self.machine.state), dict(self.machine.heads.items())


def entry_part(index: int) -> Part:
    event = Proposed(GroupCreated(), Cause("A1", "JoinGroup"))
    return Part(f"group-{index}", 1, 0, (event,))
