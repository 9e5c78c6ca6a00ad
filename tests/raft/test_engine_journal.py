"""The journal adapter: what is folded into one batch, and what a start finds (E-3, E-4)."""

from __future__ import annotations

from random import Random

import pytest

from harness.journal import ModelJournal
from holdfast.raft.api import EngineStopped, SnapshotMark
from holdfast.raft.core.log import NO_OP, QUIET_SECONDS, LogForked
from holdfast.raft.pysyncobj.journal_adapter import EngineJournal
from holdfast.raft.pysyncobj.overlay import _join_log_and_state
from holdfast.storage.journal.journal import Entry, Identity, JournalBatch
from holdfast.storage.journal.memory_journal import MemoryJournal


def held(journal: EngineJournal) -> list[tuple[bytes, int, int]]:
    return journal[1:]


def test_a_new_log_begins_behind_an_anchor_that_is_no_entry() -> None:
    """The engine adds an entry of its own to an empty journal; this one never looks empty."""
    journal = EngineJournal(ModelJournal())
    assert len(journal) == 1
    assert journal[-1] == (NO_OP, 0, 0)
    assert journal.is_empty
    assert journal.append(b"x", 3) == 1


def test_nothing_is_durable_before_the_flush_and_all_of_it_after() -> None:
    disk = ModelJournal()
    journal = EngineJournal(disk)
    journal.setCurrentTerm(4, "B")
    journal.append(b"x", 4)
    assert disk.commits == 0
    journal.flush(journal.changes)
    assert disk.commits == 1
    journal.flush(journal.changes)
    assert disk.commits == 1, "nothing to do, nothing to sync"
    again = EngineJournal(disk)
    assert held(again) == [(b"x", 1, 4)]
    assert (again.getCurrentTerm(), again.getVotedForNodeId()) == (4, "B")


def test_a_conflict_and_what_follows_it_are_one_batch() -> None:
    """E-4: at no moment does the disk hold neither the old entries nor the new ones."""
    disk = ModelJournal()
    journal = EngineJournal(disk)
    for _ in range(5):
        journal.append(b"old", 1)
    journal.flush(journal.changes)
    batches: list[JournalBatch] = []
    disk.before_commit = batches.append
    journal.truncate_from(3)
    journal.append(b"new", 2)
    journal.append(b"newer", 2)
    journal.truncate_from(4)
    journal.append(b"newest", 3)
    journal.flush(journal.changes)
    assert len(batches) == 1
    assert batches[0].truncate_from == 3
    assert [e.payload for e in batches[0].append] == [b"new", b"newest"]
    assert held(EngineJournal(disk)) == held(journal)


def test_below_the_commit_index_nothing_is_cut() -> None:
    journal = EngineJournal(ModelJournal())
    journal.append(b"x", 1)
    journal.append(b"y", 1)
    journal.set_commit(1)
    with pytest.raises(LogForked, match="index 1"):
        journal.truncate_from(1)
    journal.truncate_from(2)
    assert held(journal) == [(b"x", 1, 1)]


def test_a_gap_is_refused() -> None:
    journal = EngineJournal(ModelJournal())
    with pytest.raises(LogForked):
        journal.add(b"x", 2, 1)


def test_the_identity_is_durable_with_the_next_flush() -> None:
    """S19: before anything that depends on it leaves the node."""
    disk = ModelJournal()
    journal = EngineJournal(disk)
    identity = Identity("c", "A", "1", "forming")
    journal.set_identity(identity)
    assert not journal.is_flushed
    journal.flush(journal.changes)
    assert EngineJournal(disk).identity == identity


def test_s21_the_second_transaction_is_written_once_and_changes_nothing() -> None:
    """It is one that a damaged meta page may roll back; a third one would be for nothing."""
    disk = ModelJournal()
    journal = EngineJournal(disk)
    journal.append(b"x", 1)
    for step in range(5):
        journal.flush(journal.changes)
        journal.keep_twice(now=step * QUIET_SECONDS)
    assert disk.commits == 2
    assert held(EngineJournal(disk)) == [(b"x", 1, 1)]


def test_s21_the_second_commit_says_nothing_that_waits_for_a_flush() -> None:
    """An install is behind a quiet second: the disk does not hold what is committed in memory."""
    journal = EngineJournal(MemoryJournal())
    journal.append(b"x", 1)
    journal.flush(journal.changes)
    journal.keep_twice(now=10.0)
    journal.rebase(100, 1)
    journal.keep_twice(now=10.0 + QUIET_SECONDS)
    journal.flush(journal.changes)
    assert journal.anchor_index == 100


@pytest.mark.parametrize("seed", range(20))
def test_memory_and_disk_agree_after_every_flush(seed: int) -> None:
    """A thousand random changes in each seed: a start finds what the engine saw."""
    chance, disk = Random(seed), ModelJournal()
    journal = EngineJournal(disk)
    for step in range(1000):
        low = journal.getRaftCommitIndex()
        choice = chance.random()
        if choice < 0.55:
            journal.append(f"{step}".encode(), step)
        elif choice < 0.7 and journal.last_index > low:
            journal.truncate_from(chance.randint(low + 1, journal.last_index))
        elif choice < 0.8:
            journal.set_commit(chance.randint(low, journal.last_index))
        elif choice < 0.88:
            journal.cut_to(chance.randint(0, low))
        elif choice < 0.92:
            index = chance.randint(low, journal.last_index + 5)
            held_term = journal.term_at(index)
            keep = held_term is not None and chance.random() < 0.5
            journal.rebase(index, held_term if keep and held_term is not None else step)
        else:
            journal.flush(journal.changes)
            again = EngineJournal(disk)
            assert again[:] == journal[:], f"seed {seed}, step {step}"


def test_a_state_that_contradicts_a_committed_entry_stops_the_node() -> None:
    """S18: only what nobody acknowledged may make way for an installed state."""
    model = ModelJournal()
    model.load()
    model.commit(JournalBatch(append=[Entry(i, 3, NO_OP) for i in range(1, 9)], commit_index=5))
    journal = EngineJournal(model)

    with pytest.raises(EngineStopped, match="entry 5 is committed in the journal in term 3"):
        _join_log_and_state(journal, SnapshotMark(5, 2))
    assert journal.last_index == 8

    _join_log_and_state(journal, SnapshotMark(6, 4))
    assert (journal.anchor_index, journal.last_index) == (6, 6)
