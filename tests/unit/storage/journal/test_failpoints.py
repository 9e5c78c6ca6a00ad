"""The test hook of a node's syncs: off without its file, and a failure is final (S21's fsync)."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.storage.errors import JournalFailed
from holdfast.storage.journal.failpoints import FailpointJournal, Failpoints, read_failpoints
from holdfast.storage.journal.journal import JournalBatch
from holdfast.storage.journal.memory_journal import MemoryJournal


def journal(tmp_path: Path) -> tuple[FailpointJournal, MemoryJournal, Path]:
    inside, file = MemoryJournal(), tmp_path / "failpoints"
    made = FailpointJournal(tmp_path, inside, file)
    made.load()
    return made, inside, file


def test_without_a_file_nothing_is_wrong(tmp_path: Path) -> None:
    made, inside, file = journal(tmp_path)
    made.commit(JournalBatch(commit_index=0))

    assert read_failpoints(file) == Failpoints()
    assert inside.load().commit_index == 0


def test_a_failure_writes_nothing_and_is_never_taken_back(tmp_path: Path) -> None:
    """After a failed fsync the kernel may have dropped the pages: no second try is a success."""
    made, inside, file = journal(tmp_path)
    file.write_text('{"sync_fails": true}')
    with pytest.raises(JournalFailed):
        made.commit(JournalBatch(commit_index=0))
    file.unlink()
    with pytest.raises(JournalFailed):
        made.commit(JournalBatch(commit_index=0))

    assert inside.load().entries == ()


def test_a_delay_is_read_in_milliseconds_and_bounded(tmp_path: Path) -> None:
    file = tmp_path / "failpoints"
    file.write_text('{"sync_delay_ms": 250}')
    assert read_failpoints(file) == Failpoints(delay_ms=250)
    file.write_text('{"sync_delay_ms": 99999999}')
    assert read_failpoints(file) == Failpoints(delay_ms=60_000)


def test_a_wish_that_is_not_known_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "failpoints"
    file.write_text('{"sync_fail": true}')
    with pytest.raises(ValueError, match="sync_fails"):
        read_failpoints(file)
