"""The audit's files in a node's data directory: lines of JSON, rotated by size, bounded in all.

Blocks; no event loop. What reads them needs no node that runs.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from holdfast.storage.directory.data_directory import AUDIT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FOLDER: Final = AUDIT_FOLDER
FILES_MAX: Final = 8
"""Files that are kept; the oldest goes when there is one more."""
_PATTERN: Final = "audit-*.jsonl"


class AuditFiles:
    """Where one node writes. One thread at a time."""

    def __init__(self, folder: Path, bytes_max: int) -> None:
        """`bytes_max`: of all files together."""
        self._folder, self._file_bytes_max = folder, bytes_max // FILES_MAX
        self._path: Path | None = None
        """The file that is written; each start begins another one."""
        self._size = 0

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write records and hand them to the system. Raises OSError; the next call begins anew."""
        lines: list[bytes] = []
        try:
            for record in records:
                line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
                if self._path is None or self._size + len(line) > self._file_bytes_max:
                    self._write(lines)
                    lines = []
                    self._path, self._size = self._begun(), 0
                lines.append(line)
                self._size += len(line)
            self._write(lines)
        except OSError:
            self._path = None
            raise

    def _write(self, lines: list[bytes]) -> None:
        if self._path is not None:
            with self._path.open("ab") as file:
                file.writelines(lines)

    def _begun(self) -> Path:
        """Begin the next file: what a crash left of the last line is never continued."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = _files(self._folder)
        for old in before[: max(0, len(before) - FILES_MAX + 1)]:
            old.unlink()
        number = int(before[-1].stem.removeprefix("audit-")) + 1 if before else 1
        path = self._folder / f"audit-{number:010}.jsonl"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        return path


def _files(folder: Path) -> list[Path]:
    """Return the files, the oldest first."""
    return sorted(folder.glob(_PATTERN))


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
