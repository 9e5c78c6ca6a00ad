"""The log in memory, and one synced batch of changes per flush (E-3, E-4, E-5).

The list is never empty. Position 0 is the anchor, the entry before the first that is held, so that
an index and a position differ by the anchor's index and nothing else. Changes are folded until
`flush` commits them whole: nothing is rewritten in place, and a cut or a conflict is atomic with
what follows it. Knows no engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.raft.core.ready import Changes
from holdfast.raft.membership import ENTRY_KIND
from holdfast.storage.journal.journal import HardState, NotedMembership

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.raft.core.ready import LogItem
    from holdfast.storage.journal.journal import Identity, Journal, JournalImage

NO_OP = b"\x01"

QUIET_SECONDS = 1.0
"""How long the newest transaction may be the only one that holds what was acknowledged."""

NOT_YET = float("-inf")


class LogForked(RuntimeError):
    """A committed entry would have to be cut: going on would lose acknowledged data."""


class Log:
    """Entries, term, vote, commit index and identity of this node. Tick thread only."""

    def __init__(self, image: JournalImage) -> None:
        """Begin with what the disk holds."""
        self._log: list[LogItem] = [(NO_OP, *image.anchor)]
        self._log += [(e.payload, e.index, e.term) for e in image.entries]
        self._hard = image.hard_state
        self._commit = max(image.commit_index, image.anchor[0])
        self._identity = image.identity
        self._noted = image.membership
        """The membership as of what is cut off, or of a snapshot that is being received."""
        self._memberships = [
            NotedMembership(entry.index, entry.payload[1:].decode())
            for entry in image.entries
            if entry.payload[:1] == ENTRY_KIND
        ]
        """Those of the entries that are held, in order. All but the last are committed."""
        self.on_membership: Callable[[], None] = lambda: None
        """Called when `newest_membership` may have changed."""
        self._durable_last = self._log[-1][1]
        self.changes = Changes()

    # -- reading -------------------------------------------------------------

    @property
    def anchor_index(self) -> int:
        """Index of the last entry that was cut away; 0 in a new log."""
        return self._log[0][1]

    @property
    def last_index(self) -> int:
        """Index of the newest entry."""
        return self._log[-1][1]

    @property
    def last_term(self) -> int:
        """Term of the newest entry."""
        return self._log[-1][2]

    @property
    def durable_index(self) -> int:
        """Index of the newest entry that is on disk and is still in the log."""
        return self._durable_last

    @property
    def waiting(self) -> int:
        """How many entries wait for the next flush."""
        return len(self.changes.entries)

    @property
    def is_flushed(self) -> bool:
        """Whether the disk has all entries, the vote and the identity."""
        return not self.changes

    @property
    def commit_index(self) -> int:
        """The commit index that a start may rely on."""
        return min(self._commit, self.last_index)

    @property
    def stored_term(self) -> int:
        """The newest term to store; durable with the next flush."""
        return self._hard.term

    @property
    def vote(self) -> str | None:
        """The node that got the vote of the stored term; durable with the next flush."""
        return self._hard.voted_for

    @property
    def identity(self) -> Identity | None:
        """The identity of this disk; None before the first start."""
        return self._identity

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written: a new disk, or a wiped one (S19)."""
        return self._identity is None and self.holds_nothing

    @property
    def holds_nothing(self) -> bool:
        """Whether this disk has no entry and has heard of no term; it may have a name already."""
        return self._hard == HardState() and self._log[-1][1] == 0

    def at(self, index: int) -> LogItem:
        """Return the entry with this index, which must be held (the anchor is)."""
        position = index - self._log[0][1]
        if position < 0:
            raise IndexError(index)
        return self._log[position]

    def term_at(self, index: int) -> int | None:
        """Return the term of an entry, None if it is not held."""
        position = index - self._log[0][1]
        return self._log[position][2] if 0 <= position < len(self._log) else None

    @property
    def newest_membership(self) -> NotedMembership | None:
        """The membership of the newest entry that has one, committed or not; None: none had."""
        return self.membership_at(self.last_index)

    def open_memberships(self, first: int) -> int:
        """Count the entries of membership from the entry `first` on."""
        return sum(each.index >= first for each in self._memberships)

    def membership_at(self, index: int) -> NotedMembership | None:
        """Return the newest membership at or before an entry; None: the log tells none.

        What is noted was committed, so it counts also where the entries that are held end before.
        """
        held = (each for each in reversed(self._memberships) if each.index <= index)
        newest = next(held, None)
        if newest is None or (self._noted is not None and self._noted.index >= newest.index):
            return self._noted
        return newest

    # -- changing ------------------------------------------------------------

    def append(self, command: bytes, term: int) -> int:
        """Add the next entry and return its index."""
        index = self.last_index + 1
        self._log.append((command, index, term))
        self.changes.entries.append(self._log[-1])
        if command[:1] == ENTRY_KIND:
            self._memberships.append(NotedMembership(index, command[1:].decode()))
            self.on_membership()
        return index

    def truncate_from(self, index: int) -> None:
        """Drop the entries from this index on, because a leader has others there."""
        if index <= max(self._commit, self.anchor_index):
            msg = (
                f"a leader has another entry at index {index}, which is committed here (commit "
                f"index {self._commit}): stop all nodes and keep their directories"
            )
            raise LogForked(msg)
        self.truncate_unchecked(index)

    def truncate_unchecked(self, index: int) -> None:
        """Drop the entries from this index on. For tests that show what the check prevents."""
        del self._log[max(1, index - self.anchor_index) :]
        self.changes.drop_from(index)
        if index <= self._durable_last:
            self._durable_last = index - 1
            self.changes.note(truncate_from=index)
        if self._memberships and self._memberships[-1].index >= index:
            self._memberships = [each for each in self._memberships if each.index < index]
            self.on_membership()

    def cut_to(self, index: int) -> None:
        """Drop the entries up to this one, which a durable snapshot covers."""
        position = index - self.anchor_index
        if position <= 0:
            return
        self._log = self._log[position:]
        self.changes.note(cut_to=self._log[0][1:])
        self._log[0] = (NO_OP, *self._log[0][1:])
        self._fold_memberships(index)

    def _fold_memberships(self, index: int) -> None:
        """Note the newest membership that was cut off, in the batch that cuts it off (S25 a)."""
        cut = [each for each in self._memberships if each.index <= index]
        if cut:
            self._memberships = self._memberships[len(cut) :]
            self.note_membership(cut[-1])

    def note_membership(self, told: NotedMembership) -> None:
        """Note a committed membership that no entry may say; an older one than is noted is not.

        That of a snapshot is noted before the snapshot is installed, so that no crash between the
        two leaves a state of one membership beside a log of another.
        """
        if self._noted is None or told.index > self._noted.index:
            self._noted = told
            self.changes.note(membership=told)
            self.on_membership()

    def rebase(self, index: int, term: int) -> None:
        """Continue after an installed snapshot; keep entries that match it and follow it (E-1)."""
        if self.term_at(index) == term:
            self.cut_to(index)
        else:
            self._log = [(NO_OP, index, term)]
            self._durable_last = index
            self.changes.reset(index, term)
            self._memberships = []
            self.on_membership()
        self.set_commit(max(self._commit, index))

    def set_commit(self, index: int) -> None:
        """Note the commit index; the next flush writes it."""
        self._commit = index

    def set_term(self, term: int, voted_for: str | None) -> None:
        """Store a term and a vote; messages that show them are held until the flush."""
        self._hard = HardState(term, voted_for)
        self.changes.note(hard_state=self._hard)

    def set_identity(self, identity: Identity) -> None:
        """Note the identity of this disk; messages that show it are held until the flush."""
        self._identity = identity
        self.changes.note(identity=identity)


class StoredLog(Log):
    """The log with the disk under it: one synced batch per flush (E-4, E-5). Tick thread only.

    `Completion` alone flushes. The concerns are given it as a `Log`, which has no flush.
    """

    def __init__(self, journal: Journal) -> None:
        """Load the journal; `storage.errors.JournalDamaged` passes through."""
        super().__init__(journal.load())
        self._journal = journal
        self._alone_since: float | None = None

    def flush(self, changes: Changes) -> None:
        """Make the log's changes durable in one batch, and then forget them.

        Raises `storage.errors.JournalFailed`.
        """
        if not changes:
            return
        self._journal.commit(changes.whole(self.commit_index))
        self._durable_last = self.last_index
        self._alone_since = None if changes.are_none else NOT_YET
        changes.clear()

    def keep_twice(self, now: float) -> None:
        """After a quiet second, ask for one more transaction, which acknowledges nothing (S21).

        A damaged newest meta page rolls back one transaction, which is then this one. It also makes
        the last commit index durable, which else waits for the next entry. Never between a change
        and its flush, because the flush will be the newest transaction.
        """
        if not self.is_flushed:
            return
        if self._alone_since == NOT_YET:
            self._alone_since = now
        elif self._alone_since is not None and now - self._alone_since >= QUIET_SECONDS:
            self.changes.again = True

    def close(self) -> None:
        """Release the files; changes that are not flushed are lost, as in a crash."""
        self._journal.close()
