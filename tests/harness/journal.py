"""A model journal and a model of the state's directory: what survives a crash, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.raft.api import SnapshotFailed, SnapshotMark
from holdfast.storage.journal.journal import HardState, JournalBatch, JournalImage
from holdfast.storage.journal.rules import Outline, advance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.storage.journal.journal import Entry, Identity, NotedMembership


NO_SNAPSHOT = SnapshotMark(0, 0)


class PowerCut(Exception):
    """The machine died inside a commit; the batch is on disk whole, or not at all."""


def _nothing(_batch: JournalBatch) -> None:
    """No fault."""


class ModelJournal:
    """Implements `holdfast.storage.journal.journal.Journal` by the letter of its docstrings."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._anchor = (0, 0)
        self._hard_state = HardState()
        self._commit_index = 0
        self._identity: Identity | None = None
        self._membership: NotedMembership | None = None
        self.commits = 0
        self.before_commit: Callable[[JournalBatch], None] = _nothing
        self.after_commit: Callable[[JournalBatch], None] = _nothing

    def load(self) -> JournalImage:
        return JournalImage(
            tuple(self._entries),
            self._anchor,
            self._hard_state,
            self._commit_index,
            self._identity,
            self._membership,
        )

    def commit(self, batch: JournalBatch) -> None:
        self.before_commit(batch)
        advance(self._outline, batch, self._term_at)  # refuses what the real one refuses
        self.commits += 1
        self._change_entries(batch)
        if batch.cut_to is not None:
            self._entries = [e for e in self._entries if e.index > batch.cut_to[0]]
            self._anchor = batch.cut_to
        self._hard_state = batch.hard_state or self._hard_state
        self._identity = batch.identity or self._identity
        self._membership = batch.membership or self._membership
        if batch.commit_index is not None:
            self._commit_index = batch.commit_index
        self.after_commit(batch)

    def restore(self, image: JournalImage) -> None:
        """Become what `load` returned earlier: a flip rolled later transactions back (S21)."""
        self._entries, self._anchor = list(image.entries), image.anchor
        self._hard_state, self._commit_index = image.hard_state, image.commit_index
        self._identity = image.identity
        self._membership = image.membership

    def repair(self) -> None:
        """Take out all faults."""
        self.before_commit = self.after_commit = _nothing

    @property
    def _outline(self) -> Outline:
        tail = self._entries[-1:]
        last = (tail[0].index, tail[0].term) if tail else self._anchor
        told = (self._commit_index, self._hard_state, self._identity, self._membership)
        return Outline(self._anchor, last, *told)

    def _term_at(self, index: int) -> int:
        return self._entries[index - self._anchor[0] - 1].term

    def _change_entries(self, batch: JournalBatch) -> None:
        if batch.reset_to is not None:
            self._entries, self._anchor = [], batch.reset_to
        if batch.truncate_from is not None:
            assert batch.truncate_from > self._anchor[0], "a cut below the anchor"
            while self._entries and self._entries[-1].index >= batch.truncate_from:
                self._entries.pop()
        for entry in batch.append:
            last = self._entries[-1].index if self._entries else self._anchor[0]
            assert entry.index == last + 1, f"entry {entry.index} cannot follow {last}"
            self._entries.append(entry)

    @property
    def last_index(self) -> int:
        """Index of the newest durable entry."""
        return self._entries[-1].index if self._entries else self._anchor[0]

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class Snapshot:
    """A state as of an entry: the values evolved up to there."""

    mark: SnapshotMark = NO_SNAPSHOT
    values: tuple[str, ...] = ()

    def encode(self) -> bytes:
        return "\n".join(self.values).encode()

    @staticmethod
    def decode(mark: SnapshotMark, data: bytes) -> Snapshot:
        return Snapshot(mark, tuple(data.decode().split("\n")) if data else ())


@dataclass
class ModelNotes:
    """Implements `holdfast.raft.api.Notes`: bytes that outlive the process."""

    content: bytes = b""

    def read(self) -> bytes:
        return self.content

    def write(self, content: bytes) -> None:
        self.content = content

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class SimDisk:
    """One node's two directories, and `holdfast.raft.api.SnapshotSource` over the second."""

    journal: ModelJournal = field(default_factory=ModelJournal)
    notes: ModelNotes = field(default_factory=ModelNotes)
    snapshot: Snapshot = field(default_factory=Snapshot)
    slow_installs: bool = False
    slow_writes: bool = False
    opened: int = 0
    waiting: int = 0
    broken_reads: int = 0
    broken_writes: int = 0
    broken_installs: int = 0

    def latest(self) -> SnapshotMark:
        return self.snapshot.mark

    def open(self, index: int) -> Iterator[bytes]:
        """Deliver with pauses, and break off as often as the test wants it."""
        assert index == self.snapshot.mark.index
        self.opened += 1
        data = self.snapshot.encode()
        half = len(data) // 2
        yield b""
        yield data[:half]
        if self.broken_reads:
            self.broken_reads -= 1
            raise SnapshotFailed("the copy cannot be read")
        yield b""
        yield data[half:]

    def begin(self, mark: SnapshotMark, _progressed: Callable[[], None]) -> SimSink:
        return SimSink(self, mark)


class SimSink:
    """Implements `holdfast.raft.api.SnapshotSink`."""

    def __init__(self, disk: SimDisk, mark: SnapshotMark) -> None:
        self._disk, self._mark = disk, mark
        self._data = bytearray()
        self._taken = 0
        self._state = "open"

    def write(self, chunk: bytes) -> bool:
        assert self._state == "open"
        self._data += chunk
        return True

    def taken(self) -> int:
        if self._disk.broken_writes and len(self._data) > 100:  # not with its first window
            self._disk.broken_writes -= 1
            raise SnapshotFailed("the disk is full")
        if not self._disk.slow_writes:
            self._taken = len(self._data)
        self._disk.waiting = len(self._data) - self._taken
        return self._taken

    def seal(self) -> None:
        assert self._state == "open"
        self._state = "sealed"

    def ready(self) -> bool:
        if self._disk.broken_installs:
            self._disk.broken_installs -= 1
            raise SnapshotFailed("the digest does not match")
        return self._state == "sealed" and not self._disk.slow_installs

    def install(self) -> None:
        assert self._state == "sealed"
        self._state = "installed"
        self._disk.snapshot = Snapshot.decode(self._mark, bytes(self._data))

    def abort(self) -> None:
        assert self._state != "installed"
        self._state = "aborted"
