"""A folder or an object store to which files are added, each whole or not at all; none is replaced.

An object store shows an object when all of it is there. Elsewhere a file is written under a hidden
name, which readers of archives pass over, and renamed. Knows files, not what is in them.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import Final, NamedTuple

from holdfast.replay.findings import WrongUse
from holdfast.replay.read.url_path import UrlPath
from holdfast.replay.read.urls import FLAT, NotReached, is_url, opened, reached, scheme_of
from holdfast.storage.disk.files import rename_durably, sync_path
from holdfast.storage.segments.file_contents import sha256_of

_CHUNK: Final = 1 << 20
_WRITERS: Final = 8
_READ_ONLY: Final = frozenset({"http", "https"})


class Gone(Exception):
    """A file to copy is not there any more."""


class Item(NamedTuple):
    """A file to copy, and its path below the target."""

    source: Path
    name: str


class Target:
    """What `holdfast log publish` copies to."""

    def __init__(self, address: str) -> None:
        """`address`: a path or a URL. Raises WrongUse, NotReached."""
        if scheme_of(address) in _READ_ONLY:
            raise WrongUse(f"{address} can only be read: give a folder, or the URL of a store")
        self.address = address.rstrip("/") or "/"
        self._store, self._root = opened(self.address)
        self._is_flat = scheme_of(self.address) in FLAT
        self._is_here = not is_url(self.address) or scheme_of(self.address) in {"file", "local"}
        self._made = set[str]()

    def listed(self) -> Mapping[str, int]:
        """Return the size of what is there, by its path below the target; -1: it is no file.

        Raises NotReached.
        """
        root = UrlPath(self.address)
        return {} if not root.is_dir() else dict(_sizes(root))

    def holds(self, item: Item, size: int, *, by_size: bool) -> bool:
        """Return whether what is there, and has this size, is the file; its bytes, if wanted."""
        if item.source.lstat().st_size != size:
            return False
        return by_size or self._sha256(item.name) == sha256_of(item.source)

    def _sha256(self, name: str) -> str:
        digest = hashlib.sha256()
        with (
            reached(self.shown(name)),
            self._store.open(f"{self._root}/{name}", "rb") as file,
        ):
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        return digest.hexdigest()

    def add_folder(self, items: Sequence[Item]) -> None:
        """Copy all files of a folder that is not there; the last one comes last.

        Where there are files and folders, it appears as a whole. Raises as `add`.
        """
        if self._is_flat:
            self.add(items[:-1])
            self.add(items[-1:])
            return
        folder, _, name = items[0].name.rpartition("/")[0].rpartition("/")
        hidden = f"{folder}/.{name}.{secrets.token_hex(4)}"
        try:
            self.add([Item(item.source, f"{hidden}/{Path(item.name).name}") for item in items])
            with reached(self.shown(f"{folder}/{name}"), "written"):
                self._rename(f"{self._root}/{hidden}", f"{self._root}/{folder}/{name}")
        except BaseException:
            self._drop(hidden)
            raise

    def _drop(self, name: str) -> None:
        with suppress(Exception):  # what stays is hidden, and hinders nothing
            self._store.rm(f"{self._root}/{name}", recursive=True)

    def add(self, items: Sequence[Item]) -> None:
        """Copy files that are not there. Raises Gone, FileNotFoundError, NotReached."""
        if len(items) > 1 and self._store.async_impl:  # such a store takes several at once
            with ThreadPoolExecutor(_WRITERS) as pool:
                list(pool.map(self._add, items))
        else:
            for item in items:
                self._add(item)

    def _add(self, item: Item) -> None:
        to, to_be = f"{self._root}/{item.name}", self.shown(item.name)
        try:
            with reached(to_be, "written"):
                if self._is_flat:
                    self._store.put_file(str(item.source), to)
                else:
                    self._put_and_rename(item.source, to)
        except FileNotFoundError:
            if not item.source.exists():
                raise Gone(item.source) from None
            if not self._is_flat:
                raise
            # Such a store makes folders of names alone.
            raise NotReached(f"{to_be} cannot be written: there is no such bucket") from None

    def _put_and_rename(self, source: Path, to: str) -> None:
        folder, _, name = to.rpartition("/")
        self._make(folder)
        part = f"{folder}/.{name}.{secrets.token_hex(4)}"
        try:
            self._store.put_file(str(source), part)
            if self._is_here:
                sync_path(Path(part))
            self._rename(part, to)
        except BaseException:
            self._drop(part.removeprefix(f"{self._root}/"))
            raise

    def _rename(self, name: str, to: str) -> None:
        if self._is_here:
            rename_durably(Path(name), Path(to))
        else:
            self._store.mv(name, to, recursive=True)

    def _make(self, folder: str) -> None:
        if folder in self._made:
            return
        self._store.makedirs(folder, exist_ok=True)
        if self._is_here:
            for each in (Path(folder), *list(Path(folder).parents)[:3]):
                sync_path(each)
        self._made.add(folder)

    def shown(self, name: str) -> str:
        """Return the address of a file below the target."""
        return f"{self.address}/{name}"


def _sizes(folder: UrlPath) -> Iterator[tuple[str, int]]:
    for each in folder.iterdir():
        told = each.lstat()
        yield each.inner, told.st_size if S_ISREG(told.st_mode) else -1
        if each.is_dir() and not each.is_symlink():
            yield from _sizes(each)
