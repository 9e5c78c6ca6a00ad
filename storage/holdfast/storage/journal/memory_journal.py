"""A journal in memory: for nodes in tests and simulations, never for data that must last.

It keeps the same rules as the one on disk and passes the same conformance suite.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.storage.journal.journal import Entry, JournalBatch, JournalImage
from holdfast.storage.journal.rules import Outline, advance, fault_of


@dataclass(slots=True)
class MemoryDisk:
    """The content that outlives a `MemoryJournal`; pass it to the next one to reopen."""

    outline: Outline = field(default_factory=Outline)
    entries: list[Entry] = field(default_factory=list)


class MemoryJournal:
    """A `Journal` over a `MemoryDisk`."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self._disk = MemoryDisk() if disk is None else disk
        self._loaded = False

    def load(self) -> JournalImage:
        """Return everything that the disk holds."""
        self._loaded = True
        outline = self._disk.outline
        fault = fault_of(outline)
        if fault is not None:
            raise AssertionError(fault)
        return JournalImage(
            tuple(self._disk.entries),
            outline.anchor,
            outline.hard_state,
            outline.commit_index,
            outline.identity,
            outline.membership,
        )

    def commit(self, batch: JournalBatch) -> None:
        """Carry the batch out. Raises `WriteRefused`, with nothing changed."""
        if not self._loaded:
            raise RuntimeError("a journal must be loaded before its first commit")
        after = advance(self._disk.outline, batch, self._term_at)
        entries = [] if batch.reset_to is not None else self._disk.entries
        if batch.truncate_from is not None:
            entries = [entry for entry in entries if entry.index < batch.truncate_from]
        entries.extend(batch.append)
        if batch.cut_to is not None:
            entries = [entry for entry in entries if entry.index > after.anchor[0]]
        self._disk.entries, self._disk.outline = entries, after

    def close(self) -> None:
        """Forget that it was loaded; the disk keeps everything."""
        self._loaded = False

    def _term_at(self, index: int) -> int:
        entries = self._disk.entries
        return entries[index - entries[0].index].term
