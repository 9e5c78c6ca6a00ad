"""A machine's disk: what survives which death, how long it takes, and how it fails.

The journal is the harness's model (it passes the conformance suite of the LMDB journal); around it,
the newest batch counts as being written for as long as a sync takes, and a death meanwhile leaves
it on disk whole or not at all. The state's directory holds what the real `StateStore` holds, as one
value that is replaced as a whole. Torn pages are tried on real files (tests/storage).
"""

from __future__ import annotations

import errno
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.journal import ModelJournal, ModelNotes
from holdfast.storage.errors import JournalFailed
from holdfast.storage.state.rules import StateMeta, check_event, check_snapshot
from holdfast.storage.state.state_records import StateRecord
from holdfast.storage.state.state_store import EventRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from random import Random

    from holdfast.storage.codec.state_image import Change
    from holdfast.storage.journal.journal import Identity, JournalBatch, JournalImage
    from simulation.schedule import Schedule
    from simulation.sealing import Segment

SYNC_US: Final = (60, 400)
"""How long a sync takes on a healthy disk."""
WRITE_US: Final = (1_000, 30_000)
"""How long a snapshot of the state takes."""

Key = tuple[str, bytes]


class SyncedJournal(ModelJournal):
    """A journal whose newest batch is not safe before its sync has ended.

    `busy_us`: how long the syncs took since it was set to 0; the engine's thread waits so long.
    """

    def __init__(self, schedule: Schedule, random: Random) -> None:
        super().__init__()
        self._schedule, self._random = schedule, random
        self._under_way: JournalBatch | None = None
        self.busy_us = 0
        self.slowness_us = 0
        self.fails = False

    def commit(self, batch: JournalBatch) -> None:
        """Write and sync; raises JournalFailed if the disk is told to fail."""
        self._finish()
        self._under_way = batch
        self.busy_us += self._random.randint(*SYNC_US)
        if self.slowness_us:
            self.busy_us += self._random.randint(self.slowness_us // 3, self.slowness_us)
        if self.fails:
            self.fails = False
            self.die(synced=False)
            raise JournalFailed(Path("journal"), "the simulated disk says EIO", errno.EIO)

    @property
    def identity(self) -> Identity | None:
        """Who this disk says it is."""
        newest = self._under_way.identity if self._under_way is not None else None
        return newest or self._identity

    def load(self) -> JournalImage:
        """What a start finds."""
        self._finish()
        return super().load()

    def die(self, *, synced: bool) -> None:
        """The process or the machine ends now; `synced`: no sync was under way.

        What was being written is there whole or not at all.
        """
        if not synced and self._random.random() < 0.5:
            self._under_way = None
        self._finish()

    def _finish(self) -> None:
        batch, self._under_way = self._under_way, None
        if batch is not None:
            super().commit(batch)


@dataclass(frozen=True)
class StoredState:
    """One moment of the state's directory."""

    records: dict[Key, bytes] = field(default_factory=dict)
    events: tuple[EventRecord, ...] = ()
    meta: StateMeta | None = None


class StateDisk:
    """What `StateStore` is to `StateSnapshots` and `History`, over a value."""

    def __init__(self) -> None:
        self.stored = StoredState()

    def meta(self) -> StateMeta | None:
        """What the last snapshot covers."""
        return self.stored.meta

    def load(self) -> Iterator[StateRecord]:
        """Every record but the event log's."""
        for (database, key), content in self.stored.records.items():
            yield StateRecord(database, key, content)

    def events(self, start: tuple[int, int], limit: int) -> list[EventRecord]:
        """At most `limit` records of the event log from a position on."""
        events = self.stored.events
        first = bisect_left(events, start, key=lambda event: (event.index, event.ordinal))
        return list(events[first : first + limit])

    def write_snapshot(
        self, changes: Iterable[Change], events: Iterable[EventRecord], meta: StateMeta
    ) -> None:
        """All of it or nothing; raises WriteRefused as the real store does."""
        before = self.stored
        check_snapshot(before.meta, meta)
        new = tuple(events)
        for event in new:
            check_event(meta, event.index)
        records = dict(before.records)
        for change in changes:
            if change.content is None:
                records.pop((change.database, change.key), None)
            else:
                records[change.database, change.key] = change.content
        self.stored = StoredState(records, (*before.events, *new), meta)


@dataclass
class Disk:
    """One machine's disk."""

    journal: SyncedJournal
    state: StateDisk = field(default_factory=StateDisk)
    notes: ModelNotes = field(default_factory=ModelNotes)
    segments: list[Segment] = field(default_factory=list)
    """What is sealed, in the order of the log (sealing.py)."""
    founded_alone: bool = False
    """Whether it has the log of another cluster: what it holds is no part of this history."""
