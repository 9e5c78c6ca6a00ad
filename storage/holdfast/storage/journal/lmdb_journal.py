"""The journal in LMDB (the environment `raft/` of S18): one synced transaction per batch.

When `commit` returns, a power cut cannot undo it; when it raises, nothing that depends on the batch
may leave the node. Databases: `entries` (index -> entry) and `named` (schema, anchor, hard state,
commit index, identity, membership, tail). It is a journal by itself until it has the record `tail`,
which says up to where it holds what a tail of files has gone through (`TailedJournal`). Then only
`checkpoint` writes to it, and versions that know no tail refuse it. Knows LMDB and nothing of the
engine; one thread at a time.
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
    identity_body,
    index_key,
    membership_body,
    pack_entry,
    pack_named,
    unpack_entry,
)
from holdfast.storage.errors import (
    DirectoryRefused,
    JournalDamaged,
    JournalFailed,
    Refusal,
    WriteRefused,
)
from holdfast.storage.journal.commit_mark import CommitMark
from holdfast.storage.journal.journal import HardState, JournalBatch, JournalImage
from holdfast.storage.journal.lmdb_image import (
    ANCHOR,
    COMMIT,
    DATABASE_NAMES,
    ENTRIES,
    HARD_STATE,
    IDENTITY,
    MEMBERSHIP,
    NAMED,
    SCHEMA,
    SCHEMA_ALONE,
    SCHEMA_TAILED,
    TAIL,
    read_checkpoint,
    read_image,
)
from holdfast.storage.journal.rules import Outline, advance, outline_of
from holdfast.storage.journal.tail_recovery import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holdfast.storage.journal.net_effect import NetEffect


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
            SCHEMA: SCHEMA_ALONE,
            ANCHOR: (0, 0),
            HARD_STATE: hard_state_body(HardState()),
            COMMIT: 0,
        }
        records = {(NAMED, name): pack_named(name, body) for name, body in named.items()}
        publish_environment(path, DATABASE_NAMES, records)

    def load(self) -> JournalImage:
        """Read and verify everything. Raises `JournalDamaged`, `DirectoryRefused` if it has a tail.

        Without the tail the image would be an old one.
        """
        if self.last_checkpoint() is not None:
            raise DirectoryRefused(self._path, Refusal.NEWER_SCHEMA, _TAILED)
        return self.load_before_tail()

    def load_before_tail(self) -> JournalImage:
        """Read and verify all that the environment holds, whether a tail follows on it or not."""
        image = read_image(self._path, self._environment, self._databases)
        self._outline = outline_of(image)
        return image

    def last_checkpoint(self) -> Checkpoint | None:
        """Read the last checkpoint; None if there was none. Raises `JournalDamaged`."""
        return read_checkpoint(self._path, self._environment, self._databases)

    def commit(self, batch: JournalBatch) -> None:
        """Make the batch durable. Raises `JournalFailed`, from then on at every call.

        Raises `WriteRefused`, with nothing written, if the batch contradicts the journal.
        """
        # The commit index is written even if it is unchanged: else there is no transaction (S21).
        records: dict[bytes, object] = {}
        if batch.commit_index is not None and self._outline is not None:
            records[COMMIT] = max(self._outline.commit_index, batch.commit_index)
        self._transact(lambda _outline: batch, records)

    def checkpoint(self, net: NetEffect, checkpoint: Checkpoint) -> None:
        """Make the net effect of batches of the tail durable, and how far that is. Raises the same.

        From the first one on, only a journal with a tail reads this environment.
        """
        self._transact(net.batch, {SCHEMA: SCHEMA_TAILED, TAIL: _tail_body(checkpoint)})

    def _transact(
        self, batch_for: Callable[[Outline], JournalBatch], records: dict[bytes, object]
    ) -> None:
        if self._failure is not None:
            raise self._failure
        if self._outline is None:
            raise RuntimeError("a journal must be loaded before its first commit")
        batch = batch_for(self._outline)
        after = advance(self._outline, batch, self._term_at)
        try:
            with self._environment.begin(write=True) as txn:
                self._write(txn, batch, records | _changed(self._outline, after))
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
        self, txn: lmdb.Transaction[bytes], batch: JournalBatch, records: dict[bytes, object]
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
        for name, body in records.items():
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


def _tail_body(checkpoint: Checkpoint) -> dict[str, object]:
    return {
        "journal": checkpoint.journal_id,
        "sequence": checkpoint.sequence,
        "file": checkpoint.file,
    }


_TAILED = "its journal goes on in files of a tail, which have to be read with it"


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
    if after.membership != before.membership and after.membership is not None:
        changed[MEMBERSHIP] = membership_body(after.membership)
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
