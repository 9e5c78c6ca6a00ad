"""What many batches come to: the same image, without what came and went in between."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.storage.journal.journal import Entry, HardState, JournalBatch
from holdfast.storage.journal.memory_journal import MemoryDisk, MemoryJournal
from holdfast.storage.journal.net_effect import NetEffect
from holdfast.storage.journal.rules import Outline, Terms
from storage.histories import History

EMPTY = Outline()


def entries(first: int, last: int, term: int = 1) -> tuple[Entry, ...]:
    return tuple(Entry(index, term, b"%d" % index) for index in range(first, last + 1))


def net(before: Outline, *batches: JournalBatch) -> JournalBatch:
    effect = NetEffect()
    for batch in batches:
        effect.add(batch)
    return effect.batch(before)


@pytest.mark.parametrize("seed", range(40))
def test_any_run_of_batches_comes_to_the_same_image(seed: int) -> None:
    """S18: the environment is carried from checkpoint to checkpoint; seed in the test's name."""
    random = Random(seed)
    history = History(random, 60)
    disk = MemoryDisk()
    environment = MemoryJournal(disk)
    environment.load()
    done = 0
    while done < len(history.batches):
        run = history.batches[done : done + random.randint(1, 12)]
        environment.commit(net(disk.outline, *run))
        done += len(run)

        assert environment.load() == history.images[done]


@pytest.mark.parametrize("seed", range(20))
def test_the_terms_in_memory_are_those_of_the_entries(seed: int) -> None:
    """S2's like for the journal: a cut at another term is refused, so terms must be right."""
    history = History(Random(seed), 60)
    terms = Terms(history.images[0])
    for batch, image in zip(history.batches, history.images[1:], strict=True):
        terms.follow(batch)
        for known in (terms, Terms(image)):
            assert [known.at(e.index) for e in image.entries] == [e.term for e in image.entries]


def test_what_was_cut_in_between_is_never_written() -> None:
    """Most of what goes through the tail is cut behind a snapshot before its file is full."""
    cut = JournalBatch(cut_to=(90, 1), commit_index=95)

    batch = net(EMPTY, JournalBatch(append=entries(1, 100)), cut)

    assert (batch.reset_to, batch.cut_to) == ((90, 1), None)
    assert batch.append == entries(91, 100)
    assert batch.commit_index == 95


def test_what_was_truncated_in_between_is_never_written() -> None:
    conflict = JournalBatch(truncate_from=5, append=entries(5, 6, term=2))

    batch = net(EMPTY, JournalBatch(append=entries(1, 100)), conflict)

    assert batch.append == entries(1, 4) + entries(5, 6, term=2)


def test_a_cut_that_leaves_some_of_the_environment_stays_a_cut() -> None:
    before = Outline(anchor=(0, 0), last=(10, 1), commit_index=8)

    batch = net(before, JournalBatch(append=entries(11, 12)), JournalBatch(cut_to=(6, 1)))

    assert (batch.reset_to, batch.cut_to) == (None, (6, 1))
    assert batch.append == entries(11, 12)


def test_the_last_vote_counts_and_the_highest_commit_index() -> None:
    votes = [JournalBatch(hard_state=HardState(term, "a"), commit_index=0) for term in (1, 2)]

    batch = net(EMPTY, JournalBatch(append=entries(1, 3), commit_index=2), *votes)

    assert batch.hard_state == HardState(2, "a")
    assert batch.commit_index == 2
