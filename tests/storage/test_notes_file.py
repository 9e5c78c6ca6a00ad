"""S21: notes beside the journal are what was written last and whole, or nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.storage.journal.notes_file import NOTES_NAME, NotesFile

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def reopened(folder: Path) -> bytes:
    """What the next process reads."""
    notes = NotesFile(folder)
    content = notes.read()
    notes.close()
    return content


def written(folder: Path, *contents: bytes) -> None:
    notes = NotesFile(folder)
    for content in contents:
        notes.write(content)
    notes.close()


def test_the_last_notes_are_read_however_long_the_earlier_ones_were(tmp_path: Path) -> None:
    assert reopened(tmp_path) == b""
    written(tmp_path, b"a longer text than the next", b"short")
    assert reopened(tmp_path) == b"short"
    written(tmp_path, b"")
    assert reopened(tmp_path) == b""


def test_damaged_or_torn_notes_are_none(tmp_path: Path) -> None:
    """A bit that flipped, and every length that a power cut may leave."""
    written(tmp_path, b"remembered")
    whole = (tmp_path / NOTES_NAME).read_bytes()
    for length in range(len(whole)):
        (tmp_path / NOTES_NAME).write_bytes(whole[:length])
        assert reopened(tmp_path) == b""
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1
        (tmp_path / NOTES_NAME).write_bytes(flipped)
        assert reopened(tmp_path) == b""


def test_notes_that_cannot_be_written_are_told_once_and_stop_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_arguments: object) -> int:
        raise OSError(28, "No space left on device")

    notes = NotesFile(tmp_path)
    monkeypatch.setattr(os, "pwrite", full)
    notes.write(b"a")
    notes.write(b"b")
    notes.close()

    assert [str(tmp_path / NOTES_NAME) in r.getMessage() for r in caplog.records] == [True]
