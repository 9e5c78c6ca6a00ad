"""S21: after every single flipped bit a start finds everything, or says that the disk is damaged.

Replay: the seed below. The named exception: a flip in LMDB's newest meta page can take back the
last transaction unseen. In the journal a mark beside it notices; in the state it is an older
snapshot, which the journal tells.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from harness.children import environment
from holdfast.storage.journal.journal import Entry, HardState, JournalBatch
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from storage.flipping import DAMAGED, MENDED, OLDER, SAME, SPOILED, WRONG
from storage.power import META_PAGES, PAGE
from storage.stores import filled

if TYPE_CHECKING:
    from pathlib import Path

FLIPS = 1_200
FLIPS_OF_HEADS = 240
SEED = 21


Flip = tuple[str, int, int, str]
"""File, byte, bit, and what the start found."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a node has after a while, with unused pages in both files."""
    path = tmp_path_factory.mktemp("flips")
    LmdbJournal.create(path / "raft")
    journal = LmdbJournal(path / "raft")
    journal.load()
    for first in range(1, 40, 3):
        numbers = range(first, first + 3)
        entries = [Entry(n, 1, b"payload %d " % n * (1 + n * 7 % 60)) for n in numbers]
        hard = HardState(1, "n1")
        journal.commit(JournalBatch(append=entries, hard_state=hard, commit_index=first))
    journal.close()
    filled(path / "state", range(1, 15)).close()
    return path


@pytest.fixture(scope="module")
def flipped(directory: Path) -> list[Flip]:
    """Every flip and what the start after it found."""
    return flip(directory, FLIPS, "anywhere")


def flip(directory: Path, count: int, where: str) -> list[Flip]:
    arguments = [str(directory), str(SEED), str(count), where]
    command = [sys.executable, "-m", "storage.flipping", *arguments]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=True, timeout=600
    )
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def test_no_flip_is_taken_for_truth(flipped: list[Flip]) -> None:
    """Everything that was acknowledged is there, or the node rebuilds from its peers."""
    assert len(flipped) == FLIPS
    assert [flip for flip in flipped if flip[3] == WRONG] == []


def test_only_a_meta_page_of_the_state_can_take_a_transaction_back(
    flipped: list[Flip],
) -> None:
    """S21's exception, and its guard: the journal never goes back unnoticed."""
    older = [flip for flip in flipped if flip[3] == OLDER]

    assert {name for name, *_ in older} <= {"state"}
    assert all(at < META_PAGES * PAGE for _, at, *_ in older)


def test_flips_were_tried_where_they_hurt(flipped: list[Flip]) -> None:
    """A run whose flips hit only unused bytes would show nothing."""
    found = Counter((name, what) for name, _, _, what in flipped)

    for name in ("raft", "state"):
        assert found[name, DAMAGED] > FLIPS // 40, found
        assert found[name, SAME] > 0, found


def test_no_flip_lets_a_node_write_over_what_it_has(directory: Path) -> None:
    """What LMDB says of its pages, only a write uses: which are unused, where the room in one is.

    A page that is used and said to be unused is written over by the next commit, without a word.
    If no record has been hurt yet, the node goes on with a copy of them, and keeps its vote.
    """
    found = flip(directory, FLIPS_OF_HEADS, "heads")
    counted = Counter(what for *_, what in found)

    assert [each for each in found if each[3] in {WRONG, SPOILED}] == []
    assert counted[DAMAGED] > 0, counted
    assert counted[MENDED] > FLIPS_OF_HEADS // 2, counted
    assert counted[SAME] > 0, counted
