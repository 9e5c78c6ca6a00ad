"""S21: a second place that knows which transaction was the last, so that a lost one is missed.

LMDB has two meta pages and no checksum over them. A flip in the newer one's number makes LMDB take
the older one: the last transaction is gone, and what is left is sound in itself. So the number of
each committed transaction is also written, without a sync, to a file beside the environment: that
survives the end of the process, however it ends, and a power cut as far as the kernel had written
it. It is never ahead of the environment unless the environment lost something. Knows numbers and a
file; nothing of LMDB.
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
        """The transaction with this number is durable.

        A mark that cannot be written says too little from now on, never anything wrong: the node
        goes on, and its peers' memory still guards it.
        """
        self._file.write(_mark(number))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def read_mark(folder: Path) -> int:
    """The number of the last transaction that is known to have been durable; 0 if none is.

    A mark that is torn or damaged says nothing: it is a second opinion, not a record.
    """
    try:
        number, checksum = _MARK.unpack((folder / MARK_FILE).read_bytes())
    except (FileNotFoundError, struct.error):
        return 0
    return int(number) if checksum == crc32(_NUMBER.pack(number)) else 0


def _mark(number: int) -> bytes:
    return _MARK.pack(number, crc32(_NUMBER.pack(number)))
