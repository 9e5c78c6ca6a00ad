"""A node's journal tail, byte by byte: what a start must find, and where writing goes on.

A bit that is turned over in acknowledged bytes must be told at the next start; anywhere else in the
tail it is harmless (S21). This knows how the files look, and nothing of how a start judges them: it
is that judgement which is on trial.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.storage.disk.environment import open_databases, open_environment
from holdfast.storage.journal.commit_mark import TAIL_MARK_FILE, read_mark
from holdfast.storage.journal.lmdb_image import DATABASE_NAMES, read_checkpoint
from holdfast.storage.journal.tail_file import (
    BATCH_HEAD_BYTES,
    BLOCK,
    Found,
    batch_bytes,
    journal_id_of,
    mark_of,
    read_file,
    serial_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Span(NamedTuple):
    """Bytes of a file of the tail."""

    file: Path
    begin: int
    end: int  # the first byte behind it


def acknowledged(journal: Path) -> list[Span]:
    """Return what a start must find as it was written; the node is stopped.

    The heads of all files that count, then the batches in order. The last batch may be one of which
    nobody was told, because the node was killed before it could note that its sync had returned.
    """
    known = read_mark(journal, TAIL_MARK_FILE)
    heads, batches = list[Span](), list[Span]()
    for file, found in _found(journal, _ended_file(journal)):
        heads.append(Span(file, 0, BLOCK))
        at = BLOCK
        for number, body in found.batches:
            if number <= known:
                batches.append(Span(file, at, at + BATCH_HEAD_BYTES + len(body)))
            at += batch_bytes([body])
    return heads + batches


def written(journal: Path) -> int:
    """Return how many bytes of its newest file a node has filled, which may be running."""
    ends = [found.end for _, found in _found(journal, 0) if found.touched]
    return ends[-1] if ends else BLOCK


def tail_files(journal: Path) -> list[Path]:
    """Return the files of the tail, in order."""
    return sorted(file for file in journal.iterdir() if serial_of(file.name) is not None)


def _ended_file(journal: Path) -> int:
    """Return the serial number up to which files do not count any more."""
    with open_environment(journal, readonly=True) as environment:
        databases = open_databases(environment, DATABASE_NAMES)
        checkpoint = read_checkpoint(journal, environment, databases)
    return 0 if checkpoint is None else checkpoint.file


def _found(journal: Path, ended: int) -> Iterator[tuple[Path, Found]]:
    for file in tail_files(journal):
        serial, content = serial_of(file.name) or 0, file.read_bytes()
        journal_id = journal_id_of(content, serial)
        if serial > ended and journal_id is not None:
            yield file, read_file(content, mark_of(journal_id, serial))
