"""Read the part of a stopped node's log that is not sealed from its disk.

It is the event log in `state/`, and the committed entries of the journal that are in no snapshot:
after a kill, the newest records are only there (S18). One disk may not show whether the very last
entry was committed, since the commit index becomes durable with the next entry; then it is left
out. Reads only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.levels import LEVEL_MIN
from holdfast.raft.core.proposals import unpack_command
from holdfast.runtime.replica.snapshots import StateSnapshots
from holdfast.runtime.replica.state_machine import StateMachine, StoredRecord
from holdfast.storage.directory.check import JOURNAL_FOLDER, STATE_FOLDER
from holdfast.storage.directory.stopped import held
from holdfast.storage.errors import DirectoryRefused, Refusal
from holdfast.storage.journal.journal import JournalImage
from holdfast.storage.journal.journal_reader import read_journal
from holdfast.storage.segments.seal import rows_through
from holdfast.storage.segments.segments import Row
from holdfast.storage.state.state_store import StateStore

_EVERYTHING = Position((1 << 64) - 1, 0)


class Unsealed(NamedTuple):
    """Records that are in no segment yet, and the node that they belong to."""

    cluster_id: str
    node_id: str
    rows: list[Row]
    level: int = LEVEL_MIN
    """The level in force behind them."""


def unsealed(directory: Path) -> Unsealed:
    """Read what a stopped node's data directory holds outside of its segments.

    Raises DirectoryRefused if it is not a node's or a node runs on it, StorageError if it is
    damaged, CodecError or ValueError if a newer version wrote it.
    """
    with held(directory):
        image = read_journal(directory / JOURNAL_FOLDER)
        if image.identity is None:
            raise DirectoryRefused(directory, Refusal.NOT_OURS, "its journal names no node")
        store = StateStore(directory / STATE_FOLDER, readonly=True)
        try:
            rows = list(rows_through(store, _EVERYTHING))
            machine = StateSnapshots(store, store.path).load()
            rows += [Row(s.record.position, s.content) for s in _replayed(machine, image)]
        finally:
            store.close()
        identity, level = image.identity, machine.state.level
        return Unsealed(identity.cluster_id, identity.node_id, rows, level)


def _replayed(machine: StateMachine, image: JournalImage) -> Iterator[StoredRecord]:
    """Yield the records of committed entries that are in no snapshot, made as at a start."""
    for entry in image.entries:
        if machine.state.applied_index < entry.index <= image.commit_index:
            decided, payload = unpack_command(entry.payload) or (0, b"")
            skipped = decided != entry.term  # as every replica does (S1)
            yield from machine.apply(entry.index, entry.term, b"" if skipped else payload).records
