"""The log under the names by which PySyncObj calls its journal.

Position 0 is the anchor, so the engine takes the log for one that is not new and adds no entry of
its own; its index and ours are the same number. It does not decide when changes become durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

import pysyncobj.journal
import pysyncobj.syncobj

from holdfast.raft.core.log import LogForked, StoredLog

if TYPE_CHECKING:
    from holdfast.raft.core.ready import LogItem


class EngineJournal(StoredLog, pysyncobj.journal.Journal):
    """The log as the engine's journal. Tick thread only."""

    def __len__(self) -> int:
        """Count the entries held, the anchor included."""
        return len(self._log)

    @overload
    def __getitem__(self, item: int) -> LogItem: ...
    @overload
    def __getitem__(self, item: slice) -> list[LogItem]: ...
    def __getitem__(self, item: int | slice) -> LogItem | list[LogItem]:
        """Return entries by position, not by index."""
        return self._log[item]

    def add(self, command: bytes, idx: int, term: int) -> None:
        """Append an entry."""
        if idx != self.last_index + 1:
            msg = f"entry {idx} cannot follow {self.last_index}"
            raise LogForked(msg)
        self.append(command, term)

    def setRaftCommitIndex(self, index: int) -> None:
        """Note the commit index."""
        self.set_commit(index)

    def getRaftCommitIndex(self) -> int:
        """Return the commit index that a start may rely on."""
        return self.commit_index

    def setCurrentTerm(self, term: int, voted_for: str | None) -> None:
        """Store a term and a vote."""
        self.set_term(term, voted_for)

    def getCurrentTerm(self) -> int:
        """Return the stored term."""
        return self.stored_term

    def getVotedForNodeId(self) -> str | None:
        """Return the stored vote."""
        return self.vote

    def onOneSecondTimer(self) -> None:
        """Do nothing: nothing waits for a timer here."""


def adopt_journals() -> None:
    """Make the engine take a ready `EngineJournal` as its `journalFile` (it has no parameter)."""
    stock = pysyncobj.syncobj.createJournal
    if getattr(stock, "takes_ready_journals", False):
        return

    def create(journal_file: object = None) -> pysyncobj.journal.Journal:
        ready = isinstance(journal_file, EngineJournal)
        return journal_file if ready else stock(journal_file)  # type: ignore[return-value]  # told by isinstance

    create.takes_ready_journals = True  # type: ignore[attr-defined]  # a mark
    pysyncobj.syncobj.createJournal = create
