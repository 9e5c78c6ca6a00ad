"""What every journal must do, whoever wrote it: subclass a suite and give it a `disk`.

`JournalSuite` is the contract of `holdfast.storage.journal.journal`. `JournalGuardSuite` adds the
refusals by which our own journals stop a caller that would lose acknowledged entries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import pytest

from holdfast.storage.errors import WriteRefused
from holdfast.storage.journal.journal import (
    Entry,
    HardState,
    Identity,
    Journal,
    JournalBatch,
    JournalImage,
    NotedMembership,
)

WHO = Identity("cluster-1", "node-1", "disk-1", "forming")


class JournalDisk(ABC):
    """What outlives a journal object."""

    @abstractmethod
    def open(self) -> Journal:
        """Open a journal, not loaded yet, on what the disk holds."""


def entries(first: int, last: int, term: int = 1) -> tuple[Entry, ...]:
    return tuple(Entry(i, term, f"payload {i} of {term}".encode()) for i in range(first, last + 1))


def reopened(disk: JournalDisk, journal: Journal) -> JournalImage:
    """What the next process finds."""
    journal.close()
    again = disk.open()
    image = again.load()
    again.close()
    return image


def opened(disk: JournalDisk, *batches: JournalBatch) -> Journal:
    journal = disk.open()
    journal.load()
    for batch in batches:
        journal.commit(batch)
    return journal


def held(disk: JournalDisk, *batches: JournalBatch) -> JournalImage:
    return reopened(disk, opened(disk, *batches))


class JournalSuite(ABC):
    """The contract."""

    @pytest.fixture
    @abstractmethod
    def disk(self) -> JournalDisk:
        """An empty disk."""

    def test_a_new_journal_is_empty(self, disk: JournalDisk) -> None:
        assert held(disk) == JournalImage()

    def test_entries_are_found_again_in_order(self, disk: JournalDisk) -> None:
        image = held(disk, JournalBatch(append=entries(1, 3)), JournalBatch(append=entries(4, 4)))

        assert image.entries == entries(1, 4)

    def test_payloads_of_every_size_are_found_again(self, disk: JournalDisk) -> None:
        """From none, over LMDB's page boundary, to the largest entry that S7 allows."""
        sizes = [0, 1, 2000, 4096, 70_000, 8 * 1024 * 1024]
        batch = tuple(Entry(n, 1, bytes([n]) * size) for n, size in enumerate(sizes, start=1))

        assert held(disk, JournalBatch(append=batch)).entries == batch

    def test_term_and_vote_are_found_again(self, disk: JournalDisk) -> None:
        """Raft 3.4: a node that forgets its vote can vote twice in a term."""
        image = held(disk, JournalBatch(hard_state=HardState(7, "node-2")))

        assert image.hard_state == HardState(7, "node-2")

    def test_an_empty_name_is_not_the_same_as_no_vote(self, disk: JournalDisk) -> None:
        assert held(disk, JournalBatch(hard_state=HardState(7))).hard_state.voted_for is None

    def test_identity_is_found_again(self, disk: JournalDisk) -> None:
        """S19, S10 b: who this disk is, who formed the cluster, what was promised."""
        who = replace(WHO, stage="member", formed=(("a", "x"), ("b", "y")), promise_ms=800)

        assert held(disk, JournalBatch(identity=WHO), JournalBatch(identity=who)).identity == who

    def test_the_newest_membership_is_found_again(self, disk: JournalDisk) -> None:
        """S25 a: what was cut off or came in a snapshot is in no entry any more."""
        cut = JournalBatch(cut_to=(3, 1), membership=NotedMembership(2, "A, B"))

        image = held(disk, JournalBatch(append=entries(1, 3)), cut, JournalBatch(commit_index=3))

        assert image.membership == NotedMembership(2, "A, B")

    def test_a_membership_outlives_a_reset(self, disk: JournalDisk) -> None:
        """S25 a: it is noted before the snapshot that has it is installed."""
        note = JournalBatch(membership=NotedMembership(80, "A, B"))

        image = held(disk, note, JournalBatch(reset_to=(90, 6)))

        assert image.membership == NotedMembership(80, "A, B")

    def test_a_conflict_is_replaced_in_one_batch(self, disk: JournalDisk) -> None:
        conflict = JournalBatch(truncate_from=3, append=entries(3, 3, term=2))

        image = held(disk, JournalBatch(append=entries(1, 5)), conflict)

        assert image.entries == entries(1, 2) + entries(3, 3, term=2)

    def test_a_cut_leaves_its_entry_as_anchor(self, disk: JournalDisk) -> None:
        """E-4: what follows the cut is not rewritten, so it cannot be lost."""
        cut = JournalBatch(cut_to=(3, 1), commit_index=3)

        image = held(disk, JournalBatch(append=entries(1, 5)), cut)

        assert (image.anchor, image.entries) == ((3, 1), entries(4, 5))

    def test_a_cut_of_everything_is_continued_behind_the_anchor(self, disk: JournalDisk) -> None:
        cut = JournalBatch(cut_to=(2, 1), commit_index=2)

        image = held(
            disk, JournalBatch(append=entries(1, 2)), cut, JournalBatch(append=entries(3, 3))
        )

        assert (image.anchor, image.entries) == ((2, 1), entries(3, 3))

    def test_entries_may_be_appended_and_cut_in_one_batch(self, disk: JournalDisk) -> None:
        image = held(disk, JournalBatch(append=entries(1, 4), cut_to=(3, 1), commit_index=3))

        assert (image.anchor, image.entries) == ((3, 1), entries(4, 4))

    def test_a_reset_forgets_all_and_continues_elsewhere(self, disk: JournalDisk) -> None:
        reset = JournalBatch(reset_to=(90, 6), append=entries(91, 92, term=7), commit_index=90)

        image = held(disk, JournalBatch(append=entries(1, 5)), reset)

        assert (image.anchor, image.entries) == ((90, 6), entries(91, 92, term=7))

    def test_the_commit_index_is_found_again(self, disk: JournalDisk) -> None:
        assert held(disk, JournalBatch(append=entries(1, 3), commit_index=2)).commit_index == 2

    def test_what_a_batch_does_not_name_stays(self, disk: JournalDisk) -> None:
        first = JournalBatch(
            append=entries(1, 2), hard_state=HardState(3, "b"), commit_index=1, identity=WHO
        )

        image = held(disk, first, JournalBatch(append=entries(3, 3)))

        assert image == JournalImage(entries(1, 3), (0, 0), HardState(3, "b"), 1, WHO)


NOTED = NotedMembership(2, "A, B")

REFUSED = [
    ("a gap", JournalBatch(append=entries(5, 5))),
    ("an entry twice", JournalBatch(append=entries(3, 3))),
    ("a term that falls", JournalBatch(append=entries(4, 4, term=0))),
    ("a conflict below commit", JournalBatch(truncate_from=2)),
    ("a reset below commit", JournalBatch(reset_to=(1, 1))),
    ("a cut behind the end", JournalBatch(cut_to=(4, 1))),
    ("a cut at another term", JournalBatch(cut_to=(2, 9))),
    ("a commit behind the end", JournalBatch(commit_index=4)),
    ("an older term", JournalBatch(hard_state=HardState(4, "a"))),
    ("a second vote in a term", JournalBatch(hard_state=HardState(5, "b"))),
    ("a vote taken back", JournalBatch(hard_state=HardState(5))),
    ("another cluster", JournalBatch(identity=replace(WHO, cluster_id="cluster-2"))),
    ("another node", JournalBatch(identity=replace(WHO, node_id="node-2"))),
    ("an older membership", JournalBatch(membership=NotedMembership(1, "A"))),
]


class JournalGuardSuite(JournalSuite):
    """The contract, and the refusals."""

    @pytest.mark.parametrize("batch", [b for _, b in REFUSED], ids=[name for name, _ in REFUSED])
    def test_a_batch_that_would_lose_something_is_refused_whole(
        self, disk: JournalDisk, batch: JournalBatch
    ) -> None:
        """Truncating below commit and its like stop the node; nothing is written."""
        before = JournalBatch(
            append=entries(1, 3),
            hard_state=HardState(5, "a"),
            commit_index=2,
            identity=WHO,
            membership=NOTED,
        )
        journal = opened(disk, before)

        with pytest.raises(WriteRefused):
            journal.commit(batch)

        expected = JournalImage(entries(1, 3), (0, 0), HardState(5, "a"), 2, WHO, NOTED)
        assert reopened(disk, journal) == expected

    def test_the_commit_index_never_falls(self, disk: JournalDisk) -> None:
        image = held(
            disk, JournalBatch(append=entries(1, 3), commit_index=3), JournalBatch(commit_index=1)
        )

        assert image.commit_index == 3

    def test_what_was_cut_away_counts_as_committed(self, disk: JournalDisk) -> None:
        assert held(disk, JournalBatch(reset_to=(9, 2))).commit_index == 9

    def test_a_cut_behind_the_anchor_changes_nothing(self, disk: JournalDisk) -> None:
        cut = JournalBatch(cut_to=(3, 1))

        image = held(
            disk, JournalBatch(append=entries(1, 4)), cut, JournalBatch(cut_to=(2, 1)), cut
        )

        assert (image.anchor, image.entries) == ((3, 1), entries(4, 4))

    def test_a_commit_before_the_load_is_a_mistake(self, disk: JournalDisk) -> None:
        with pytest.raises(RuntimeError, match="loaded"):
            disk.open().commit(JournalBatch(append=entries(1, 1)))
