"""The audit's files in a node's data directory: lines of JSON, rotated by size, bounded in all.

Blocks; no event loop. What reads them needs no node that runs.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from holdfast.storage.directory.data_directory import AUDIT_FOLDER, LOCK_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FOLDER: Final = AUDIT_FOLDER
SHARES: Final = 8
"""Each file takes at most this share of all bytes; so much goes at once with the oldest file."""
_PATTERN: Final = "audit-*.jsonl"


class AuditFiles:
    """Where one node writes. One thread at a time."""

    def __init__(self, folder: Path, bytes_max: int) -> None:
        """`bytes_max`: of all files together."""
        self._folder, self._bytes_max = folder, bytes_max
        self._file_bytes_max = bytes_max // SHARES
        self._path: Path | None = None
        """The file that is written; None: see which one is the newest."""
        self._size = 0
        """Of that file, with what is about to be written."""

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write records and hand them to the system. Raises OSError; these records are lost then.

        No earlier record goes because a write failed: the next call goes on with the same file.
        """
        try:
            lines = self._opened() if self._path is None else []
            for record in records:
                line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
                if self._size + len(line) > self._file_bytes_max:
                    self._write(lines)
                    lines = self._begin()
                lines.append(line)
                self._size += len(line)
            self._write(lines)
        except OSError:
            self._path = None
            raise

    def _write(self, lines: list[bytes]) -> None:
        if self._path is not None and lines:
            with self._path.open("ab") as file:
                file.writelines(lines)

    def _opened(self) -> list[bytes]:
        """Go on with the newest file; return what must come first in it.

        What a crash or a full disk left of its last line is ended there, and is no record.
        """
        newest = next(reversed(_files(self._folder)), None)
        if newest is None:
            return self._begin()
        self._path, self._size = newest, newest.stat().st_size
        if _ends_with_a_line(newest):
            return []
        self._size += 1
        return [b"\n"]

    def _begin(self) -> list[bytes]:
        """Begin the next file, for which the oldest ones make room; return what comes first."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = _files(self._folder)
        _make_room(before, self._bytes_max - self._file_bytes_max)
        number = int(before[-1].stem.removeprefix("audit-")) + 1 if before else 1
        path = self._folder / f"audit-{number:010}.jsonl"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        self._path, self._size = path, 0
        return []


def _ends_with_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _make_room(files: Iterable[Path], bytes_max: int) -> None:
    """Delete the oldest of these files until the others take no more than that."""
    sizes = [(file, file.stat().st_size) for file in files]
    total = sum(size for _file, size in sizes)
    for file, size in sizes:
        if total <= bytes_max:
            return
        file.unlink()
        total -= size


def _files(folder: Path) -> list[Path]:
    """Return the files, the oldest first."""
    return sorted(folder.glob(_PATTERN))


def is_of_a_node(directory: Path) -> bool:
    """Return whether a node keeps its data here, or an audit."""
    return any((directory / name).exists() for name in (AUDIT_FOLDER, LOCK_NAME))


def read(data_directory: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a node, the oldest first. Raises OSError.

    A line that is no record is passed over: a node that lost its power was writing it.
    """
    folder = data_directory / FOLDER
    for file in _files(folder):
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            continue  # it was the oldest, and the node that runs has dropped it
        for line in content.splitlines():
            if (record := _record(line)) is not None:
                yield record


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
