"""The files of the journal's tail as one process writes them: append, prepare, use again, remove.

A file has its name only when its head is durable; until then it is `tail.new`. So every file with
a name is a whole one, and a crash leaves at most that leftover. Knows no batch's content.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.storage.journal.tail_file import (
    BLOCK,
    batch_bytes,
    file_head,
    file_name,
    mark_of,
    pack_batch,
)
from holdfast.storage.journal.tail_recovery import tail_serials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.storage.disk.folder import File, Files

FILE_BYTES = 8 * 1024 * 1024
"""The size of a file. State is snapshotted, and the journal cut, about twice as often as that."""
FILES_AT_REST = 2
"""How many files a tail has: the one in use and the next one."""
PREALLOCATED_BYTES = FILES_AT_REST * FILE_BYTES

_UNNAMED = "tail.new"


class TailFile:
    """The file that batches are appended to; empty when it is opened."""

    def __init__(self, file: File, journal_id: bytes, serial: int, size: int) -> None:
        self.serial = serial
        self._file, self._size = file, size
        self._mark = mark_of(journal_id, serial)
        self._at = BLOCK

    def fits(self, pieces: Sequence[bytes]) -> bool:
        """Return whether a batch finds room. In an empty file it does: the file grows."""
        return self._at == BLOCK or self._at + batch_bytes(pieces) <= self._size

    @property
    def has_grown(self) -> bool:
        """Whether a batch was longer than the whole file."""
        return self._at > self._size

    def append(self, sequence: int, pieces: Sequence[bytes]) -> None:
        """Write a batch and sync it: one write, one sync. Raises OSError."""
        packed = pack_batch(self._mark, sequence, pieces)
        self._file.write(self._at, packed)
        self._file.sync()
        self._at += len(packed)

    def close(self) -> None:
        """Release the file."""
        self._file.close()


class TailFiles:
    """The tail's files in their folder. Every method raises OSError."""

    def __init__(self, files: Files, journal_id: bytes, file_bytes: int = FILE_BYTES) -> None:
        self._files, self._journal_id, self._file_bytes = files, journal_id, file_bytes

    def open(self, serial: int) -> TailFile:
        """Open an existing file in which nothing was written yet."""
        file = self._files.open(file_name(serial))
        return TailFile(file, self._journal_id, serial, self._file_bytes)

    def prepare(self, serial: int) -> TailFile:
        """Make a file of zeros."""
        try:
            self._files.create(_UNNAMED, self._file_bytes)
            return self._named(serial)
        except OSError:
            remove_leftover(self._files)  # it takes up room that others need, if it was that
            raise

    def use_again(self, file: TailFile, serial: int) -> TailFile:
        """Make a new file of one that is closed and not needed any more.

        What it holds carries the mark of its old serial number, so nobody takes it for batches.
        """
        if file.has_grown:
            self._files.remove(file_name(file.serial))
            return self.prepare(serial)
        self._files.rename(file_name(file.serial), _UNNAMED)
        return self._named(serial)

    def keep_only(self, first: int, last: int) -> None:
        """Remove all files but these. The newest goes first, so that no gap is ever left."""
        for serial in reversed(tail_serials(self._files)):
            if not first <= serial <= last:
                self._files.remove(file_name(serial))

    def _named(self, serial: int) -> TailFile:
        file = self._files.open(_UNNAMED)
        try:
            file.write(0, file_head(self._journal_id, serial))
            file.sync()
            self._files.rename(_UNNAMED, file_name(serial))
        except OSError:
            file.close()
            raise
        return TailFile(file, self._journal_id, serial, self._file_bytes)


def remove_leftover(files: Files) -> None:
    """Remove the file without a name that a crash or a failure has left, if there is one."""
    with suppress(OSError):
        files.remove(_UNNAMED)
