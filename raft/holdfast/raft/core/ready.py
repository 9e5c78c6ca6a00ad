"""What the concerns want done, as one value: to persist, to send, to hand over (E-5).

A concern neither syncs nor sends nor wakes the consumer. It appends to `Ready`, and one function
does what is in it, in one order: `Completion.run` (core/completion.py). The model is etcd's Ready.

Not in it is what another thread asks for, because nobody could hold that back: `Lease.valid` and
the status of the engine are read from shared memory. So a lease is revoked before the change that
ends it is even in `persist` (S10 c), and what extends it are promises of a majority, nothing that
this disk holds. A snapshot on its way in and the notes on peers' disks have files of their own;
what is told of them is in `send` like all else.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from holdfast.storage.journal.journal import Entry, JournalBatch

if TYPE_CHECKING:
    from holdfast.raft.api import Item
    from holdfast.raft.messages import Append, EntryChunk, Message, SnapshotChunk

LogItem = tuple[bytes, int, int]
"""(command, index, term)."""

Outgoing = tuple[str, "Message"]
"""(peer, message)."""

_NOTHING = JournalBatch()


@dataclass(slots=True)
class Changes:
    """Changes of the log since the last flush, folded into one transaction."""

    batch: JournalBatch = _NOTHING
    """All changes but the new entries."""
    entries: list[LogItem] = field(default_factory=list)
    """The new entries, in the order of the log."""
    again: bool = False
    """Write a transaction even if nothing has changed (S21)."""

    def __bool__(self) -> bool:
        """Return whether there is anything to write."""
        return self.again or not self.are_none

    @property
    def are_none(self) -> bool:
        """Whether nothing has changed."""
        return not self.entries and self.batch is _NOTHING

    def note(self, **changes: Any) -> None:  # noqa: ANN401 - fields of a JournalBatch
        """Change fields of the batch; a later change takes the place of an earlier one."""
        self.batch = replace(self.batch, **changes)

    def drop_from(self, index: int) -> None:
        """Drop new entries from this index on."""
        self.entries = [item for item in self.entries if item[1] < index]

    def reset(self, index: int, term: int) -> None:
        """Make the log empty after this entry, and drop the changes to the entries it had."""
        held = self.batch
        self.batch = JournalBatch(
            reset_to=(index, term),
            hard_state=held.hard_state,
            identity=held.identity,
            membership=held.membership,
        )
        self.entries = []

    def whole(self, commit_index: int) -> JournalBatch:
        """Return all changes and the commit index as one batch."""
        entries = [Entry(index, term, command) for command, index, term in self.entries]
        return replace(self.batch, append=entries, commit_index=commit_index)

    def clear(self) -> None:
        """Forget the changes, because all of them are durable."""
        self.batch, self.entries, self.again = _NOTHING, [], False


@dataclass(slots=True)
class Ready:
    """What is to be done. Tick thread only; nothing but `Completion.run` empties it."""

    persist: Changes
    """Changes to make durable: the log's own, which it folds as they come."""
    at_once: list[tuple[str, Append | EntryChunk | SnapshotChunk]] = field(default_factory=list)
    """A leader's data, by peer. It shows nothing of this node's disk, so it may travel while the
    disk writes (Raft thesis 10.2.1). Its type admits nothing else."""
    send: list[Outgoing] = field(default_factory=list)
    """All other messages, by peer. They leave after all of `persist` is durable."""
    apply: list[Item] = field(default_factory=list)
    """Items for the consumer, in this order (S4). It is told of no entry and no snapshot that is
    not durable. What only says that something ended waits for the items before it, not for the
    disk."""
