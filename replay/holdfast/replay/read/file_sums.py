"""The SHA-256 and the size of files: here, or of files behind a URL by workers, which fetch them.

Runs in Spark's workers, too, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.replay.read.log_rows import ResultRow
from holdfast.replay.read.urls import local_file
from holdfast.storage.segments.file_contents import sha256_of

SUM: Final = "sum"


class FileSum(NamedTuple):
    """What a file's bytes are."""

    sha256: str
    """The path of a file that cannot be read: such a file is like no other."""
    size: int


def sum_of(address: str) -> FileSum:
    """Read a file. Raises NotReached: then nothing is known of the file."""
    try:
        with local_file(address) as path:
            return FileSum(sha256_of(Path(path)), Path(path).lstat().st_size)
    except OSError:
        return FileSum(address, 0)  # whoever reads it next tells what is wrong with it


def sum_rows(addresses: Sequence[str]) -> Iterator[ResultRow]:
    """Read files in a worker; `of_row` reads what it yields."""
    for address in addresses:
        found = sum_of(address)
        yield ResultRow(SUM, key=address, text=found.sha256, idx=found.size)


def of_row(row: ResultRow) -> tuple[str, FileSum]:
    """Return a file's address, and what its bytes are."""
    return row.key, FileSum(row.text, row.idx)
