"""S21: a few bytes beside the journal that outlive the process, for what may be late or lost.

Written in place without a sync: they survive the end of the process, however it ends, and a power
cut as far as the kernel had written them. Bytes that are torn or damaged are as if never written.
Knows bytes and a file; nothing of what they say.
"""

from __future__ import annotations

import logging
import os
import struct
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)

NOTES_NAME = "peers"
_HEAD = struct.Struct(">II")
"""Length and checksum of what follows."""


class NotesFile:
    """Implements `holdfast.raft.api.Notes`."""

    def __init__(self, folder: Path) -> None:
        """Open or make the file. Raises OSError."""
        self._path = folder / NOTES_NAME
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        self._works = True

    def read(self) -> bytes:
        """What was last written whole; nothing, if there is no such thing. Raises OSError."""
        packed = self._path.read_bytes()
        if len(packed) < _HEAD.size:
            return b""
        length, checksum = _HEAD.unpack_from(packed)
        content = packed[_HEAD.size : _HEAD.size + length]
        return content if len(content) == length and crc32(content) == checksum else b""

    def write(self, content: bytes) -> None:
        """Replace what was written; where that fails, the node goes on without it."""
        try:
            os.pwrite(self._file, _HEAD.pack(len(content), crc32(content)) + content, 0)
        except OSError as error:
            if self._works:
                logger.warning("%s cannot be written (%s): see to the disk", self._path, error)
            self._works = False

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)
