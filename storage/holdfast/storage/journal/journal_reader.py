"""Reads the journal of a stopped node, and changes nothing: for the check at a start, and offline.

LMDB maps its file, so a damaged one may kill the process that reads it (S21).
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import lmdb

from holdfast.storage.disk.environment import error_code, open_databases, open_environment
from holdfast.storage.disk.folder import Folder
from holdfast.storage.errors import DirectoryRefused, JournalDamaged, Refusal
from holdfast.storage.journal.commit_mark import MARK_FILE, TAIL_MARK_FILE, read_mark
from holdfast.storage.journal.lmdb_image import DATABASE_NAMES, read_with_checkpoint
from holdfast.storage.journal.tail_recovery import (
    Checkpoint,
    recover,
    refuse_lost_batch,
    refuse_tail_before_checkpoint,
    replayed,
)

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.storage.journal.journal import JournalImage

INABILITY = frozenset({errno.EACCES, errno.EPERM, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""What a process may not or cannot do: it says nothing about the data."""


def read_journal(path: Path) -> JournalImage:
    """Read and verify the journal in the folder `path`: the environment, and the tail behind it.

    Raises `JournalDamaged`; `DirectoryRefused` if a newer version wrote it, or if this process is
    not able to read it.
    """
    try:
        image, checkpoint = _read_environment(path)
        return _read_tail(path, image, checkpoint)
    except (lmdb.Error, OSError) as error:
        code = error_code(error) if isinstance(error, lmdb.Error) else error.errno
        if code in INABILITY:
            raise DirectoryRefused(path, Refusal.UNUSABLE, str(error)) from error
        raise JournalDamaged(path, None, str(error)) from error


def _read_environment(path: Path) -> tuple[JournalImage, Checkpoint | None]:
    with open_environment(path, readonly=True) as environment:
        _refuse_rollback(path, environment.info()["last_txnid"])
        databases = open_databases(environment, DATABASE_NAMES)
        return read_with_checkpoint(path, environment, databases)


def _refuse_rollback(path: Path, found: int) -> None:
    """Raise JournalDamaged if a transaction that was durable is gone (S21)."""
    known = read_mark(path, MARK_FILE)
    if known > found:
        raise JournalDamaged(
            path,
            None,
            f"transaction {known} was durable, and the newest one found is {found}: a meta page is "
            "damaged, or the file was replaced by an older one",
        )


def _read_tail(path: Path, image: JournalImage, checkpoint: Checkpoint | None) -> JournalImage:
    files, known = Folder(path), read_mark(path, TAIL_MARK_FILE)
    if checkpoint is None:
        refuse_tail_before_checkpoint(path, files)
        refuse_lost_batch(path, known, 0)
        return image
    recovered = recover(path, checkpoint, files)
    refuse_lost_batch(path, known, recovered.sequence)
    return replayed(path, image, recovered)
