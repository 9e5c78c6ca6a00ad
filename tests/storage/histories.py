"""Random histories of a journal: batches that follow each other as a node's do, from one seed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.storage.journal.journal import (
    Entry,
    HardState,
    Identity,
    JournalBatch,
    JournalImage,
    NotedMembership,
)
from holdfast.storage.journal.memory_journal import MemoryJournal

if TYPE_CHECKING:
    from random import Random

WHO = Identity("cluster-1", "node-1", "disk-1", "member", (("node-1", "disk-1"),), 800)
PAYLOAD_BYTES = (0, 1, 60, 400, 1_200, 6_000)


class History:
    """A node's batches, and the image after each of them by the model in memory."""

    def __init__(self, random: Random, length: int) -> None:
        self._random, self._model = random, MemoryJournal()
        self.images: list[JournalImage] = [self._model.load()]
        self.batches: list[JournalBatch] = []
        while len(self.batches) < length:
            batch = self._next(self.images[-1])
            self._model.commit(batch)
            self.batches.append(batch)
            self.images.append(self._model.load())

    def _next(self, image: JournalImage) -> JournalBatch:
        rare = (self._reset, self._identify, self._note_membership)
        kind = self._random.choices(
            (self._append, self._conflict, self._cut, self._vote, *rare),
            weights=(12, 2, 3, 2, 1, 1, 1),
        )[0]
        batch = kind(image)
        if self._random.random() < 0.7:
            return batch
        return replace(batch, append=batch.append or self._entries(image, batch))

    def _append(self, image: JournalImage) -> JournalBatch:
        commit = image.entries[-1].index if image.entries else image.anchor[0]
        return JournalBatch(append=self._entries(image, JournalBatch()), commit_index=commit)

    def _conflict(self, image: JournalImage) -> JournalBatch:
        """Another leader has other entries behind the commit index."""
        open_ = [entry for entry in image.entries if entry.index > image.commit_index]
        if not open_:
            return self._append(image)
        batch = JournalBatch(truncate_from=self._random.choice(open_).index)
        return replace(batch, append=self._entries(image, batch))

    def _cut(self, image: JournalImage) -> JournalBatch:
        """A snapshot covers some of what is committed; at times all of it."""
        held = [entry for entry in image.entries if entry.index <= image.commit_index]
        if not held:
            return self._append(image)
        entry = self._random.choice([self._random.choice(held), held[-1]])
        return JournalBatch(cut_to=(entry.index, entry.term))

    def _reset(self, image: JournalImage) -> JournalBatch:
        """A snapshot of a leader that is far ahead was installed."""
        index, term = self._last(image)
        return JournalBatch(reset_to=(index + self._random.randint(1, 50), term))

    def _vote(self, image: JournalImage) -> JournalBatch:
        vote = self._random.choice(("node-1", "node-2", "", None))
        return JournalBatch(hard_state=HardState(image.hard_state.term + 1, vote))

    def _identify(self, _image: JournalImage) -> JournalBatch:
        return JournalBatch(identity=replace(WHO, promise_ms=self._random.randint(0, 9_999)))

    def _note_membership(self, image: JournalImage) -> JournalBatch:
        """Entries of membership are cut off, or a snapshot tells of a newer one."""
        before = image.membership.index if image.membership else 0
        names = ", ".join(self._random.sample("ABCDE", 3))
        return JournalBatch(membership=NotedMembership(before + self._random.randint(0, 9), names))

    def _entries(self, image: JournalImage, before: JournalBatch) -> tuple[Entry, ...]:
        index, term = self._last(image)
        if before.reset_to is not None:
            index, term = before.reset_to
        elif before.truncate_from is not None:
            index = before.truncate_from - 1
        term = max(1, term) + (self._random.random() < 0.2)
        return tuple(
            Entry(index + place, term, self._random.randbytes(self._random.choice(PAYLOAD_BYTES)))
            for place in range(1, self._random.randint(1, 4) + 1)
        )

    def _last(self, image: JournalImage) -> tuple[int, int]:
        if image.entries:
            return image.entries[-1].index, image.entries[-1].term
        return image.anchor
