"""A file or folder of an archive behind a URL, in place of a `Path` (`segments.archive_path`).

What is there is listed once, so that a name is looked up without asking the store. Nothing outside
the folder is listed, a link is told and not followed, and no name leads above the folder. Knows
names and files, not what they mean.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, Literal, TypeAlias

from holdfast.replay.read.urls import FLAT, is_url, local_file, opened, reached, scheme_of

_DEPTH_MAX: Final = 3
"""A file of a segment lies in `segments/NAME/`; what is deeper is no part of an archive."""

_Entries = dict[str, Mapping[str, Any]]
"""What a store tells of each entry, by its path within the folder."""


class _Tree:
    """What lies in the folder at a URL."""

    def __init__(self, url: str) -> None:
        self.url = url

    @cached_property
    def entries(self) -> _Entries:
        """All entries, but the folder itself. Raises FileNotFoundError, NotReached."""
        store, root = opened(self.url)
        with reached(self.url):
            store.invalidate_cache()
            if scheme_of(self.url) in FLAT:
                found = store.find(root, withdirs=True, detail=True).values()
                return _with_folders(_inside(root, found))
            return dict(_walk(store, root, root))

    @cached_property
    def children(self) -> dict[str, list[str]]:
        """The entries of each folder."""
        found: dict[str, list[str]] = {}
        for name in sorted(self.entries):
            found.setdefault(name.rpartition("/")[0], []).append(name)
        return found


def _walk(store: Any, root: str, folder: str) -> Iterator[tuple[str, Mapping[str, Any]]]:  # noqa: ANN401 - fsspec has no types
    """Go through folders one by one, so that one which may not be read is no empty one."""
    for name, told in _inside(root, store.ls(folder, detail=True)).items():
        yield name, told
        if _kind(told) == stat.S_IFDIR and name.count("/") + 1 < _DEPTH_MAX:
            yield from _walk(store, root, f"{root}/{name}")


def _inside(root: str, found: Any) -> _Entries:  # noqa: ANN401 - fsspec has no types
    """Keep what truly lies in the folder: a server may tell other names."""
    entries: _Entries = {}
    for told in found:
        name = str(told["name"])
        inner = name.removeprefix(f"{root}/").rstrip("/")
        parts = inner.split("/")
        if not name.startswith(f"{root}/") or {"", ".", ".."} & set(parts) or "?" in inner:
            continue
        if len(parts) <= _DEPTH_MAX:
            entries[inner] = {**told, "type": "directory"} if name.endswith("/") else told
    return entries


def _with_folders(entries: _Entries) -> _Entries:
    """Add the folders that objects have in their names alone."""
    folders = {str(each) for name in entries for each in PurePosixPath(name).parents} - {"."}
    return {**{name: {"type": "directory"} for name in folders}, **entries}


def _kind(told: Mapping[str, Any]) -> int:
    if told.get("islink"):
        return stat.S_IFLNK
    kinds = {"file": stat.S_IFREG, "directory": stat.S_IFDIR}
    return kinds.get(told["type"], stat.S_IFIFO)


class UrlPath:
    """An `ArchivePath` below a URL; the folder at the URL itself has no folder above it."""

    def __init__(self, url: str, tree: _Tree | None = None, inner: str = "") -> None:
        """`tree` and `inner`: for its own use."""
        self._tree = tree or _Tree(url.rstrip("/"))
        self.inner = inner
        """Its path within the folder at the URL."""
        self._url = f"{self._tree.url}/{inner}" if inner else self._tree.url

    def __str__(self) -> str:
        """Return the URL."""
        return self._url

    def __repr__(self) -> str:
        """Format it for debugging."""
        return f"UrlPath({self._url!r})"

    def __eq__(self, other: object) -> bool:
        """Compare URLs."""
        return isinstance(other, UrlPath) and other._url == self._url

    def __hash__(self) -> int:
        """Hash the URL."""
        return hash(self._url)

    def __lt__(self, other: UrlPath) -> bool:
        """Sort by URL."""
        return self._url < other._url

    def __truediv__(self, name: str) -> UrlPath:
        """Return an entry of this folder."""
        inner = f"{self.inner}/{name}" if self.inner else name
        return UrlPath(self._tree.url, self._tree, inner)

    @property
    def name(self) -> str:
        """The last part."""
        return self._url.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The last part without its suffix."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The end of the last part."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> UrlPath:
        """The folder that it is in; of the folder at the URL, itself."""
        return UrlPath(self._tree.url, self._tree, self.inner.rpartition("/")[0])

    def resolve(self) -> UrlPath:
        """Return itself: links are not followed."""
        return self

    def iterdir(self) -> Iterator[UrlPath]:
        """Yield the entries of this folder."""
        for inner in self._tree.children.get(self.inner, ()):
            yield UrlPath(self._tree.url, self._tree, inner)

    def exists(self) -> bool:
        """Return whether it was listed."""
        return not self.inner or self.inner in self._tree.entries

    def is_dir(self) -> bool:
        """Return whether it is a folder, or a link to one."""
        if not self.inner:
            return self._is_root()
        told = self._tree.entries.get(self.inner)
        if told is None:
            return False
        return _kind(told) == stat.S_IFDIR or (self.is_symlink() and self._asked("isdir"))

    def _is_root(self) -> bool:
        """Return whether there is a folder at the URL; an object store has none without a file."""
        try:
            return bool(self._tree.entries) or (
                scheme_of(self._url) not in FLAT and self._asked("isdir")
            )
        except FileNotFoundError:
            return False

    def _asked(self, question: str) -> bool:
        store, name = opened(self._url)
        with reached(self._url):
            return bool(getattr(store, question)(name))

    def is_symlink(self) -> bool:
        """Return whether it is a link."""
        told = self._tree.entries.get(self.inner)
        return told is not None and _kind(told) == stat.S_IFLNK

    def readlink(self) -> UrlPath:
        """Return where a link leads, to be shown."""
        return UrlPath(str(self._told().get("destination", "")))

    def lstat(self) -> os.stat_result:
        """Return kind and size, as far as the store told them."""
        told = self._told()
        return os.stat_result((_kind(told), *[0] * 5, _size(told), 0, 0, 0))

    def stat(self) -> os.stat_result:
        """Return kind and size; asks for the size if the listing did not tell it."""
        if self._told().get("size") is None:
            store, name = opened(self._url)
            with reached(self._url):
                told = {**self._told(), "size": store.info(name).get("size")}
            self._tree.entries[self.inner] = told
        return self.lstat()

    def _told(self) -> Mapping[str, Any]:
        if self.inner not in self._tree.entries:
            raise FileNotFoundError(f"there is nothing at {self._url}")
        return self._tree.entries[self.inner]

    def read_bytes(self) -> bytes:
        """Return the content."""
        with local_file(self._url) as path:
            return Path(path).read_bytes()

    def open(self, mode: Literal["rb"]) -> BinaryIO:
        """Open a copy, which goes when it is closed."""
        with local_file(self._url) as path:
            return Path(path).open(mode)


def _size(told: Mapping[str, Any]) -> int:
    return int(told.get("size") or 0)


Folder: TypeAlias = Path | UrlPath
"""What a user may give."""


def archive_path(address: Folder | str) -> Folder:
    """Return what stands for an address: a path, or a URL."""
    if isinstance(address, str):
        return UrlPath(address) if is_url(address) else Path(address)
    return address


def is_there(address: str) -> bool:
    """Return whether a file is there now; asks the store anew. Raises NotReached."""
    if not is_url(address):
        return Path(address).exists()
    store, name = opened(address)
    with reached(address):
        store.invalidate_cache()
        return bool(store.exists(name))
