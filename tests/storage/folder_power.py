"""Power cuts in a folder: what a file system may have kept of changes that were not synced.

Every change of a folder (rename, removal) is pending until that folder is synced, and a new file's
content until the file is. The power fails before or after a chosen call. Of what is pending then,
in the order of the calls, so much has come to the disk, and the rest has not. A file that was
written and not synced has any part of its bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Self
from unittest import mock

CHANGES = ("replace", "rename", "unlink", "rmdir")


class PowerCut(BaseException):
    """The machine stands still. No handler of the product's takes it for an error."""


class _Pending(NamedTuple):
    """A change that a power cut may undo."""

    folder: Path
    undo: Callable[[], object]


class Power:
    """Counts what is done to a folder, and takes the power away at one step."""

    def __init__(self, folder: Path, source: Random, at: int | None) -> None:
        """`at`: the step, two for each call: before it, and after it; None: never."""
        self._folder, self._source, self._at = folder, source, at
        self._pending: list[_Pending] = []
        self._stack = ExitStack()
        self._real = {name: getattr(os, name) for name in (*CHANGES, "fsync")}
        self._durable = {file.stat().st_ino for file in self._files()}
        self.steps = 0

    def __enter__(self) -> Self:
        for name in CHANGES:
            self._stack.enter_context(mock.patch.object(os, name, self._changing(name)))
        self._stack.enter_context(mock.patch.object(os, "fsync", self._fsync))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stack.close()
        if kind is PowerCut:
            self._lose()

    def _step(self) -> None:
        self.steps += 1
        if self._at is not None and self.steps > self._at:
            raise PowerCut

    def _changing(self, name: str) -> Callable[..., None]:
        def change(path: Any, *more: Any, **where: Any) -> None:  # noqa: ANN401 - as `os` takes it
            target = _resolved(path, where)
            if not target.is_relative_to(self._folder):
                self._real[name](path, *more, **where)
                return
            self._step()
            undo = self._undo_of(name, target, Path(more[0]) if more else target)
            self._real[name](path, *more, **where)
            self._pending.append(_Pending(target.parent, undo))
            self._step()

        return change

    def _undo_of(self, name: str, target: Path, to: Path) -> Callable[[], object]:
        if name == "rmdir":
            return lambda: target.mkdir(parents=True, exist_ok=True)
        if name == "unlink":
            content = target.read_bytes()
            return lambda: _write(target, content)
        replaced = to.read_bytes() if to.is_file() else None

        def back() -> None:
            self._real["replace"](to, target)
            if replaced is not None:
                _write(to, replaced)

        return back

    def _fsync(self, descriptor: int) -> None:
        place = _opened(descriptor)
        if not place.is_relative_to(self._folder):
            self._real["fsync"](descriptor)
            return
        self._step()
        self._durable.add(os.fstat(descriptor).st_ino)
        self._pending = [each for each in self._pending if each.folder != place]
        self._step()

    def _lose(self) -> None:
        """Undo the last of what is pending, so much as chance says; tear what was not synced."""
        torn = [file for file in self._files() if file.stat().st_ino not in self._durable]
        for file in torn:
            content = file.read_bytes()
            file.write_bytes(content[: self._source.randrange(len(content) + 1)])
        for each in reversed(self._pending[self._source.randrange(len(self._pending) + 1) :]):
            each.undo()

    def _files(self) -> list[Path]:
        return [path for path in self._folder.rglob("*") if path.is_file()]


def _resolved(path: Any, where: dict[str, Any]) -> Path:  # noqa: ANN401 - as `os` takes it
    """Return the whole path; a removal of a tree names files within an open folder."""
    if where.get("dir_fd") is None:
        return Path(path).absolute()
    return _opened(where["dir_fd"]) / os.fsdecode(path)


def _opened(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
