"""Files in memory that know which of their bytes and names were synced, and what a cut leaves.

Four ways for what was not synced: none of it reached the disk, all of it, the first writes and a
part of the next one, or any of the sectors. Knows nothing of FUSE.
"""

from __future__ import annotations

import errno
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

SECTOR: Final = 512
NONE, ALL, FIRST, ANY = WAYS = ("none", "all", "first", "any")
"""What reaches the disk of the writes that were never synced."""


@dataclass(slots=True, eq=False)
class File:
    """`pending`: writes (offset, bytes) and new sizes (size, None) since the last sync."""

    live: bytearray = field(default_factory=bytearray)
    disk: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        self.pending.append((offset, data))
        _apply(self.live, offset, data)

    def resize(self, size: int) -> None:
        self.pending.append((size, None))
        _apply(self.live, size, None)

    def sync(self) -> None:
        for offset, data in self.pending:
            _apply(self.disk, offset, data)
        self.pending.clear()

    def after_cut(self, way: str, random: Random) -> bytes:
        """The bytes that are read after the power is back."""
        image = bytearray(self.disk)
        for offset, data in _survivors(self.pending, way, random):
            _apply(image, offset, data)
        return bytes(image)


@dataclass(slots=True, eq=False)
class Folder:
    """`disk`: the names at the last sync of the folder."""

    names: dict[str, File | Folder] = field(default_factory=dict)
    disk: dict[str, File | Folder] = field(default_factory=dict)

    def add(self, name: str, item: File | Folder) -> File | Folder:
        if name in self.names:
            raise FileExistsError(errno.EEXIST, name)
        self.names[name] = item
        return item

    def sync(self) -> None:
        self.disk = dict(self.names)


def loaded(path: Path) -> Folder:
    """A real folder as it is on the disk."""
    folder = Folder()
    for item in path.iterdir():
        if item.is_dir():
            folder.names[item.name] = loaded(item)
        else:
            content = item.read_bytes()
            folder.names[item.name] = File(bytearray(content), bytearray(content))
    folder.sync()
    return folder


def kept(root: Folder, path: Path, way: str, random: Random) -> str:
    """Write to the real folder what a cut leaves; tells the way, and how much was pending."""
    shutil.rmtree(path)
    lost = sum(_store(root, path, way, random))
    return f"{way} of {lost} unsynced bytes and names were kept"


def _store(folder: Folder, path: Path, way: str, random: Random) -> Iterator[int]:
    path.mkdir()
    yield len(folder.names.keys() ^ folder.disk.keys())
    names_came = way == ALL or (way in {FIRST, ANY} and random.random() < 0.5)
    for name, item in (folder.names if names_came else folder.disk).items():
        if isinstance(item, Folder):
            yield from _store(item, path / name, way, random)
        else:
            yield sum(len(data or b"") for _, data in item.pending)
            (path / name).write_bytes(item.after_cut(way, random))


def _survivors(
    pending: list[tuple[int, bytes | None]], way: str, random: Random
) -> list[tuple[int, bytes | None]]:
    if way == NONE or not pending:
        return []
    if way == ALL:
        return pending
    if way == FIRST:
        count = random.randrange(len(pending))
        offset, data = pending[count]
        torn = () if data is None else ((offset, data[: random.randrange(len(data) + 1)]),)
        return [*pending[:count], *torn]
    return [piece for write in pending for piece in _sectors(*write) if random.random() < 0.5]


def _sectors(offset: int, data: bytes | None) -> Iterator[tuple[int, bytes | None]]:
    if data is None:
        yield offset, None
        return
    for at in range(0, len(data), SECTOR):
        yield offset + at, data[at : at + SECTOR]


def _apply(image: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del image[offset:]
        image.extend(bytes(offset - len(image)))
    elif data:
        image.extend(bytes(max(0, offset - len(image))))
        image[offset : offset + len(data)] = data
