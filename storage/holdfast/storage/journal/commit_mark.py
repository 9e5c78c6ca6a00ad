"""S21: a second record of the number of what was committed last, so that its loss is noticed.

LMDB has two meta pages and no checksum over them. A flipped bit in the newer page's number makes
LMDB take the older page: the last transaction is gone, and the rest looks sound. In the same way a
flipped bit in the last batch of the tail makes it look torn, as if it had never been acknowledged.
So the number of each transaction, and of each batch, is also written, without a sync, to a file
beside them. The file survives any end of the process, and a power cut as far as the kernel had
written it. It is ahead of what it stands beside only if that lost something. Knows numbers and a
file, neither LMDB nor the tail.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING
from zlib import crc32

from holdfast.storage.disk.unsynced_file import UnsyncedFile

if TYPE_CHECKING:
    from pathlib import Path

MARK_FILE = "last-commit"
"""The number of the environment's last transaction. A version that knows no tail reads it, too."""
TAIL_MARK_FILE = "last-batch"
"""The number of the tail's last batch."""
_NUMBER = struct.Struct(">Q")
_MARK = struct.Struct(">QI")


class CommitMark:
    """One mark, for the process that writes what it stands beside."""

    def __init__(self, folder: Path, name: str = MARK_FILE) -> None:
        """Open or make it. Raises OSError."""
        self._file = UnsyncedFile(folder / name)

    def note(self, number: int) -> None:
        """Record that the transaction, or the batch, with this number is durable.

        If that fails, the mark is too old from now on, but never wrong: the node goes on, and its
        peers still remember its acknowledgements.
        """
        self._file.write(_mark(number))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_mark(folder: Path, name: str = MARK_FILE) -> int:
    """Read the number of what is known to have been durable last; 0 if unknown.

    A torn or damaged mark counts as unknown.
    """
    try:
        number, checksum = _MARK.unpack((folder / name).read_bytes())
    except (FileNotFoundError, struct.error):
        return 0
    return int(number) if checksum == crc32(_NUMBER.pack(number)) else 0


def _mark(number: int) -> bytes:
    return _MARK.pack(number, crc32(_NUMBER.pack(number)))
