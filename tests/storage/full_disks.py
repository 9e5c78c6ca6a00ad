"""Disks without room, under real files: a limit of this process, and one operation that fails.

A limit on the size of files ends a write in its middle, as a full disk does, for LMDB and for plain
files alike. Knows no journal.
"""

from __future__ import annotations

import errno
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.storage.disk.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.storage.disk.folder import File


@contextmanager
def files_limited(most: int) -> Iterator[None]:
    """Let no file of this process grow beyond so many bytes (RLIMIT_FSIZE): EFBIG."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class FullFolder(Folder):
    """A folder on a disk that has room for all operations before one, and none from it on.

    A file that finds no room is left half written.
    """

    def __init__(self, path: Path, fails_at: int) -> None:
        super().__init__(path)
        self.left = fails_at

    def count(self) -> bool:
        """Begin an operation that takes room; return whether there is none."""
        self.left -= 1
        return self.left <= 0

    def create(self, name: str, size: int) -> None:
        if self.count():
            super().create(name, size // 2)
            raise no_room()
        super().create(name, size)

    def open(self, name: str) -> File:
        return FullFile(self, super().open(name))

    def rename(self, name: str, new: str) -> None:
        if self.count():
            raise no_room()
        super().rename(name, new)


class FullFile:
    """Implements `File` on the same disk."""

    def __init__(self, folder: FullFolder, file: File) -> None:
        self._folder, self._file = folder, file

    def write(self, offset: int, data: bytes) -> None:
        if self._folder.count():
            self._file.write(offset, data[: len(data) // 2])
            raise no_room()
        self._file.write(offset, data)

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.close()


def no_room() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")
