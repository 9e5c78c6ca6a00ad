"""The rules of what a batch may change, as a pure function over the journal's outline.

Every implementation calls `advance` before it writes: a batch that would drop an acknowledged
entry, leave a gap or take back a vote is refused before anything is written. Knows no storage.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holdfast.storage.errors import WriteRefused
from holdfast.storage.journal.journal import HardState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.storage.journal.journal import (
        Entry,
        Identity,
        JournalBatch,
        JournalImage,
        NotedMembership,
    )

TermAt = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Outline:
    """A journal without its payloads. `anchor` and `last` are (index, term).

    `anchor[0] <= commit_index <= last[0]`: entries that were cut off were committed, and a node
    cannot know the commit of an entry that it does not hold.
    """

    anchor: tuple[int, int] = (0, 0)
    last: tuple[int, int] = (0, 0)
    commit_index: int = 0
    hard_state: HardState = field(default_factory=HardState)
    identity: Identity | None = None
    membership: NotedMembership | None = None


def outline_of(image: JournalImage) -> Outline:
    """Compute the outline of an image."""
    tail = image.entries[-1] if image.entries else None
    last = image.anchor if tail is None else (tail.index, tail.term)
    told = (image.commit_index, image.hard_state, image.identity, image.membership)
    return Outline(image.anchor, last, *told)


class Terms:
    """The terms of the entries that a journal holds, in memory: where each term begins."""

    def __init__(self, image: JournalImage) -> None:
        self._firsts, self._terms = list[int](), list[int]()
        self._take(image.entries)

    def at(self, index: int) -> int:
        """Return the term of an entry that the journal holds."""
        return self._terms[bisect_right(self._firsts, index) - 1]

    def follow(self, batch: JournalBatch) -> None:
        """Take the changes of a batch that `advance` allowed."""
        if batch.reset_to is not None:
            self._drop_from(0)
        if batch.truncate_from is not None:
            self._drop_from(batch.truncate_from)
        self._take(batch.append)

    def _take(self, entries: Sequence[Entry]) -> None:
        last = self._terms[-1] if self._terms else -1
        if entries and entries[-1].term == last:
            return  # terms never fall, so all of them have it
        for entry in entries:
            if entry.term != last:
                last = entry.term
                self._firsts.append(entry.index)
                self._terms.append(last)

    def _drop_from(self, first: int) -> None:
        while self._firsts and self._firsts[-1] >= first:
            self._firsts.pop()
            self._terms.pop()


def fault_of(outline: Outline) -> str | None:
    """Describe what is impossible about an outline, in a sentence; None if nothing is."""
    index = outline.last[0]
    if outline.commit_index > index:
        return f"entry {outline.commit_index} was committed, but the last one found is {index}"
    if outline.commit_index < outline.anchor[0]:
        return f"entries were cut up to {outline.anchor[0]}, but {outline.commit_index} committed"
    return None


def advance(outline: Outline, batch: JournalBatch, term_at: TermAt) -> Outline:
    """Compute the outline after the batch. Raises `WriteRefused` if it contradicts the journal.

    `term_at(index)` is the term of an entry that the journal holds before the batch.
    """
    if batch.reset_to is not None:
        outline = _reset(outline, batch.reset_to)
    if batch.truncate_from is not None:
        outline = _truncate(outline, batch.truncate_from, term_at)
    if batch.append:
        outline = _append(outline, batch)
    if batch.cut_to is not None:
        outline = _cut(outline, batch, batch.cut_to, term_at)
    if batch.hard_state is not None:
        outline = _vote(outline, batch.hard_state)
    if batch.commit_index is not None:
        outline = _commit(outline, batch.commit_index)
    if batch.identity is not None:
        outline = _identify(outline, batch.identity)
    if batch.membership is not None:
        outline = _note_membership(outline, batch.membership)
    fault = fault_of(outline)
    if fault is not None:
        raise WriteRefused(f"after the batch the journal would be unsound: {fault}")
    return outline


def _reset(outline: Outline, anchor: tuple[int, int]) -> Outline:
    if anchor[0] < outline.commit_index:
        raise WriteRefused(
            f"a reset to {anchor[0]} would forget entries committed up to {outline.commit_index}"
        )
    if anchor[1] < outline.anchor[1]:
        raise WriteRefused(f"a reset to term {anchor[1]} goes back behind term {outline.anchor[1]}")
    return replace(outline, anchor=anchor, last=anchor, commit_index=anchor[0])


def _truncate(outline: Outline, first: int, term_at: TermAt) -> Outline:
    if first <= outline.commit_index:
        raise WriteRefused(
            f"truncating from {first} would forget entries committed up to {outline.commit_index}"
        )
    if first > outline.last[0]:
        return outline
    before = first - 1
    term = outline.anchor[1] if before == outline.anchor[0] else term_at(before)
    return replace(outline, last=(before, term))


def _append(outline: Outline, batch: JournalBatch) -> Outline:
    index, term = outline.last
    for entry in batch.append:
        if entry.index != index + 1:
            raise WriteRefused(f"entry {entry.index} does not follow on entry {index}")
        if entry.term < term:
            raise WriteRefused(f"entry {entry.index} of term {entry.term} follows term {term}")
        index, term = entry.index, entry.term
    return replace(outline, last=(index, term))


def _cut(outline: Outline, batch: JournalBatch, cut: tuple[int, int], term_at: TermAt) -> Outline:
    index, term = cut
    if index <= outline.anchor[0]:
        return outline
    if index > outline.last[0]:
        raise WriteRefused(f"a cut at {index} lies behind the last entry {outline.last[0]}")
    appended = {entry.index: entry.term for entry in batch.append}
    stored = appended[index] if index in appended else term_at(index)
    if stored != term:
        raise WriteRefused(f"a cut at {index} says term {term}, the entry is of term {stored}")
    return replace(outline, anchor=cut, commit_index=max(index, outline.commit_index))


def _vote(outline: Outline, new: HardState) -> Outline:
    old = outline.hard_state
    if new.term < old.term:
        raise WriteRefused(f"the term would fall from {old.term} to {new.term}")
    if new.term == old.term and old.voted_for not in {None, new.voted_for}:
        raise WriteRefused(
            f"the vote of term {new.term} would change from {old.voted_for} to {new.voted_for}"
        )
    return replace(outline, hard_state=new)


def _commit(outline: Outline, index: int) -> Outline:
    if index > outline.last[0]:
        raise WriteRefused(f"commit {index} lies behind the last entry {outline.last[0]}")
    return replace(outline, commit_index=max(index, outline.commit_index))


def _identify(outline: Outline, new: Identity) -> Outline:
    old = outline.identity
    if old is not None and (old.cluster_id, old.node_id) != (new.cluster_id, new.node_id):
        raise WriteRefused(
            f"the disk of {old.node_id} in {old.cluster_id} would become"
            f" {new.node_id}'s in {new.cluster_id}"
        )
    return replace(outline, identity=new)


def _note_membership(outline: Outline, new: NotedMembership) -> Outline:
    old = outline.membership
    if old is not None and new.index < old.index:
        raise WriteRefused(
            f"the membership of entry {old.index} would be followed by that of entry {new.index}"
        )
    return replace(outline, membership=new)
