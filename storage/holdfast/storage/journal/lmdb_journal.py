"""The journal in LMDB (the environment `raft/` of S18): one synced transaction per batch.

When `commit` returns, a power cut cannot undo it; when it raises, nothing that depends on the batch
may leave the node. Databases: `entries` (index -> entry) and `named` (schema, anchor, hard state,
commit index, identity). Knows LMDB and nothing of the engine; one thread at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lmdb

from holdfast.storage.disk.environment import (
    MAP_BYTES,
    error_code,
    open_databases,
    open_environment,
    publish_environment,
    reading,
    walk,
)
from holdfast.storage.disk.records import (
    RecordDamaged,
    hard_state_body,
    hard_state_of,
    identity_body,
    identity_of,
    index_key,
    index_of,
    number_of,
    pack_entry,
    pack_named,
    pair_of,
    unpack_entry,
    unpack_named,
)
from holdfast.storage.errors import (
    DirectoryRefused,
    JournalDamaged,
    JournalFailed,
    Refusal,
    WriteRefused,
)
from holdfast.storage.journal.commit_mark import CommitMark
from holdfast.storage.journal.journal import Entry, HardState, Identity, JournalBatch, JournalImage
from holdfast.storage.journal.rules import Outline, advance, fault_of, outline_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.storage.disk.environment import Databases

SCHEMA_VERSION = 1
ENTRIES = "entries"
NAMED = "named"
DATABASE_NAMES = (ENTRIES, NAMED)

SCHEMA = b"schema"
ANCHOR = b"anchor"
HARD_STATE = b"hard_state"
COMMIT = b"commit"
IDENTITY = b"identity"


class LmdbJournal:
    """A `Journal` in the directory `path`, which `create` has made.

    Raises `JournalDamaged` if LMDB cannot open what is at `path`, or if it lacks our records: an
    environment is renamed to `path` only when it has them.
    """

    def __init__(self, path: Path, *, map_bytes: int = MAP_BYTES) -> None:
        self._path = path
        self._failure: JournalFailed | None = None
        self._outline: Outline | None = None
        try:
            self._environment = open_environment(path, map_bytes=map_bytes)
            self._databases = open_databases(self._environment, DATABASE_NAMES)
            self._mark = CommitMark(path)
        except lmdb.Error as error:
            raise JournalDamaged(path, None, str(error)) from error
        except OSError as error:
            raise JournalFailed(path, str(error), error.errno or 0) from error

    @staticmethod
    def create(path: Path) -> None:
        """Make an empty journal at `path`, durably, whole or not at all."""
        named: dict[bytes, object] = {
            SCHEMA: SCHEMA_VERSION,
            ANCHOR: (0, 0),
            HARD_STATE: hard_state_body(HardState()),
            COMMIT: 0,
        }
        records = {(NAMED, name): pack_named(name, body) for name, body in named.items()}
        publish_environment(path, DATABASE_NAMES, records)

    def load(self) -> JournalImage:
        """Read and verify everything. Raises `JournalDamaged`."""
        image = read_image(self._path, self._environment, self._databases)
        self._outline = outline_of(image)
        return image

    def commit(self, batch: JournalBatch) -> None:
        """Make the batch durable. Raises `JournalFailed`, from then on at every call.

        Raises `WriteRefused`, with nothing written, if the batch contradicts the journal.
        """
        if self._failure is not None:
            raise self._failure
        if self._outline is None:
            raise RuntimeError("a journal must be loaded before its first commit")
        after = advance(self._outline, batch, self._term_at)
        try:
            with self._environment.begin(write=True) as txn:
                self._write(txn, batch, self._outline, after)
        except lmdb.Error as error:
            self._failure = JournalFailed(self._path, str(error), error_code(error))
            raise self._failure from error
        self._mark.note(self._environment.info()["last_txnid"])
        self._outline = after

    def close(self) -> None:
        """Release the files."""
        self._environment.close()
        self._mark.close()

    def _write(
        self, txn: lmdb.Transaction[bytes], batch: JournalBatch, before: Outline, after: Outline
    ) -> None:
        entries = self._databases[ENTRIES]
        if batch.reset_to is not None:
            txn.drop(entries, delete=False)
        if batch.truncate_from is not None:
            _delete_from(txn, entries, batch.truncate_from)
        for entry in batch.append:
            if not txn.put(index_key(entry.index), pack_entry(entry), db=entries, append=True):
                # Cannot be: `advance` has seen the last index. Raised, it undoes the transaction.
                raise WriteRefused(f"entry {entry.index} is not behind the last one on disk")
        if batch.cut_to is not None:
            _delete_through(txn, entries, batch.cut_to[0])
        changed = _changed(before, after)
        if batch.commit_index is not None:
            changed[COMMIT] = after.commit_index  # even if unchanged: see S21
        for name, body in changed.items():
            txn.put(name, pack_named(name, body), db=self._databases[NAMED])

    def _term_at(self, index: int) -> int:
        with reading(self._environment) as txn:
            stored = txn.get(index_key(index), db=self._databases[ENTRIES])
        if stored is None:
            raise JournalDamaged(self._path, index, "the entry is missing")
        try:
            return unpack_entry(index, stored).term
        except RecordDamaged as error:
            raise JournalDamaged(self._path, index, str(error)) from error


def read_image(path: Path, environment: lmdb.Environment, databases: Databases) -> JournalImage:
    """Read and verify everything that a journal holds. Raises `JournalDamaged`."""
    try:
        with reading(environment) as txn:
            image = _read_named(path, txn, databases[NAMED])
            entries = tuple(read_entries(path, txn, databases[ENTRIES], image.anchor[0]))
    except lmdb.Error as error:
        raise JournalDamaged(path, None, str(error)) from error
    image = JournalImage(
        entries, image.anchor, image.hard_state, image.commit_index, image.identity
    )
    fault = fault_of(outline_of(image))
    if fault is not None:
        raise JournalDamaged(path, None, fault)
    return image


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


def _read_named(path: Path, txn: lmdb.Transaction[bytes], database: lmdb._Database) -> JournalImage:
    """Read the named records as an image without entries."""
    stored = dict(walk(txn, database))
    try:
        schema = number_of(_body(stored, SCHEMA))
        if schema > SCHEMA_VERSION:
            raise DirectoryRefused(path, Refusal.NEWER_SCHEMA, _newer(schema))
        return JournalImage(
            anchor=pair_of(_body(stored, ANCHOR)),
            hard_state=hard_state_of(_body(stored, HARD_STATE)),
            commit_index=number_of(_body(stored, COMMIT)),
            identity=identity_of(_body(stored, IDENTITY)) if IDENTITY in stored else None,
        )
    except RecordDamaged as error:
        raise JournalDamaged(path, None, str(error)) from error


def read_identity(
    path: Path, txn: lmdb.Transaction[bytes], databases: Databases
) -> Identity | None:
    """Read the disk's identity without the entries. Raises `JournalDamaged`."""
    return _read_named(path, txn, databases[NAMED]).identity


def _body(stored: dict[bytes, bytes], name: bytes) -> object:
    if name not in stored:
        raise RecordDamaged(f"the record {name.decode()!r} is missing")
    return unpack_named(name, stored[name])


def _newer(schema: int) -> str:
    return (
        f"its journal has schema {schema}, this version of Holdfast knows {SCHEMA_VERSION}. "
        f"Start the node with the version that wrote it, or a later one."
    )


def _changed(before: Outline, after: Outline) -> dict[bytes, object]:
    """Return the named records that differ."""
    changed: dict[bytes, object] = {}
    if after.anchor != before.anchor:
        changed[ANCHOR] = after.anchor
    if after.hard_state != before.hard_state:
        changed[HARD_STATE] = hard_state_body(after.hard_state)
    if after.commit_index != before.commit_index:
        changed[COMMIT] = after.commit_index
    if after.identity != before.identity and after.identity is not None:
        changed[IDENTITY] = identity_body(after.identity)
    return changed


def _delete_from(txn: lmdb.Transaction[bytes], database: lmdb._Database, first: int) -> None:
    keys = [key for key, _ in walk(txn, database, index_key(first))]
    for key in keys:
        txn.delete(key, db=database)


def _delete_through(txn: lmdb.Transaction[bytes], database: lmdb._Database, last: int) -> None:
    end = index_key(last)
    cursor = txn.cursor(database)
    while cursor.first() and cursor.key() <= end:
        txn.delete(cursor.key(), db=database)
