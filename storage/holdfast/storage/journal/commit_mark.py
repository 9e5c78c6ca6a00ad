"""S21: a second record of the last transaction's number, so that a lost transaction is noticed.

LMDB has two meta pages and no checksum over them. A flipped bit in the newer page's number makes
LMDB take the older page: the last transaction is gone, and the rest looks sound. So the number of
each committed transaction is also written, without a sync, to a file beside the environment. The
file survives any end of the process, and a power cut as far as the kernel had written it. It is
ahead of the environment only if the environment lost something. Knows numbers and a file, no LMDB.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING
from zlib import crc32

from holdfast.storage.disk.unsynced_file import UnsyncedFile

if TYPE_CHECKING:
    from pathlib import Path

MARK_FILE = "last-commit"
_NUMBER = struct.Struct(">Q")
_MARK = struct.Struct(">QI")


class CommitMark:
    """The mark of one environment, for the process that writes to it."""

    def __init__(self, folder: Path) -> None:
        """Open or make it. Raises OSError."""
        self._file = UnsyncedFile(folder / MARK_FILE)

    def note(self, number: int) -> None:
        """Record that the transaction with this number is durable.

        If that fails, the mark is too old from now on, but never wrong: the node goes on, and its
        peers still remember its acknowledgements.
        """
        self._file.write(_mark(number))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_mark(folder: Path) -> int:
    """Read the number of the last transaction that is known to have been durable; 0 if unknown.

    A torn or damaged mark counts as unknown.
    """
    try:
        number, checksum = _MARK.unpack((folder / MARK_FILE).read_bytes())
    except (FileNotFoundError, struct.error):
        return 0
    return int(number) if checksum == crc32(_NUMBER.pack(number)) else 0


def _mark(number: int) -> bytes:
    return _MARK.pack(number, crc32(_NUMBER.pack(number)))
