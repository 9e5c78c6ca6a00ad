"""The journal: what Raft must find again after a crash, as one value and one operation.

A journal is an image (`JournalImage`) that batches (`JournalBatch`) are committed to, each batch
whole or not at all, and on disk when `commit` returns. The raft layer keeps the image in memory
itself; it never reads a journal except at start. This file knows neither LMDB nor the engine:
`lmdb_journal` and `memory_journal` implement it, one conformance suite runs over both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the replicated log. `index` counts from 1; `payload` is opaque to storage."""

    index: int
    term: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class HardState:
    """Term and vote of this node (Raft thesis 3.4); durable before any message shows them."""

    term: int = 0
    voted_for: str | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this disk is (S19), in the same environment as the log so that a wipe takes both.

    `incarnation` is new for every empty or damaged disk; `stage` is `forming`, `rebuilding` or
    `member`; `formed` maps each node that took part in the bootstrap to its incarnation;
    `promise_ms` is the largest election minimum ever promised and not yet sat out (S10 b).
    """

    cluster_id: str
    node_id: str
    incarnation: str
    stage: str
    formed: tuple[tuple[str, str], ...] = ()
    promise_ms: int = 0


@dataclass(frozen=True, slots=True)
class JournalImage:
    """Everything that the journal holds. `entries` are consecutive, `anchor` precedes the first.

    `anchor` is the (index, term) of the entry just before `entries[0]`: the last one that was cut
    away behind a snapshot, (0, 0) in a new journal.
    """

    entries: tuple[Entry, ...] = ()
    anchor: tuple[int, int] = (0, 0)
    hard_state: HardState = HardState()
    commit_index: int = 0
    identity: Identity | None = None


@dataclass(frozen=True, slots=True)
class JournalBatch:
    """Changes that become durable together, carried out in the order of the fields.

    `reset_to`: forget every entry and continue after this (index, term) (snapshot install).
    `truncate_from`: forget entries with this index and above (a conflict, never below commit).
    `append`: entries that follow on directly. `cut_to`: forget entries up to and including this
    (index, term), which becomes the anchor. `commit_index` is advisory: a hint for the next start.
    """

    reset_to: tuple[int, int] | None = None
    truncate_from: int | None = None
    append: Sequence[Entry] = field(default=())
    cut_to: tuple[int, int] | None = None
    hard_state: HardState | None = None
    commit_index: int | None = None
    identity: Identity | None = None


class Journal(Protocol):
    """Durable storage of one node's log and hard state.

    Raises `storage.errors.JournalFailed` if a batch may not be on disk; the node then stops (a
    failed fsync is never tried again: the kernel may have dropped the pages), and
    `storage.errors.JournalDamaged` at `load` if a checksum or the sequence of indexes is wrong.
    """

    def load(self) -> JournalImage:
        """Read and verify everything. Called once, before the first commit."""

    def commit(self, batch: JournalBatch) -> None:
        """Make the batch durable: when this returns, a power cut cannot undo it."""

    def close(self) -> None:
        """Release the files."""
