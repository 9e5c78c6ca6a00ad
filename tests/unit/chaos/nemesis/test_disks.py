"""S21: which flips in a stopped node's journal tail must be told, as `flip-bits` judges them."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TYPE_CHECKING

import pytest

from holdfast.chaos.nemesis.disks import Flips, flips_in_tail, turn_over
from holdfast.chaos.nemesis.journal_tail import acknowledged, tail_files, written
from holdfast.storage.disk.folder import Folder
from holdfast.storage.errors import JournalDamaged
from holdfast.storage.journal.commit_mark import TAIL_MARK_FILE, CommitMark
from holdfast.storage.journal.journal import Entry, JournalBatch
from holdfast.storage.journal.journal_reader import read_journal
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.journal.tail_file import BLOCK
from holdfast.storage.journal.tailed_journal import TailedJournal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE_BYTES = 8 * BLOCK
BATCHES = 18
"""So many that two files are full, and the third, which was used before, is not."""
SEEDS = range(200)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[TailedJournal]:
    """A node's journal after some batches, its files in use."""
    path = tmp_path / "raft"
    LmdbJournal.create(path)
    opened = TailedJournal(
        path,
        LmdbJournal(path),
        Folder(path),
        CommitMark(path, TAIL_MARK_FILE),
        ThreadPoolExecutor(1),
        file_bytes=FILE_BYTES,
    )
    opened.load()
    for index in range(1, BATCHES + 1):
        opened.commit(batch(index))
    opened._helper.submit(int).result(30)  # what was before it in its queue is done
    yield opened
    opened.close()


@pytest.fixture
def killed(journal: TailedJournal, tmp_path: Path) -> Path:
    """What it leaves if its process is killed now."""
    return copied(journal._path, tmp_path / "killed")


def batch(index: int) -> JournalBatch:
    return JournalBatch(append=(Entry(index, 1, b"payload" * (1 + index % 90)),))


def copied(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target


def is_told(path: Path) -> bool:
    try:
        image = read_journal(path)
    except JournalDamaged:
        return True
    assert [entry.index for entry in image.entries] == [*range(1, BATCHES + 1)]
    return False


def test_s21_a_start_tells_of_the_flips_that_must_be_told_and_of_no_others(
    killed: Path, tmp_path: Path
) -> None:
    """Else chaos would call a sound node wrong, or take a node for sound that believes damage."""
    tried = list[bool | None]()
    for seed in SEEDS:
        path = copied(killed, tmp_path / "flipped")
        flips = flips_in_tail(path, Random(seed), 1 + seed % 8)
        turn_over(flips)

        assert is_told(path) == flips.must_be_told, f"seed {seed}: {flips}"
        tried.append(flips.must_be_told)

    assert tried.count(True) > 100
    assert tried.count(False) > 20


def test_every_byte_of_the_tail_is_rightly_judged(killed: Path, tmp_path: Path) -> None:
    """Both sides of each border: heads, bodies, padding, and what is left of an earlier use."""
    spans = acknowledged(killed)
    path = copied(killed, tmp_path / "flipped")
    for file in tail_files(path):
        ours = [span for span in spans if span.file.name == file.name]
        borders = {at for span in ours for at in (span.begin, span.end - 1, span.end)}
        for at in sorted(each for each in borders if each < FILE_BYTES):
            must = any(span.begin <= at < span.end for span in ours)
            flips = Flips(file, [at * 8 + at % 8], must)
            turn_over(flips)
            assert is_told(path) == must, f"byte {at} of {file.name}"
            turn_over(flips)

    assert not is_told(path), "all flips were taken back"


def test_a_batch_that_its_node_never_noted_was_told_to_nobody(killed: Path) -> None:
    """The kill came between the sync and the note, so the batch was not acknowledged yet."""
    before = acknowledged(killed)
    mark = CommitMark(killed, TAIL_MARK_FILE)
    mark.note(BATCHES - 1)
    mark.close()

    assert acknowledged(killed) == before[:-1]


def test_writing_goes_on_where_it_says(journal: TailedJournal) -> None:
    """A limit there leaves the next batch no room."""
    path = journal._path
    at, before = written(path), {file: file.read_bytes() for file in tail_files(path)}
    journal.commit(batch(BATCHES + 1))

    changed = [file for file in tail_files(path) if file.read_bytes() != before[file]]
    assert len(changed) == 1
    now, then = changed[0].read_bytes(), before[changed[0]]
    assert now[:at] == then[:at]
    assert now[at:] != then[at:]
