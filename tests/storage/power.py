"""Power cuts, written by write: what was on the disk when the power failed.

The writes of a commit are recovered from the file before and after it. LMDB (no WRITEMAP) commits
in this order, which `strace` shows: the transaction's new pages, ascending, neighbours in one
writev; fdatasync; then about 120 bytes of one of the two meta pages (0 and 1), through an O_DSYNC
descriptor. A page that was written with the bytes it had already makes no difference to any cut,
so the pages that differ are the writes that matter; and nothing is written in between, because one
process alone commits. Recording so needs neither privileges nor a special file system.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PAGE = 4096
SECTOR = 512
META_PAGES = 2


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes that went to an offset in one call."""

    offset: int
    data: bytes

    def cut(self, size: int) -> Write:
        return Write(self.offset, self.data[:size])

    def sectors(self) -> list[Write]:
        return [
            Write(self.offset + at, self.data[at : at + SECTOR])
            for at in range(0, len(self.data), SECTOR)
        ]


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: the file before it, its pages (synced before the next), its meta page."""

    before: bytes
    pages: tuple[Write, ...]
    meta: Write

    @property
    def writes(self) -> tuple[Write, ...]:
        return (*self.pages, self.meta)

    def cuts(self) -> Iterator[bytes]:
        """The file for every prefix of the writes, and for a cut at each 512 bytes inside one."""
        done: list[Write] = []
        for write in self.writes:
            for size in range(0, len(write.data), SECTOR):
                yield applied(self.before, [*done, write.cut(size)])
            done.append(write)
        yield applied(self.before, done)

    def torn(self, source: random.Random) -> bytes:
        """Before the sync the disk may have taken any of the sectors, in any order."""
        sectors = [sector for page in self.pages for sector in page.sectors()]
        return applied(self.before, source.sample(sectors, source.randrange(len(sectors))))


def recorded(before: bytes, after: bytes) -> Commit:
    """The commit that made one file of the other."""
    count = (len(after) + PAGE - 1) // PAGE
    changed = [
        number
        for number in range(count)
        if after[number * PAGE : (number + 1) * PAGE] != before[number * PAGE : (number + 1) * PAGE]
    ]
    metas = [number for number in changed if number < META_PAGES]
    assert len(metas) == 1, f"a commit writes one meta page, not {metas}"
    pages = [number for number in changed if number >= META_PAGES]
    return Commit(before, tuple(_joined(after, pages)), _page(after, metas[0], 1))


def applied(image: bytes, writes: list[Write]) -> bytes:
    """The file after these writes."""
    file = bytearray(image)
    for write in writes:
        if write.data:
            file.extend(bytes(max(0, write.offset - len(file))))
            file[write.offset : write.offset + len(write.data)] = write.data
    return bytes(file)


def _joined(image: bytes, pages: list[int]) -> Iterator[Write]:
    while pages:
        run = 1
        while run < len(pages) and pages[run] == pages[0] + run:
            run += 1
        yield _page(image, pages[0], run)
        pages = pages[run:]


def _page(image: bytes, number: int, count: int) -> Write:
    return Write(number * PAGE, image[number * PAGE : (number + count) * PAGE])
