"""What a sequence of batches comes to, as one batch: what the helper writes into the environment.

Entries that were appended and then truncated or cut off again are not in it, so most of what
passes through the tail is never written a second time. Knows no storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.storage.journal.journal import JournalBatch

if TYPE_CHECKING:
    from holdfast.storage.journal.journal import Entry, HardState, Identity, NotedMembership
    from holdfast.storage.journal.rules import Outline


class NetEffect:
    """Collects batches that follow each other; each must be one that `rules.advance` allows."""

    def __init__(self) -> None:
        self._reset: tuple[int, int] | None = None
        self._truncate: int | None = None
        self._entries: list[Entry] = []
        self._cut: tuple[int, int] | None = None
        self._hard: HardState | None = None
        self._commit = 0
        self._identity: Identity | None = None
        self._membership: NotedMembership | None = None

    def add(self, batch: JournalBatch) -> None:
        """Add the next batch, in the order in which its fields are carried out."""
        if batch.reset_to is not None:
            self._reset, self._truncate, self._cut = batch.reset_to, None, None
            self._entries = []
        if batch.truncate_from is not None:
            self._drop_from(batch.truncate_from)
        self._entries += batch.append
        if batch.cut_to is not None and (self._cut is None or batch.cut_to > self._cut):
            self._cut = batch.cut_to
            self._drop_through(batch.cut_to[0])
        self._hard = batch.hard_state or self._hard
        self._commit = max(batch.commit_index or 0, self._commit)
        self._identity = batch.identity or self._identity
        self._membership = batch.membership or self._membership

    def batch(self, before: Outline) -> JournalBatch:
        """Return the batch that does the same to a journal with the outline `before`."""
        reset, truncate, cut = self._reset, self._truncate, self._cut
        anchor, last = (before.anchor[0], before.last[0]) if reset is None else (reset[0], reset[0])
        stays = last if truncate is None else min(last, truncate - 1)
        if cut is not None and anchor < cut[0] and stays <= cut[0]:
            # Of what the journal has, nothing stays: it goes on behind the cut.
            reset, truncate, cut = cut, None, None
        return JournalBatch(
            reset_to=reset,
            truncate_from=truncate,
            append=tuple(self._entries),
            cut_to=cut,
            hard_state=self._hard,
            commit_index=self._commit,
            identity=self._identity,
            membership=self._membership,
        )

    def _drop_from(self, first: int) -> None:
        while self._entries and self._entries[-1].index >= first:
            self._entries.pop()
        self._truncate = min(first, self._truncate or first)

    def _drop_through(self, last: int) -> None:
        if self._entries:
            del self._entries[: max(0, last - self._entries[0].index + 1)]
