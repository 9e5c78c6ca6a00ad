"""The journal: what Raft needs after a crash, as one value and one operation.

A journal holds an image (`JournalImage`). A batch (`JournalBatch`) changes it whole or not at all,
and is on disk when `commit` returns. The raft layer keeps the image in memory itself; it reads the
journal at start only. This file knows neither LMDB nor the engine: `tailed_journal`, `lmdb_journal`
and `memory_journal` implement it, and one conformance suite runs over all of them.
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
    """The identity of this disk (S19), stored with the log so that a wipe removes both."""

    cluster_id: str
    node_id: str
    incarnation: str  # new for every empty or damaged disk
    stage: str  # `forming`, `rebuilding` or `member`
    formed: tuple[tuple[str, str], ...] = ()
    """(node, incarnation) of each node that took part in the bootstrap."""
    promise_ms: int = 0  # the largest election minimum promised and not yet waited out (S10 b)


@dataclass(frozen=True, slots=True)
class NotedMembership:
    """Which nodes the cluster has, as of an entry, when the log no longer says it (S25)."""

    index: int  # of the newest entry of membership that it holds
    text: str  # opaque to storage; empty: the nodes' files say it again


@dataclass(frozen=True, slots=True)
class JournalImage:
    """Everything that the journal holds."""

    entries: tuple[Entry, ...] = ()  # consecutive
    anchor: tuple[int, int] = (0, 0)
    """(index, term) of the entry just before `entries[0]`: the last one that was cut off behind a
    snapshot, (0, 0) in a new journal."""
    hard_state: HardState = HardState()
    commit_index: int = 0
    identity: Identity | None = None
    membership: NotedMembership | None = None
    """Of the newest entry that was cut off or is in a snapshot; entries behind it count more."""


@dataclass(frozen=True, slots=True)
class JournalBatch:
    """Changes that become durable together, carried out in the order of the fields."""

    reset_to: tuple[int, int] | None = None
    """Drop all entries and continue after this (index, term): a snapshot was installed."""
    truncate_from: int | None = None
    """Drop entries with this index and above: a conflict, never below the commit index."""
    append: Sequence[Entry] = field(default=())  # they directly follow the last entry
    cut_to: tuple[int, int] | None = None
    """Drop entries up to and including this (index, term), which becomes the anchor."""
    hard_state: HardState | None = None
    commit_index: int | None = None  # a hint for the next start, no promise
    identity: Identity | None = None
    membership: NotedMembership | None = None
    """Never one with a lower index than that of the image."""


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
