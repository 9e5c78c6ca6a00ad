"""S18, S20: a journal of 0.1.0 is given its tail on a disk that is full, or fills up meanwhile.

Whatever fails, at whatever byte: this version reads all of it afterwards, and 0.1.0 does as long as
the first checkpoint is not there. So an operator can free some space and start either one.
"""

from __future__ import annotations

import errno
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.storage.disk.folder import Folder
from holdfast.storage.errors import DirectoryRefused, JournalFailed, Refusal
from holdfast.storage.journal.commit_mark import TAIL_MARK_FILE, CommitMark, read_mark
from holdfast.storage.journal.journal import Entry, HardState, JournalBatch, JournalImage
from holdfast.storage.journal.journal_reader import read_journal
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.journal.tail_file import BLOCK
from holdfast.storage.journal.tailed_journal import TailedJournal
from storage.full_disks import FullFolder, files_limited

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.storage.disk.folder import Files

SMALL, LARGE = 4 * BLOCK, 256 * BLOCK
"""A tail whose files are smaller than the environment, and larger: the other one finds no room."""
NEW = JournalBatch(append=(Entry(41, 1, b"new"),))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A journal as 0.1.0 left it: some entries were cut, so that pages wait to be used again."""
    path = tmp_path / "old"
    LmdbJournal.create(path)
    journal = LmdbJournal(path)
    journal.load()
    for first in range(1, 40, 4):
        batch = tuple(Entry(n, 1, b"payload" * 100) for n in range(first, first + 4))
        journal.commit(JournalBatch(append=batch, hard_state=HardState(1, "a")))
    journal.commit(JournalBatch(commit_index=40))
    journal.commit(JournalBatch(cut_to=(20, 1)))
    journal.close()
    return path


@contextmanager
def opened(path: Path, files: Files, file_bytes: int) -> Iterator[TailedJournal]:
    """As a node opens it, with files of another size."""
    mark = CommitMark(path, TAIL_MARK_FILE)
    journal = TailedJournal(
        path,
        LmdbJournal(path),
        files,
        mark,
        ThreadPoolExecutor(1),
        known=read_mark(path, TAIL_MARK_FILE),
        file_bytes=file_bytes,
    )
    try:
        yield journal
    finally:
        journal.close()


def adopted(path: Path, files: Files, file_bytes: int) -> bool:
    """Start on a journal of 0.1.0 and commit; return whether the commit was acknowledged."""
    with opened(path, files, file_bytes) as journal:
        try:
            journal.load()
            journal.commit(NEW)
        except JournalFailed as failed:
            if failed.disk_full or failed.code == errno.EIO:
                return False  # LMDB calls a write that ended half-way an IO error
            raise
        return True


def as_0_1_0_reads(path: Path) -> JournalImage | None:
    """What a version without tails finds; None if it refuses the directory."""
    journal = LmdbJournal(path)
    try:
        return journal.load()
    except DirectoryRefused as refused:
        if refused.refusal is Refusal.NEWER_SCHEMA:
            return None
        raise
    finally:
        journal.close()


def check(path: Path, before: JournalImage, *, acknowledged: bool, told: str) -> bool:
    """Both versions read what they may; then there is room. Return whether 0.1.0 reads it."""
    by_old, by_new = as_0_1_0_reads(path), read_journal(path)

    assert by_old in {None, before}, told
    assert by_new == before or by_new.entries == (*before.entries, *NEW.append), told
    assert not acknowledged or (by_old is None and by_new != before), told
    with opened(path, Folder(path), SMALL) as journal:
        assert journal.load() == by_new, told
        journal.commit(JournalBatch(commit_index=40))
    return by_old is not None


def limits(environment_bytes: int, file_bytes: int) -> list[int]:
    """In the middle and at the end of each page, and each block at both ends of a file."""
    most = max(environment_bytes, file_bytes) + 8 * BLOCK
    ends = range(file_bytes - 2 * BLOCK, file_bytes + 4 * BLOCK, BLOCK)
    return sorted({*range(0, 4 * BLOCK, BLOCK), *range(0, most, 4 * BLOCK), *ends})


@pytest.mark.parametrize("file_bytes", [SMALL, LARGE])
def test_s20_no_limit_on_files_leaves_a_journal_that_nobody_reads(
    old: Path, tmp_path: Path, file_bytes: int
) -> None:
    """LMDB's pages, the tail's zeros, its head and its first batch: any may be the one too much."""
    before, path = read_journal(old), tmp_path / "raft"
    seen = set[tuple[bool, bool]]()
    for most in limits((old / "data.mdb").stat().st_size, file_bytes):
        shutil.copytree(old, path)
        with files_limited(most):
            acknowledged = adopted(path, Folder(path), file_bytes)
        reads = check(path, before, acknowledged=acknowledged, told=f"limit {most}")
        seen.add((acknowledged, reads))
        shutil.rmtree(path)

    assert (False, True) in seen, "some limits were too low to adopt it"
    assert (True, False) in seen, "some were high enough"


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_s20_a_disk_that_is_full_at_any_operation_leaves_a_journal_that_somebody_reads(
    old: Path, tmp_path: Path
) -> None:
    """Between two steps as well: a file without a name, a file without a checkpoint.

    Nothing stays open: a node may meet a full disk again and again.
    """
    before, path = read_journal(old), tmp_path / "raft"
    seen = list[tuple[bool, bool]]()
    while not seen or not seen[-1][0]:
        fails_at = len(seen) + 1
        shutil.copytree(old, path)
        told, open_before = f"operation {fails_at}", open_files()
        acknowledged = adopted(path, FullFolder(path, fails_at), SMALL)
        assert open_files() == open_before, told
        seen.append((acknowledged, check(path, before, acknowledged=acknowledged, told=told)))
        shutil.rmtree(path)

    assert seen[:3] == [(False, True)] * 3, "its file is made, headed and named before a checkpoint"
    assert seen[-1] == (True, False)


def test_s20_0_1_0_goes_on_where_an_adoption_found_no_room(old: Path) -> None:
    """What the attempt left behind is in nobody's way, now or at the next attempt."""
    before = read_journal(old)
    assert not adopted(old, FullFolder(old, 3), SMALL)
    alone = LmdbJournal(old)
    assert alone.load() == before
    alone.commit(NEW)
    alone.close()

    with opened(old, Folder(old), SMALL) as journal:
        assert journal.load().entries == (*before.entries, *NEW.append)
