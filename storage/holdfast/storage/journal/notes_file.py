"""S21: a few bytes beside the journal that outlive the process, and may be late or lost.

They are written in place without a sync: they survive any end of the process, and a power cut as
far as the kernel had written them. Torn or damaged bytes count as never written. Knows bytes and a
file, not their meaning.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING
from zlib import crc32

from holdfast.storage.disk.unsynced_file import UnsyncedFile

if TYPE_CHECKING:
    from pathlib import Path

NOTES_NAME = "peers"
_HEAD = struct.Struct(">II")
"""Length and checksum of what follows."""


class NotesFile:
    """Implements `holdfast.raft.api.Notes`."""

    def __init__(self, folder: Path) -> None:
        """Open or make the file. Raises OSError."""
        self._file = UnsyncedFile(folder / NOTES_NAME)

    def read(self) -> bytes:
        """Read the content last written; empty if it is torn, damaged or absent. Raises OSError."""
        packed = self._file.path.read_bytes()
        if len(packed) < _HEAD.size:
            return b""
        length, checksum = _HEAD.unpack_from(packed)
        content = packed[_HEAD.size : _HEAD.size + length]
        return content if len(content) == length and crc32(content) == checksum else b""

    def write(self, content: bytes) -> None:
        """Replace the content; if that fails, the node goes on without it."""
        self._file.write(_HEAD.pack(len(content), crc32(content)) + content)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
