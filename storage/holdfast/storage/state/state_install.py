"""Installing a streamed snapshot: a new state beside the old one, synced, renamed over it (S18).

Crash-safe at every point by one rule: the new environment is built in `state.incoming/`, and the
rename of its one data file onto `state/data.mdb` is the install. A `state.incoming/` that is found
at a start was not installed, or was and is empty: either way it is removed. At every moment there
is a complete state under its own name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lmdb

from holdfast.storage.disk.environment import (
    DATA_FILE,
    error_code,
    new_environment,
    open_databases,
    reading,
)
from holdfast.storage.disk.files import remove_tree, sync_path
from holdfast.storage.disk.records import RecordDamaged, unpack_record
from holdfast.storage.errors import InstallRefused, StateDamaged, state_failure
from holdfast.storage.state.rules import StateMeta
from holdfast.storage.state.state_records import (
    DATABASE_NAMES,
    META,
    SNAPSHOT,
    check_counts,
    read_meta,
)
from holdfast.storage.state.state_stream import StreamDecoder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from holdfast.storage.state.state_store import StateStore
    from holdfast.storage.state.state_stream import StreamedRecord


def incoming_path(state: Path) -> Path:
    """Return where a snapshot for the state at `state` is built."""
    return state.with_name(state.name + ".incoming")


class StateInstall:
    """One install: `add` chunks in order, `seal`, `install`; or `abort`. One thread at a time.

    A store has at most one install under way: beginning another discards the first.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._decoder = StreamDecoder()
        self._prepared: StateMeta | None = None
        self._sealed = False
        self._path = incoming_path(store.path)
        remove_tree(self._path)
        # Unsynced until `seal`: a power cut before that leaves what a start removes anyway.
        try:
            self._environment = new_environment(self._path, DATABASE_NAMES, sync=False)
        except lmdb.Error as error:
            raise state_failure(self._path, "install", error, error_code(error)) from error
        self._databases = open_databases(self._environment, DATABASE_NAMES)

    def add(self, chunk: bytes) -> None:
        """Store the records that the chunk completes.

        Raises `InstallRefused`, `DiskFull`, `StateFailed`.
        """
        records = self._decoder.feed(chunk)
        try:
            with self._environment.begin(write=True) as txn:
                for record in records:
                    self._put(txn, record)
        except lmdb.Error as error:
            raise state_failure(self._path, "install", error, error_code(error)) from error

    def seal(self) -> StateMeta:
        """Make the snapshot durable beside the state in use; return what it covers. Slow.

        Raises `InstallRefused` if it is incomplete or older than the state in use, `DiskFull` or
        `StateFailed` if it cannot be made durable.
        """
        meta = self._checked_meta()
        try:
            self._environment.sync(force=True)
        except lmdb.Error as error:
            raise state_failure(self._path, "install", error, error_code(error)) from error
        self._environment.close()
        sync_path(self._path / DATA_FILE)
        sync_path(self._path)
        self._sealed = True
        return meta

    def install(self) -> None:
        """Make the sealed snapshot the node's state, durably. Fast: a rename and its sync.

        Raises `StateFailed` with the state in use as before.
        """
        if not self._sealed:
            raise RuntimeError("an install must be sealed first")
        self._store.adopt(self._path)

    def abort(self) -> None:
        """Drop the snapshot; the state in use stays as it is."""
        self._environment.close()
        remove_tree(self._path)

    def _put(self, txn: lmdb.Transaction[bytes], record: StreamedRecord) -> None:
        number, key, stored = record
        if number >= len(DATABASE_NAMES):
            raise InstallRefused(f"it has a database number {number}, from a newer version")
        name = DATABASE_NAMES[number]
        try:
            if (name, key) != (META, SNAPSHOT):
                unpack_record(name, key, stored)
        except RecordDamaged as error:
            raise InstallRefused(f"record {key.hex()} in {name}: {error}") from error
        txn.put(key, stored, db=self._databases[name])

    def _checked_meta(self) -> StateMeta:
        if not self._decoder.whole:
            raise InstallRefused("it ends before its end")
        with reading(self._environment) as txn:
            try:
                check_counts(self._path, txn, self._databases)
            except StateDamaged as damage:
                raise InstallRefused(damage.damage) from damage
            meta = read_meta(self._path, txn, self._databases[META])
        if meta is None:
            raise InstallRefused("it does not say what it covers")
        present = self._store.meta()
        if present is not None and meta.index < present.index:
            raise InstallRefused(f"it covers {meta.index}, this node is at {present.index}")
        return meta


def install_from(store: StateStore, chunks: Iterable[bytes]) -> StateMeta:
    """Install a snapshot from its chunks; raises as `StateInstall` does, after cleaning up."""
    install = StateInstall(store)
    try:
        for chunk in chunks:
            install.add(chunk)
        meta = install.seal()
        install.install()
    except BaseException:
        install.abort()
        raise
    return meta
