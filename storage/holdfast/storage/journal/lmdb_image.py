"""What the journal's environment in LMDB holds, read and verified: the image, and its checkpoint.

Databases: `entries` (index -> entry) and `named` (schema, anchor, hard state, commit index,
identity, membership, tail). Reads only; `lmdb_journal` writes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import lmdb

from holdfast.storage.disk.environment import reading, walk
from holdfast.storage.disk.records import (
    RecordDamaged,
    hard_state_of,
    identity_of,
    index_of,
    membership_of,
    number_of,
    pair_of,
    unpack_entry,
    unpack_named,
)
from holdfast.storage.errors import DirectoryRefused, JournalDamaged, Refusal
from holdfast.storage.journal.journal import Entry, JournalImage
from holdfast.storage.journal.rules import fault_of, outline_of
from holdfast.storage.journal.tail_recovery import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.storage.disk.environment import Databases

SCHEMA_ALONE = 1
SCHEMA_TAILED = 2
ENTRIES = "entries"
NAMED = "named"
DATABASE_NAMES = (ENTRIES, NAMED)

SCHEMA = b"schema"
ANCHOR = b"anchor"
HARD_STATE = b"hard_state"
COMMIT = b"commit"
IDENTITY = b"identity"
MEMBERSHIP = b"membership"
TAIL = b"tail"


def read_image(path: Path, environment: lmdb.Environment, databases: Databases) -> JournalImage:
    """Read and verify everything that a journal holds. Raises `JournalDamaged`."""
    return read_with_checkpoint(path, environment, databases)[0]


def read_with_checkpoint(
    path: Path, environment: lmdb.Environment, databases: Databases
) -> tuple[JournalImage, Checkpoint | None]:
    """Read and verify everything, and up to where it holds the tail. Raises as its two parts do."""
    try:
        with reading(environment) as txn:
            stored = dict(walk(txn, databases[NAMED]))
            image, checkpoint = _named_of(path, stored), _checkpoint_in(path, stored)
            entries = tuple(read_entries(path, txn, databases[ENTRIES], image.anchor[0]))
    except lmdb.Error as error:
        raise JournalDamaged(path, None, str(error)) from error
    image = replace(image, entries=entries)
    fault = fault_of(outline_of(image))
    if fault is not None:
        raise JournalDamaged(path, None, fault)
    return image, checkpoint


def read_entries(
    path: Path, txn: lmdb.Transaction[bytes], database: lmdb._Database, anchor: int
) -> Iterator[Entry]:
    """Yield all entries in order, each verified: checksum, no gap, terms that never fall."""
    expected, term = anchor + 1, 0
    for key, stored in walk(txn, database):
        try:
            entry = unpack_entry(index_of(key), stored)
        except RecordDamaged as error:
            raise JournalDamaged(path, expected, str(error)) from error
        if entry.index != expected:
            raise JournalDamaged(path, expected, f"entry {entry.index} was found in its place")
        if entry.term < term:
            raise JournalDamaged(path, expected, f"its term {entry.term} is below {term}")
        yield entry
        expected, term = expected + 1, entry.term
    promised = txn.stat(database)["entries"]
    if promised != expected - anchor - 1:
        raise JournalDamaged(path, None, f"{promised} entries were stored, not all were found")


def read_checkpoint(
    path: Path, environment: lmdb.Environment, databases: Databases
) -> Checkpoint | None:
    """Read up to where the environment holds the tail; None if there is no tail.

    Raises `JournalDamaged`, `DirectoryRefused` if a newer version wrote it.
    """
    try:
        with reading(environment) as txn:
            stored = dict(walk(txn, databases[NAMED]))
    except lmdb.Error as error:
        raise JournalDamaged(path, None, str(error)) from error
    return _checkpoint_in(path, stored)


def _checkpoint_in(path: Path, stored: dict[bytes, bytes]) -> Checkpoint | None:
    try:
        if _schema_of(path, stored) == SCHEMA_ALONE:
            return None
        return _checkpoint_of(_body(stored, TAIL))
    except RecordDamaged as error:
        raise JournalDamaged(path, None, str(error)) from error


def _named_of(path: Path, stored: dict[bytes, bytes]) -> JournalImage:
    """Read the named records as an image without entries."""
    try:
        _schema_of(path, stored)
        return JournalImage(
            anchor=pair_of(_body(stored, ANCHOR)),
            hard_state=hard_state_of(_body(stored, HARD_STATE)),
            commit_index=number_of(_body(stored, COMMIT)),
            identity=identity_of(_body(stored, IDENTITY)) if IDENTITY in stored else None,
            membership=membership_of(_body(stored, MEMBERSHIP)) if MEMBERSHIP in stored else None,
        )
    except RecordDamaged as error:
        raise JournalDamaged(path, None, str(error)) from error


def _schema_of(path: Path, stored: dict[bytes, bytes]) -> int:
    schema = number_of(_body(stored, SCHEMA))
    if schema > SCHEMA_TAILED:
        raise DirectoryRefused(path, Refusal.NEWER_SCHEMA, _newer(schema))
    return schema


def _checkpoint_of(body: object) -> Checkpoint:
    match body:
        case {"journal": str(journal_id), "sequence": int(sequence), "file": int(file)}:
            return Checkpoint(journal_id, sequence, file)
        case _:
            raise RecordDamaged(f"the checkpoint of a tail was expected, not {body!r}")


def _body(stored: dict[bytes, bytes], name: bytes) -> object:
    if name not in stored:
        raise RecordDamaged(f"the record {name.decode()!r} is missing")
    return unpack_named(name, stored[name])


def _newer(schema: int) -> str:
    return (
        f"its journal has schema {schema}, this version of Holdfast knows {SCHEMA_TAILED}. "
        f"Start the node with the version that wrote it, or a later one."
    )
