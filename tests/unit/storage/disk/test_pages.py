"""The look at an LMDB file's pages accuses no file that LMDB itself has written (S21)."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

import lmdb
import pytest

from holdfast.storage.disk.environment import DATA_FILE
from holdfast.storage.disk.pages import fault_of_pages
from holdfast.storage.journal.journal import Entry, JournalBatch
from holdfast.storage.journal.lmdb_journal import LmdbJournal

if TYPE_CHECKING:
    from pathlib import Path

LARGE: Final = b"v" * 20_000
ROUNDS: Final = 25


def written(path: Path, *values: bytes | None) -> Path:
    """A file whose last transaction gives one key these values, None: takes it away."""
    with lmdb.open(str(path), map_size=1 << 26) as environment:
        for _ in range(5):  # frees pages, which LMDB hands out from here on
            with environment.begin(write=True) as txn:
                for number in range(50):
                    txn.put(b"other %d" % number, LARGE[:300])
        with environment.begin(write=True) as txn:
            for value in values:
                if value is None:
                    txn.delete(b"key")
                else:
                    txn.put(b"key", value)
    return path / DATA_FILE


def test_a_file_that_ends_before_a_page_that_nobody_has_written_is_sound(tmp_path: Path) -> None:
    """S21: a transaction may take a page behind all others, and give it back unwritten."""
    file = written(tmp_path / "environment", 100 * LARGE, None)

    assert fault_of_pages(file) == ""


def test_a_value_that_its_transaction_made_smaller_is_sound(tmp_path: Path) -> None:
    """S21: LMDB leaves such a value where it is, on more pages than it needs."""
    assert fault_of_pages(written(tmp_path / "environment", LARGE, LARGE[:9_000])) == ""


@pytest.mark.parametrize("seed", [2, 3])
def test_no_journal_that_was_appended_to_and_cut_is_accused(tmp_path: Path, seed: int) -> None:
    """S21: a node that is told of damage where there is none gives up its disk, and its vote."""
    random, folder = Random(seed), tmp_path / "raft"
    LmdbJournal.create(folder)
    journal = LmdbJournal(folder)
    journal.load()
    first, last = 1, 0
    for _ in range(ROUNDS):
        more = random.choice((1, 8, 60, 300))
        added = [Entry(last + 1 + n, 1, bytes(random.randrange(20, 1_500))) for n in range(more)]
        last += more
        cut = random.randrange(first, last + 1) if random.random() < 0.4 else None
        journal.commit(
            JournalBatch(append=added, cut_to=None if cut is None else (cut, 1), commit_index=cut)
        )
        first = first if cut is None else cut + 1
        assert fault_of_pages(folder / DATA_FILE) == ""
    journal.close()


def test_a_file_that_was_cut_off_is_damaged(tmp_path: Path) -> None:
    """S21: what a transaction has written is missing."""
    file = written(tmp_path / "environment", LARGE)
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)

    assert fault_of_pages(file) != ""
