"""Plain files of one folder, as the journal's tail uses them: written in place, synced one by one.

`Files` is a port, so that a test can take the power away between any two of these operations;
`Folder` is the file system. Knows bytes and names, not what they mean.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from holdfast.storage.disk.files import rename_durably, sync_path

if TYPE_CHECKING:
    from pathlib import Path

_ZEROS = bytes(1 << 20)


class File(Protocol):
    """One open file."""

    def write(self, offset: int, data: bytes) -> None:
        """Write all of `data` at `offset`. A power cut may keep any of its blocks."""

    def sync(self) -> None:
        """Make durable what was written."""

    def close(self) -> None:
        """Release the file."""


class Files(Protocol):
    """The files of one folder. Every method raises OSError."""

    def names(self) -> list[str]:
        """Return the names of all files."""

    def read(self, name: str) -> bytes:
        """Return the content of a file."""

    def create(self, name: str, size: int) -> None:
        """Make a file of zeros, or empty an existing one. Durable, but for its name."""

    def open(self, name: str) -> File:
        """Open a file to write in it."""

    def rename(self, name: str, new: str) -> None:
        """Rename durably, whole or not at all; a file `new` is replaced."""

    def remove(self, name: str) -> None:
        """Remove a file durably."""


class Folder:
    """Implements `Files` on the file system."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> list[str]:
        """Return the names of all files."""
        return sorted(each.name for each in self._path.iterdir())

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return (self._path / name).read_bytes()

    def create(self, name: str, size: int) -> None:
        """Make a file of zeros.

        The zeros are really written: room that is only reserved would have to be taken note of at
        each later sync, which costs a second write to the file system's own journal.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        descriptor = os.open(self._path / name, flags, 0o640)
        try:
            for at in range(0, size, len(_ZEROS)):
                _write(descriptor, at, _ZEROS[: size - at])
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def open(self, name: str) -> File:
        """Open a file to write in it."""
        return _OpenFile(os.open(self._path / name, os.O_RDWR))

    def rename(self, name: str, new: str) -> None:
        """Rename durably, whole or not at all; a file `new` is replaced."""
        rename_durably(self._path / name, self._path / new)

    def remove(self, name: str) -> None:
        """Remove a file durably."""
        (self._path / name).unlink()
        sync_path(self._path)


class _OpenFile:
    """Implements `File`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, offset: int, data: bytes) -> None:
        """Write all of `data` at `offset`."""
        _write(self._descriptor, offset, data)

    def sync(self) -> None:
        """Make durable what was written, and the file's size if it grew."""
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Release the file."""
        os.close(self._descriptor)


def _write(descriptor: int, offset: int, data: bytes) -> None:
    """Write all of `data`: the kernel may take less at once."""
    done = os.pwrite(descriptor, data, offset)
    while done < len(data):
        more = os.pwrite(descriptor, data[done:], offset + done)
        if not more:
            raise OSError(f"the kernel wrote {done} of {len(data)} bytes and no more")
        done += more
