"""The journal's tail at work: what a batch costs, the helper behind it, and how a tail begins."""

from __future__ import annotations

import errno
import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random
from threading import Event
from typing import TYPE_CHECKING

import pytest

from holdfast.storage.disk.folder import Folder
from holdfast.storage.errors import (
    DirectoryRefused,
    JournalDamaged,
    JournalFailed,
    Refusal,
    WriteRefused,
)
from holdfast.storage.journal import tailed_journal
from holdfast.storage.journal.commit_mark import TAIL_MARK_FILE, CommitMark, read_mark
from holdfast.storage.journal.journal import Entry, HardState, JournalBatch, JournalImage
from holdfast.storage.journal.journal_reader import read_journal
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.journal.tail_file import BLOCK, file_name
from holdfast.storage.journal.tailed_journal import TailedJournal, open_journal
from storage.histories import History
from storage.tail_power import (
    FILE_BYTES,
    LateHelper,
    Machine,
    ModelEnvironment,
    ModelFiles,
    Started,
    entry,
    loaded,
)

if TYPE_CHECKING:
    from holdfast.storage.journal.net_effect import NetEffect
    from holdfast.storage.journal.tail_recovery import Checkpoint

BATCHES_A_FILE = FILE_BYTES // BLOCK - 1


# --- what a batch costs ----------------------------------------------------------------------


def test_a_batch_is_one_write_and_one_sync(machine: Machine) -> None:
    """Nothing else stands between a proposal and its acknowledgement."""
    started = loaded(machine)
    before = machine.steps

    started.journal.commit(entry(1))

    assert machine.steps - before == 2


def test_a_change_of_file_costs_no_more(machine: Machine) -> None:
    """The next file was made ready behind; the full one is carried out behind."""
    started = loaded(machine)
    for index in range(1, BATCHES_A_FILE + 1):
        started.journal.commit(entry(index))
    before = machine.steps

    started.journal.commit(entry(BATCHES_A_FILE + 1))

    assert machine.steps - before == 2
    assert machine.checkpoint is not None
    assert machine.checkpoint.sequence == 0, "nothing was carried out yet"
    started.helper.run()
    assert machine.checkpoint.sequence == BATCHES_A_FILE


def test_files_are_used_again(machine: Machine) -> None:
    """A long life needs room for two files and no more (S20)."""
    started = loaded(machine)
    for index in range(1, 20 * BATCHES_A_FILE):
        started.journal.commit(entry(index))
        started.helper.run()

    assert machine.durable.keys() == {file_name(20), file_name(21)}
    assert {len(content) for content in machine.durable.values()} == {FILE_BYTES}


def test_a_batch_longer_than_a_file_has_a_file_for_itself(machine: Machine) -> None:
    """S7 allows entries of 8 MiB, and many in a batch; the long file is not kept."""
    started = loaded(machine)
    started.journal.commit(entry(1))
    started.journal.commit(entry(2, 3 * FILE_BYTES))
    started.journal.commit(entry(3))
    started.helper.run()
    started.journal.close()

    assert {len(content) for content in machine.durable.values()} == {FILE_BYTES}
    image = Started(machine).journal.load()
    assert [len(each.payload) for each in image.entries] == [10, 3 * FILE_BYTES, 10]


def test_a_refused_batch_leaves_no_trace(machine: Machine) -> None:
    """A defect of the caller is found before anything is written, and the journal goes on."""
    started = loaded(machine)
    before = machine.steps
    with pytest.raises(WriteRefused):
        started.journal.commit(entry(2))

    assert machine.steps == before
    started.journal.commit(entry(1))


# --- the helper ------------------------------------------------------------------------------


def real(path: Path, helper: ThreadPoolExecutor, environment: LmdbJournal) -> TailedJournal:
    """Small files on the file system, and a thread."""
    return TailedJournal(
        path,
        environment,
        Folder(path),
        CommitMark(path, TAIL_MARK_FILE),
        helper,
        known=read_mark(path, TAIL_MARK_FILE),
        file_bytes=FILE_BYTES,
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_thread_writes_behind_while_batches_come(tmp_path: Path, seed: int) -> None:
    """The same histories as in the model, over files, threads and LMDB; opened again and again."""
    history = History(Random(seed), 120)
    path = tmp_path / "raft"
    LmdbJournal.create(path)
    for first in range(0, 120, 40):
        journal = real(path, ThreadPoolExecutor(1), LmdbJournal(path))
        assert journal.load() == history.images[first]
        for batch in history.batches[first : first + 40]:
            journal.commit(batch)
        journal.close()
        assert read_journal(path) == history.images[first + 40]


def test_a_journal_waits_for_a_helper_a_whole_file_behind_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The bound on what is not in the environment yet: one full file beside the one in use."""
    monkeypatch.setattr(tailed_journal, "WAIT_TOLD_SECONDS", 0.0)
    path, may_go_on = tmp_path / "raft", Event()
    LmdbJournal.create(path)

    class Slow(LmdbJournal):
        def checkpoint(self, net: NetEffect, checkpoint: Checkpoint) -> None:
            if checkpoint.file:
                assert may_go_on.wait(30)
            super().checkpoint(net, checkpoint)

    journal = real(path, ThreadPoolExecutor(1), Slow(path))
    journal.load()
    for index in range(1, 2 * BATCHES_A_FILE + 1):
        journal.commit(entry(index))
    with ThreadPoolExecutor(1) as other:
        waiting: Future[None] = other.submit(journal.commit, entry(2 * BATCHES_A_FILE + 1))
        assert not waiting.done()
        may_go_on.set()
        waiting.result(30)
    journal.close()

    assert "its files were full" in caplog.text
    assert len(read_journal(path).entries) == 2 * BATCHES_A_FILE + 1


class Failing(ModelEnvironment):
    """An environment whose disk fails from the second checkpoint on."""

    def checkpoint(self, net: NetEffect, checkpoint: Checkpoint) -> None:
        if checkpoint.file:
            raise JournalFailed(Path("raft"), "the disk says EIO", errno.EIO)
        super().checkpoint(net, checkpoint)


def test_a_failure_behind_fails_the_next_batch_for_good(machine: Machine) -> None:
    """Nothing is swallowed: what the helper cannot write, the node stops for."""
    started = Started(machine)
    started.journal._environment = Failing(machine)
    started.journal.load()
    started.helper.run()
    for index in range(1, BATCHES_A_FILE + 2):
        started.journal.commit(entry(index))
    started.helper.run()
    before = machine.steps

    for _ in range(2):
        with pytest.raises(JournalFailed, match="EIO"):
            started.journal.commit(entry(BATCHES_A_FILE + 2))

    assert machine.steps == before
    assert len(Started(machine).journal.load().entries) == BATCHES_A_FILE + 1


class FullDisk(ModelFiles):
    """A disk on which no file can be made, as long as it is full."""

    full, code = True, errno.ENOSPC

    def create(self, name: str, size: int) -> None:
        if self.full and len(self.names()) > 0:
            super().create(name, size // 2)
            raise OSError(self.code, "No space left on device")
        super().create(name, size)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("room_again", [True, False])
def test_s20_a_disk_without_room_for_the_next_file_is_no_failure_before_it_is_needed(
    machine: Machine, code: int, *, room_again: bool
) -> None:
    """Proposals are refused by the reserve long before; a batch fails only if it has no room.

    A quota, or a limit on the size of the process's files, is raised as space is freed.
    """
    started = Started(machine)
    files = FullDisk(machine)
    files.code = code
    started.journal._files = files
    started.journal.load()
    started.helper.run()
    assert files.names() == [file_name(1)], "what could not be finished takes no room"
    for index in range(1, BATCHES_A_FILE + 1):
        started.journal.commit(entry(index))
    files.full = not room_again

    if room_again:
        started.journal.commit(entry(BATCHES_A_FILE + 1))
    else:
        with pytest.raises(JournalFailed) as failed:
            started.journal.commit(entry(BATCHES_A_FILE + 1))
        assert failed.value.disk_full

    assert len(Started(machine).journal.load().entries) == BATCHES_A_FILE + room_again


# --- how a tail begins, and who may read it -----------------------------------------------------


def used_before(path: Path) -> JournalImage:
    """A journal as 0.1.0 left it."""
    LmdbJournal.create(path)
    journal = LmdbJournal(path)
    journal.load()
    journal.commit(JournalBatch(append=(Entry(1, 1, b"old"),), hard_state=HardState(1, "a")))
    image = journal.load()
    journal.close()
    return image


def test_an_environment_without_a_tail_is_adopted_with_all_it_holds(tmp_path: Path) -> None:
    """A directory of 0.1.0 goes on; there is no way back."""
    before = used_before(tmp_path / "raft")
    journal = open_journal(tmp_path / "raft")
    assert journal.load() == before
    journal.commit(JournalBatch(append=(Entry(2, 1, b"new"),)))
    journal.close()

    assert read_journal(tmp_path / "raft").entries == (Entry(1, 1, b"old"), Entry(2, 1, b"new"))


def test_a_version_without_tails_refuses_it_before_the_first_batch(tmp_path: Path) -> None:
    """It reads the schema first: else it would take the image without the tail for the truth."""
    used_before(tmp_path / "raft")
    journal = open_journal(tmp_path / "raft")
    journal.load()
    journal.close()
    alone = LmdbJournal(tmp_path / "raft")

    with pytest.raises(DirectoryRefused) as refused:
        alone.load()

    alone.close()
    assert refused.value.refusal is Refusal.NEWER_SCHEMA


def test_an_environment_that_forgot_its_tail_is_not_adopted_again(tmp_path: Path) -> None:
    """S21: the mark knows a batch. Found out before anything is written to what is damaged."""
    path = tmp_path / "raft"
    used_before(path)
    mark = CommitMark(path, TAIL_MARK_FILE)
    mark.note(7)
    mark.close()

    with pytest.raises(JournalDamaged, match="batch 7 of its tail was durable"):
        read_journal(path)
    journal = open_journal(path)
    with pytest.raises(JournalDamaged, match="batch 7 of its tail was durable"):
        journal.load()
    journal.close()
    assert not (path / file_name(1)).exists()


def test_a_first_start_that_was_cut_off_is_begun_again(tmp_path: Path) -> None:
    """The first file is there before the first checkpoint, and nobody wrote to it."""
    before = used_before(tmp_path / "raft")
    Folder(tmp_path / "raft").create("tail.new", 100)
    other = tmp_path / "other"
    LmdbJournal.create(other)
    begun = open_journal(other)
    begun.load()
    begun.close()
    (other / file_name(1)).rename(tmp_path / "raft" / file_name(1))

    journal = open_journal(tmp_path / "raft")

    assert journal.load() == before
    journal.close()
    assert not (tmp_path / "raft" / "tail.new").exists()


def test_a_batch_that_the_mark_knows_must_be_there(tmp_path: Path) -> None:
    """S21: a flip in the last batch makes it look torn; the mark beside it tells."""
    path = tmp_path / "raft"
    used_before(path)
    journal = open_journal(path)
    journal.load()
    journal.commit(JournalBatch(append=(Entry(2, 1, b"acknowledged"),)))
    journal.close()
    file = path / file_name(1)
    file.write_bytes(file.read_bytes().replace(b"acknowledged", b"acknowledgeq"))

    with pytest.raises(JournalDamaged, match="batch 1 of its tail was durable"):
        read_journal(path)
    again = open_journal(path)
    with pytest.raises(JournalDamaged, match="batch 1 of its tail was durable"):
        again.load()
    again.close()


def two_files(machine: Machine) -> int:
    """Leave a full file and a newer one, as a kill before the helper ran; return the last number.

    Nothing but the mark says that there was a newer one.
    """
    started = loaded(machine)
    for index in range(1, BATCHES_A_FILE + 3):
        started.journal.commit(entry(index))
    assert sorted(machine.durable) == [file_name(1), file_name(2)]
    return BATCHES_A_FILE + 2


def test_s21_a_missing_newest_file_of_the_tail_is_told_by_the_mark(machine: Machine) -> None:
    """No number is missing between the files that are there, so the mark alone can tell this node.

    If a power cut took the mark as well, the peers remember (tests/raft/test_flipped_tail.py).
    """
    last = two_files(machine)
    del machine.durable[file_name(2)]
    sentence = (
        f"batch {last} of its tail was durable, and the last one found is {BATCHES_A_FILE}: "
        "its newest file is damaged or missing"
    )

    with pytest.raises(JournalDamaged, match=sentence):
        Started(machine).journal.load()


def test_s21_both_files_missing_are_told_without_a_mark(machine: Machine) -> None:
    """The checkpoint says that a file stands behind it, always."""
    two_files(machine)
    machine.durable.clear()
    machine.mark = 0

    with pytest.raises(JournalDamaged, match=f"the file {file_name(1)} of its tail is missing"):
        Started(machine).journal.load()


def test_a_missing_file_in_which_nothing_was_written_is_made_anew(machine: Machine) -> None:
    """Nothing is lost with it; a start that found no room for it leaves the same."""
    started = loaded(machine)
    started.journal.commit(entry(1))
    started.helper.run()
    del machine.durable[file_name(2)]
    again = Started(machine)

    assert len(again.journal.load().entries) == 1
    again.journal.commit(entry(2))


def test_a_helper_that_never_ran_keeps_nothing_from_closing(machine: Machine) -> None:
    started = Started(machine)
    assert isinstance(started.helper, LateHelper)
    started.journal.load()
    started.journal.close()

    assert started.files.opened == []


def test_a_start_makes_the_names_durable_that_it_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S18: a process killed between a rename and its sync leaves a name that may be lost yet."""
    path = tmp_path / "raft"
    used_before(path)
    first = open_journal(path)
    first.load()
    first.close()
    synced: list[str] = []
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    again = open_journal(path)
    again.load()
    again.close()

    assert str(path) in synced
