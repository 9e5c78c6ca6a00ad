"""S21: flips in LMDB's newest meta page, which LMDB itself does not notice."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from holdfast.storage.directory.check import verify_directory, walk_directory
from holdfast.storage.disk.environment import open_environment
from holdfast.storage.journal.commit_mark import MARK_FILE, CommitMark, read_mark
from holdfast.storage.journal.journal import Entry, JournalBatch
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.state.state_store import StateStore
from storage.power import META_PAGES, PAGE

if TYPE_CHECKING:
    from pathlib import Path

LAST = 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Eight entries, each in a transaction of its own; the process ended without a word."""
    LmdbJournal.create(tmp_path / "raft")
    StateStore.create(tmp_path / "state")
    journal = LmdbJournal(tmp_path / "raft")
    journal.load()
    for index in range(1, LAST + 1):
        journal.commit(JournalBatch(append=[Entry(index, 1, b"acknowledged")], commit_index=index))
    journal.close()
    return tmp_path


def last_entry(path: Path) -> int:
    journal = LmdbJournal(path / "raft")
    try:
        return journal.load().entries[-1].index
    finally:
        journal.close()


def number_of_the_newest_meta_page(path: Path) -> tuple[int, int]:
    """Where the file has the newest transaction's number, and the number."""
    with open_environment(path / "raft", readonly=True) as environment:
        newest = environment.info()["last_txnid"]
    metas = (path / "raft" / "data.mdb").read_bytes()[: META_PAGES * PAGE]
    words = struct.unpack(f"<{len(metas) // 8}Q", metas)
    half = len(words) // 2  # the two pages hold the last two numbers at the same place
    places = [at for at in range(half) if {words[at], words[half + at]} == {newest, newest - 1}]
    assert len(places) == 1
    at = places[0] if words[places[0]] == newest else half + places[0]
    return 8 * at, newest


def flips(path: Path) -> list[bytes]:
    """The file with each bit of that number flipped."""
    whole = (path / "raft" / "data.mdb").read_bytes()
    at, _ = number_of_the_newest_meta_page(path)
    flipped = []
    for bit in range(64):
        data = bytearray(whole)
        data[at + bit // 8] ^= 1 << bit % 8
        flipped.append(bytes(data))
    return flipped


def unseen_losses(path: Path) -> int:
    """How many flips cost the last acknowledged entry, and the check says that all is well."""
    unseen = 0
    for data in flips(path):
        (path / "raft" / "data.mdb").write_bytes(data)
        if walk_directory(path).sound:
            unseen += last_entry(path) < LAST
    return unseen


def test_s21_no_flip_in_the_newest_number_rolls_back_an_entry_unseen(path: Path) -> None:
    """Some of them do roll the journal back: each of those is damage."""
    assert unseen_losses(path) == 0


def test_s21_without_the_mark_such_a_flip_is_not_seen(path: Path) -> None:
    """This is what the rule is there for; after a power cut the peers' memory must do it."""
    mark = path / "raft" / MARK_FILE
    unseen = 0
    whole = (path / "raft" / "data.mdb").read_bytes()
    for data in flips(path)[:8]:
        mark.unlink(missing_ok=True)
        (path / "raft" / "data.mdb").write_bytes(data)
        unseen += walk_directory(path).sound and last_entry(path) < LAST
    (path / "raft" / "data.mdb").write_bytes(whole)
    assert unseen > 0


def test_s21_an_older_file_in_the_place_of_the_journal_is_damage(path: Path) -> None:
    """FAULT-31, an old copy put back: it has forgotten votes and acks as a flip has."""
    old = (path / "raft" / "data.mdb").read_bytes()
    journal = LmdbJournal(path / "raft")
    journal.load()
    journal.commit(JournalBatch(append=[Entry(LAST + 1, 1, b"x")], commit_index=LAST))
    journal.close()
    (path / "raft" / "data.mdb").write_bytes(old)

    verdict = verify_directory(path)

    assert not verdict.sound
    assert "was durable" in verdict.reason


@pytest.mark.parametrize("content", [None, b"", b"\x00" * 12, b"\xff" * 12, b"\x00" * 11])
def test_s21_a_mark_that_cannot_be_read_says_nothing(path: Path, content: bytes | None) -> None:
    """A power cut may tear it, and an older version did not write it: the journal decides."""
    mark = path / "raft" / MARK_FILE
    mark.unlink()
    if content is not None:
        mark.write_bytes(content)
    assert read_mark(path / "raft") == 0
    assert verify_directory(path).sound
    assert last_entry(path) == LAST


def test_s21_a_transaction_without_a_change_of_its_own_still_counts(path: Path) -> None:
    """The second commit after a quiet time must move LMDB on to the other meta page."""
    _, before = number_of_the_newest_meta_page(path)
    journal = LmdbJournal(path / "raft")
    journal.load()
    journal.commit(JournalBatch(commit_index=LAST))
    journal.close()
    assert number_of_the_newest_meta_page(path)[1] == before + 1


def test_a_mark_is_what_was_noted_last(tmp_path: Path) -> None:
    """Also over the end of a process."""
    mark = CommitMark(tmp_path)
    for number in (1, 2, 1 << 40):
        mark.note(number)
        assert read_mark(tmp_path) == number
    mark.close()
    CommitMark(tmp_path).close()
    assert read_mark(tmp_path) == 1 << 40
