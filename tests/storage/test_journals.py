"""The conformance suite over each journal that we have, and what only the one on disk can do."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from harness.journal import ModelJournal
from holdfast.storage.disk.records import pack_named
from holdfast.storage.errors import DirectoryRefused, JournalDamaged, JournalFailed, Refusal
from holdfast.storage.journal.journal import Journal, JournalBatch
from holdfast.storage.journal.lmdb_image import SCHEMA, SCHEMA_TAILED
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.journal.memory_journal import MemoryDisk, MemoryJournal
from holdfast.storage.journal.tail_file import BLOCK
from holdfast.storage.journal.tailed_journal import open_journal
from holdfast.storage.state.state_store import StateStore
from storage.full_disks import files_limited
from storage.journal_suite import (
    JournalDisk,
    JournalGuardSuite,
    JournalSuite,
    entries,
    opened,
    reopened,
)
from storage.tail_power import Machine, Started

if TYPE_CHECKING:
    from collections.abc import Iterator


class MemoryDisks(JournalDisk):
    def __init__(self) -> None:
        self._disk = MemoryDisk()

    def open(self) -> Journal:
        return MemoryJournal(self._disk)


class LmdbDisk(JournalDisk):
    def __init__(self, path: Path) -> None:
        self.path = path
        LmdbJournal.create(path)

    def open(self) -> Journal:
        return LmdbJournal(self.path)


class TailedDisk(JournalDisk):
    def __init__(self, path: Path) -> None:
        self.path = path
        LmdbJournal.create(path)

    def open(self) -> Journal:
        return open_journal(self.path)


class ModelTailDisk(JournalDisk):
    """The tail over the model disk of the power cuts, with files that are full at once."""

    def __init__(self) -> None:
        self._machine = Machine(Random(0))

    def open(self) -> Journal:
        return Started(self._machine).journal


class ModelDisk(JournalDisk):
    """The simulator's journal is its own disk."""

    def __init__(self) -> None:
        self._journal = ModelJournal()

    def open(self) -> Journal:
        return self._journal


class TestModelJournal(JournalSuite):
    """What the simulations run on keeps the same contract as LMDB."""

    @pytest.fixture
    def disk(self) -> JournalDisk:
        return ModelDisk()


class TestMemoryJournal(JournalGuardSuite):
    @pytest.fixture
    def disk(self) -> JournalDisk:
        return MemoryDisks()


class TestLmdbJournal(JournalGuardSuite):
    @pytest.fixture
    def disk(self, tmp_path: Path) -> JournalDisk:
        return LmdbDisk(tmp_path / "raft")


class TestTailedJournal(JournalGuardSuite):
    @pytest.fixture
    def disk(self, tmp_path: Path) -> JournalDisk:
        return TailedDisk(tmp_path / "raft")


class TestTailOfSmallFiles(JournalGuardSuite):
    @pytest.fixture
    def disk(self) -> JournalDisk:
        return ModelTailDisk()


@contextmanager
def disk_replaced_by(device: str, data_file: Path) -> Iterator[None]:
    """Let the process's writes to `data_file` go to a device instead."""
    descriptor = next(
        number
        for number in [int(link.name) for link in Path("/proc/self/fd").iterdir()]
        if os.path.realpath(f"/proc/self/fd/{number}") == str(data_file)
        and fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
    )
    kept, other = os.dup(descriptor), os.open(device, os.O_RDWR)
    os.dup2(other, descriptor, inheritable=False)
    try:
        yield
    finally:
        os.dup2(kept, descriptor, inheritable=False)
        os.close(kept)
        os.close(other)


@pytest.mark.parametrize(
    ("device", "code", "disk_full"),
    [
        pytest.param("/dev/full", errno.ENOSPC, True, id="no room"),
        # The kernel takes writes to /dev/null and has no sync for it: write well, fsync not.
        pytest.param("/dev/null", errno.EINVAL, False, id="failed fsync"),
    ],
)
def test_a_batch_that_may_not_be_durable_fails_for_good(
    tmp_path: Path, device: str, code: int, *, disk_full: bool
) -> None:
    """A failed fsync stops the node; a second try could call lost pages a success."""
    disk = LmdbDisk(tmp_path / "raft")
    journal = opened(disk, JournalBatch(append=entries(1, 2)))

    with disk_replaced_by(device, disk.path / "data.mdb"), pytest.raises(JournalFailed) as failure:
        journal.commit(JournalBatch(append=entries(3, 3)))

    assert (failure.value.code, failure.value.disk_full) == (code, disk_full)
    with pytest.raises(JournalFailed):
        journal.commit(JournalBatch(append=entries(3, 3)))
    journal.close()
    assert disk.open().load().entries == entries(1, 2)


@pytest.mark.parametrize("kind", [LmdbDisk, TailedDisk])
def test_s20_a_limit_on_the_size_of_files_is_want_of_room(
    tmp_path: Path, kind: type[LmdbDisk | TailedDisk]
) -> None:
    """RLIMIT_FSIZE: nothing of the batch is kept; the sentence says which limit to raise."""
    disk = kind(tmp_path / "raft")
    journal = opened(disk, JournalBatch(append=entries(1, 2)))

    # None of LMDB's pages can be written; of the tail's file, the blocks so far.
    with files_limited(2 * BLOCK), pytest.raises(JournalFailed, match="ulimit -f") as failure:
        journal.commit(JournalBatch(append=entries(3, 3)))

    assert (failure.value.code, failure.value.disk_full) == (errno.EFBIG, True)
    assert reopened(disk, journal).entries == entries(1, 2)


def test_a_full_map_is_want_of_room(tmp_path: Path) -> None:
    """S20: the map is far above need; should it end all the same, the node says so and stops."""
    LmdbJournal.create(tmp_path / "raft")
    journal = LmdbJournal(tmp_path / "raft", map_bytes=256 * 1024)
    journal.load()

    with pytest.raises(JournalFailed) as failure:
        journal.commit(JournalBatch(append=entries(1, 20_000)))

    assert failure.value.disk_full


def test_an_empty_file_is_damage_not_a_new_journal(tmp_path: Path) -> None:
    """S19: LMDB would start a new environment in a file of no bytes."""
    disk = LmdbDisk(tmp_path / "raft")
    (disk.path / "data.mdb").write_bytes(b"")

    with pytest.raises(JournalDamaged):
        disk.open().load()


def test_a_missing_entry_is_named(tmp_path: Path) -> None:
    """S21: whole records with a hole between them are damage."""
    disk = LmdbDisk(tmp_path / "raft")
    journal = LmdbJournal(disk.path)
    journal.load()
    journal.commit(JournalBatch(append=entries(1, 5)))
    with journal._environment.begin(write=True) as txn:
        txn.delete((3).to_bytes(8, "big"), db=journal._databases["entries"])

    with pytest.raises(JournalDamaged) as damage:
        journal.load()

    assert damage.value.index == 3


def test_a_lost_tail_is_found_by_the_commit_index(tmp_path: Path) -> None:
    """S21: committed entries that are no longer there must not be taken for never written."""
    journal = LmdbJournal(LmdbDisk(tmp_path / "raft").path)
    journal.load()
    journal.commit(JournalBatch(append=entries(1, 5), commit_index=5))
    with journal._environment.begin(write=True) as txn:
        txn.delete((5).to_bytes(8, "big"), db=journal._databases["entries"])

    with pytest.raises(JournalDamaged, match="5"):
        journal.load()


def test_a_journal_of_a_newer_version_is_refused_not_damaged(tmp_path: Path) -> None:
    journal = LmdbJournal(LmdbDisk(tmp_path / "raft").path)
    with journal._environment.begin(write=True) as txn:
        newer = pack_named(SCHEMA, SCHEMA_TAILED + 1)
        txn.put(SCHEMA, newer, db=journal._databases["named"])

    with pytest.raises(DirectoryRefused) as refused:
        journal.load()

    assert refused.value.refusal is Refusal.NEWER_SCHEMA


def test_both_environments_sync_data_and_meta_page_at_each_commit(tmp_path: Path) -> None:
    """E-5: an acknowledgement rests on these; the power-cut tests take the order for granted."""
    StateStore.create(tmp_path / "state")
    environments = [
        LmdbJournal(LmdbDisk(tmp_path / "raft").path)._environment,
        StateStore(tmp_path / "state")._shared._current.environment,
    ]

    for environment in environments:
        flags = environment.flags()
        assert (flags["sync"], flags["metasync"]) == (True, True)
        assert (flags["writemap"], flags["map_async"]) == (False, False)
