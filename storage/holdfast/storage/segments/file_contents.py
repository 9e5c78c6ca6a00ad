"""What a manifest of format 2 says of each data file: size, rows and SHA-256 (docs/adr/0059).

A check of them reads bytes alone, so it names a file that is not what was sealed before anything
in it is trusted to a reader of Parquet. Knows one folder and its manifest; no record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from holdfast.storage.segments.segments import FIRST_FORMAT, FileContent, Manifest

UNTOLD: Final = "the manifest describes other files than it names"


def content_of(path: Path, rows: int) -> FileContent:
    """Describe a data file that was just written. Raises OSError."""
    return FileContent(path.name, path.stat().st_size, rows, sha256_of(path))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def other_contents(segment: Path, manifest: Manifest) -> Iterator[str]:
    """Yield what is wrong with each data file whose bytes are not those that were sealed.

    Nothing for a manifest of format 1, which does not tell. Raises OSError for a file that cannot
    be read.
    """
    if manifest.format_version > FIRST_FORMAT and not tells_each_file(manifest):
        yield UNTOLD
    for sealed in _described(manifest):
        path = segment / sealed.file
        size = path.stat().st_size
        found = sha256_of(path) if size == sealed.size else ""
        if (size, found) != (sealed.size, sealed.sha256):
            yield other_bytes(sealed, size, found)


def tells_each_file(manifest: Manifest) -> bool:
    """Return whether the files that a manifest describes are those that it names."""
    return tuple(content.file for content in manifest.contents) == manifest.files


def _described(manifest: Manifest) -> Iterator[FileContent]:
    """Yield what is told of the files of the segment; a path to elsewhere is none of them."""
    return (content for content in manifest.contents if content.file in manifest.files)


def other_counts(segment: Path, manifest: Manifest) -> Iterator[str]:
    """Yield of which data files the manifest tells another number of rows. Raises as Arrow does."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to load, and no start needs it

    for sealed in _described(manifest):
        rows = pq.read_metadata(segment / sealed.file).num_rows
        if rows != sealed.rows:
            yield f"{sealed.file} has {rows} records, its manifest tells {sealed.rows}"


def other_bytes(sealed: FileContent, size: int, sha256: str) -> str:
    """Say in which way a file is not what was sealed."""
    if size != sealed.size:
        return f"{sealed.file} has {size} bytes, and {sealed.size} were sealed"
    return (
        f"{sealed.file} has the SHA-256 {sha256[:16]}…, and what was sealed has "
        f"{sealed.sha256[:16]}…"
    )
