"""Whether the pages of an LMDB file agree with each other: what reading the records cannot show.

Who reads every record has not looked at what only a write uses: the list of unused pages, where the
free room of a page begins, how many pages a large value has, how many the file has. One flipped
bit there, and the next commit lays its pages over records that nobody deleted, or fails (S21).

Knows the layout of LMDB 0.9 on a 64-bit machine (its mdb.c: MDB_page, MDB_node, MDB_db, MDB_meta),
in the byte order of this machine. Bytes in, a sentence out; knows no record.
"""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_META_PAGES: Final = 2
_NO_PAGE: Final = (1 << 64) - 1
"""The root of an empty tree."""
_BRANCH, _LEAF, _OVERFLOW, _META = 1, 2, 4, 8
_BIG, _SUBTREE = 1, 2
"""Flags of a leaf's node: its value is on pages of its own, or is a tree."""

_HEAD: Final = struct.Struct("=QHHHH")
"""Of a page: its number, padding, flags, and where its free room begins and ends."""
_META_HEAD: Final = struct.Struct("=IIQQ")
"""Magic, version, address, size of the map; two trees follow."""
_TREE: Final = struct.Struct("=IHHQQQQQ")
"""Page size, flags, depth; pages of branches, leaves, overflow; entries; root."""
_META_TAIL: Final = struct.Struct("=QQ")
"""The file's last page, and the transaction."""
_NODE: Final = struct.Struct("=HHHH")
"""Two halves of a size, or of a page number; flags, or its third part; the size of the key."""
_U64: Final = struct.Struct("=Q")
_U32: Final = struct.Struct("=I")


class _Differ(ValueError):
    """Two pages, or a page and its place, do not agree; the message says what and where."""


class _Tree(NamedTuple):
    """What LMDB says of a tree (MDB_db)."""

    page_bytes: int
    """Of the tree of unused pages: how large a page of the file is."""
    flags: int
    depth: int
    branches: int
    leaves: int
    overflow: int
    """Pages of large values."""
    entries: int
    root: int

    @property
    def size(self) -> tuple[int, int, int, int]:
        """How much it has of all."""
        return self.branches, self.leaves, self.overflow, self.entries


class _Meta(NamedTuple):
    """What a meta page says."""

    unused: _Tree
    main: _Tree
    map_bytes: int
    last_page: int
    transaction: int


class _Entry(NamedTuple):
    """A key and its value."""

    key: memoryview
    value: memoryview
    pages: int
    """How many pages the value has to itself."""


def fault_of_pages(path: Path) -> str:
    """Return what is wrong with the newest transaction of a file; "" if nothing is.

    Nobody writes it meanwhile. Raises OSError. An empty file has no pages yet.
    """
    if not path.stat().st_size:
        return ""
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return _fault(content)


def _fault(content: mmap.mmap) -> str:
    """Return what is wrong; no view of the content outlives this call, so that it can be closed."""
    try:
        _Pages(memoryview(content)).check()
    except _Differ as found:
        return str(found)
    return ""


class _Pages:
    """The pages of one file, and which of them were met."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._meta = _newest_meta(content)
        self._page_bytes = self._meta.unused.page_bytes
        last = self._meta.last_page
        if not _META_PAGES - 1 <= last < self._meta.map_bytes // self._page_bytes:
            raise _Differ(f"its last page would be {last}, of {self._meta.map_bytes} bytes")
        self._met = bytearray(last + 1)

    def check(self) -> None:
        """Walk all trees, and then the list of unused pages, which may name none of them.

        A page that its own transaction frees again is never written. If it is behind all others,
        the file ends before it: so what is beyond the end has to be unused.
        """
        self._met[:_META_PAGES] = b"\1" * _META_PAGES
        waiting = [self._meta.main]
        while waiting:
            waiting += self._walk(waiting.pop())
        lists: list[_Entry] = []
        self._walk(self._meta.unused, lists)
        for each in lists:
            self._take_list(each)
        if (number := self._met.find(0, self._pages_there())) >= 0:
            raise _Differ(f"page {number} is beyond the file's end, and not said to be unused")

    def _pages_there(self) -> int:
        """Return how many pages the file has; one that was cut off midway is none."""
        return len(self._content) // self._page_bytes

    def _walk(self, tree: _Tree, entries: list[_Entry] | None = None) -> list[_Tree]:
        """Meet the pages of a tree, and collect what it holds, if wanted; return those in it."""
        below, waiting = list[_Tree](), [] if tree.root == _NO_PAGE else [tree.root]
        branches = leaves = overflow = count = 0
        while waiting:
            number = waiting.pop()
            page = self._page(number)
            places, is_branch = self._places(number, page)
            if is_branch:
                branches += 1
                waiting += [self._child(page, place) for place in places]
                continue
            leaves, count, words = leaves + 1, count + len(places), page.cast("H")
            for place in places:
                flags = words[(place >> 1) + 2]
                if flags & _SUBTREE:
                    below.append(self._subtree(number, page, place))
                elif flags & _BIG or entries is not None:
                    entry = self._entry(number, page, place, big=bool(flags & _BIG))
                    overflow += entry.pages
                    if entries is not None:
                        entries.append(entry)
        if (found := (branches, leaves, overflow, count)) != tree.size:
            raise _Differ(f"a tree has {found} pages and entries, and says {tree.size}")
        return below

    def _page(self, number: int) -> memoryview:
        """Return a page that is met for the first time."""
        self._meet_written(number, 1)
        size = self._page_bytes
        return self._content[number * size : (number + 1) * size]

    def _meet_written(self, first: int, count: int) -> None:
        """Meet pages that have a content."""
        if first + count > self._pages_there():
            raise _Differ(f"page {first + count - 1} is used, and beyond the file's end")
        for number in range(first, first + count):
            self._meet(number)

    def _meet(self, number: int) -> None:
        if number > self._meta.last_page:
            raise _Differ(f"page {number} is used, and its last one is {self._meta.last_page}")
        if self._met[number]:
            raise _Differ(f"page {number} is used twice, or is used and said to be unused")
        self._met[number] = 1

    def _places(self, number: int, page: memoryview) -> tuple[tuple[int, ...], bool]:
        """Return where the nodes of a branch or leaf are, and whether it is a branch."""
        said, _, flags, lower, upper = _HEAD.unpack_from(page)
        count = (lower - _HEAD.size) >> 1
        if said != number or flags not in {_BRANCH, _LEAF} or lower < _HEAD.size or lower & 1:
            raise _Differ(f"page {number} has a damaged head")
        if not lower <= upper <= len(page):
            raise _Differ(f"page {number} has free room from {lower} to {upper}")
        places = struct.unpack_from(f"={count}H", page, _HEAD.size)
        lowest, highest = (min(places), max(places)) if places else (len(page), 0)
        if lowest != upper or highest + _NODE.size > len(page) or any(p & 1 for p in places):
            raise _Differ(
                f"page {number} has its free room up to {upper}, its values from {lowest}"
            )
        return places, flags == _BRANCH

    @staticmethod
    def _child(page: memoryview, place: int) -> int:
        low, middle, high, _ = _NODE.unpack_from(page, place)
        return int(low | middle << 16 | high << 32)

    def _subtree(self, number: int, page: memoryview, place: int) -> _Tree:
        *_, key_bytes = _NODE.unpack_from(page, place)
        at = place + _NODE.size + key_bytes
        if at + _TREE.size > len(page):
            raise _Differ(f"page {number} has a tree beyond its end")
        return _Tree(*_TREE.unpack_from(page, at))

    def _entry(self, number: int, page: memoryview, place: int, *, big: bool) -> _Entry:
        low, high, _, key_bytes = _NODE.unpack_from(page, place)
        size, at = low | high << 16, place + _NODE.size + key_bytes
        if at + (_U64.size if big else size) > len(page):
            raise _Differ(f"page {number} has a value beyond its end")
        key = page[place + _NODE.size : at]
        if not big:
            return _Entry(key, page[at : at + size], 0)
        (first,) = _U64.unpack_from(page, at)
        return _Entry(key, *self._large(first, size))

    def _large(self, first: int, size: int) -> tuple[memoryview, int]:
        """Meet the pages of a large value, the first of which says how many there are.

        They may be more than it needs: a transaction that makes its own value smaller leaves it
        where it is.
        """
        head = self._page(first)
        said, _, flags, _, _ = _HEAD.unpack_from(head)
        (count,) = _U32.unpack_from(head, _HEAD.size - _U32.size)
        needed = -(-(_HEAD.size + size) // self._page_bytes)
        if (said, flags) != (first, _OVERFLOW) or count < needed:
            raise _Differ(f"page {first}, of a value of {size} bytes, has a damaged head")
        self._meet_written(first + 1, count - 1)
        begin = first * self._page_bytes + _HEAD.size
        return self._content[begin : begin + size], count

    def _take_list(self, entry: _Entry) -> None:
        """Meet the pages that were freed by one transaction; LMDB may leave a list that says 0."""
        key, value = entry.key, entry.value
        if len(key) != _U64.size or len(value) < _U64.size or len(value) % _U64.size:
            raise _Differ("a list of unused pages has a damaged size")
        (transaction,), (count, *numbers) = _U64.unpack(key), memoryview(bytes(value)).cast("Q")
        if transaction > self._meta.transaction or count not in {0, len(numbers)}:
            raise _Differ(f"the unused pages of transaction {transaction} are damaged")
        for number in numbers[:count]:
            self._meet(number)


def _newest_meta(content: memoryview) -> _Meta:
    """Return the one of the two meta pages that LMDB would choose."""
    size = _meta_at(content, 0).unused.page_bytes
    if size < 1 << 8 or size & (size - 1) or _META_PAGES * size > len(content):
        raise _Differ(f"its pages would have {size} bytes")
    found = [_meta_at(content, number * size) for number in range(_META_PAGES)]
    return max(found, key=lambda meta: meta.transaction)


def _meta_at(content: memoryview, start: int) -> _Meta:
    said = start + _HEAD.size
    at = said + _META_HEAD.size
    if at + 2 * _TREE.size + _META_TAIL.size > len(content):
        raise _Differ("it is shorter than its meta pages")
    unused, main = (_Tree(*_TREE.unpack_from(content, at + n * _TREE.size)) for n in range(2))
    *_, map_bytes = _META_HEAD.unpack_from(content, said)
    return _Meta(unused, main, map_bytes, *_META_TAIL.unpack_from(content, at + 2 * _TREE.size))
