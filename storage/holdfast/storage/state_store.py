"""The replicated state and the event log on disk (the environment `state/` of S18).

A snapshot is one synced transaction: what changed since the last one, the event records since
then, and the index up to which all that is true. Knows keys and bytes; what they mean is the
business of `state_image` and `codec`. Writers are serialised here, readers may be any threads.
"""

from __future__ import annotations

import struct
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import lmdb

from holdfast.storage.environment import (
    DATA_FILE,
    LOCK_FILE,
    MAP_BYTES,
    error_code,
    open_databases,
    open_environment,
    publish_environment,
    reading,
    walk,
)
from holdfast.storage.errors import StateDamaged, WriteRefused, state_failure
from holdfast.storage.files import remove_tree, rename_durably
from holdfast.storage.records import (
    RecordDamaged,
    disk_key,
    pack_named,
    pack_record,
    unpack_named,
    unpack_record,
)
from holdfast.storage.shared_lock import SharedLock
from holdfast.storage.state_stream import StreamedRecord, encode_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

META = "meta"
EVENTS = "events"

Change = tuple[str, bytes, bytes | None]
"""(database, key, content; None removes the record). `state_image.Change` is one."""

# The order is the numbering of databases in a stream: only ever append to it.
DATABASE_NAMES = ("groups", "topics", "settings", "requests", EVENTS, "chains", META)
STATE_NAMES = tuple(name for name in DATABASE_NAMES if name != EVENTS)

SNAPSHOT = b"snapshot"
DROP_EVENTS_A_TRANSACTION = 10_000
_POSITION = struct.Struct(">QI")


@dataclass(frozen=True, slots=True)
class StateMeta:
    """What the stored state is: all entries up to (`index`, `term`), evolved.

    `log_time_ms` is the log time there (S8), `chain` the hash chain over all entries (S3).
    """

    index: int
    term: int
    log_time_ms: int
    chain: bytes


class StateRecord(NamedTuple):
    """One stored record."""

    database: str
    key: bytes
    content: bytes


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One record of the event log; its position is (index, ordinal in the entry) (S3)."""

    index: int
    ordinal: int
    payload: bytes


class StateStore:
    """The state in the directory `path`, which `create` has made.

    Raises `StateDamaged` if LMDB cannot open what is there.
    """

    def __init__(self, path: Path, *, map_bytes: int = MAP_BYTES) -> None:
        self.path = path
        self._map_bytes = map_bytes
        self._writing = threading.Lock()
        self._open = SharedLock()  # shared: the environment is in use; exclusive: it is replaced
        self._connect()

    @staticmethod
    def create(path: Path) -> None:
        """Make an empty state appear at `path`, durably, whole or not at all."""
        publish_environment(path, DATABASE_NAMES, {})

    def meta(self) -> StateMeta | None:
        """What the last snapshot covers; None if there was none. Raises `StateDamaged`."""
        with self._open.shared(), self._reading() as txn:
            return self._meta(txn)

    def load(self) -> Iterator[StateRecord]:
        """Every record but the event log's, verified. Raises `StateDamaged`.

        Holds a read transaction until it is exhausted: for a start, not for a node that runs.
        """
        with self._open.shared(), self._reading() as txn:
            for name in STATE_NAMES:
                yield from read_records(self.path, txn, name, self._databases[name])

    def events(self, start: tuple[int, int], limit: int) -> list[EventRecord]:
        """At most `limit` records of the event log from position `start` on, in order, verified."""
        with self._open.shared(), self._reading() as txn:
            found: list[EventRecord] = []
            for key, stored in walk(txn, self._databases[EVENTS], _POSITION.pack(*start)):
                if len(found) == limit:
                    break
                record = _verified(self.path, EVENTS, key, stored)
                index, ordinal = _POSITION.unpack(record.key)
                found.append(EventRecord(index, ordinal, record.content))
            return found

    def write_snapshot(
        self, changes: Iterable[Change], events: Iterable[EventRecord], meta: StateMeta
    ) -> None:
        """All of it in one synced transaction, or nothing (S18).

        Raises `DiskFull` or `StateFailed` with the state as it was, `WriteRefused` if the snapshot
        or an event is older than what is stored.
        """

        def write(txn: lmdb.Transaction[bytes]) -> None:
            stored = self._meta(txn)
            if stored is not None and meta.index < stored.index:
                raise WriteRefused(f"snapshot {meta.index} is older than {stored.index}")
            for change in changes:
                self._apply(txn, change)
            self._append_events(txn, events)
            txn.put(SNAPSHOT, _pack_meta(meta), db=self._databases[META])

        self._transact("snapshot", write)

    def drop_events(self, through: tuple[int, int]) -> None:
        """Forget the event log up to and including a position: its segments are durable (S22).

        In transactions of 10,000, so that a snapshot need not wait long.
        """
        end = _POSITION.pack(*through)
        left = True
        while left:
            left = self._drop_events_batch(end)

    def copy_to(self, path: Path) -> None:
        """Write a copy of this moment to the new directory `path` on the same disk.

        Streams are read from it, never from a long read transaction here (S18). It is not synced:
        a copy never outlives the process that wanted it (`DataDirectory` removes leftovers).
        """
        remove_tree(path)
        path.mkdir(mode=0o750)
        try:
            with self._open.shared():
                self._environment.copy(str(path), compact=True)
        except lmdb.Error as error:
            remove_tree(path)
            raise state_failure(path, "copy", error, error_code(error)) from error

    def adopt(self, incoming: Path) -> None:
        """Put the sealed environment `incoming` in the place of this one; see `StateInstall`."""
        with self._writing, self._open.exclusive():
            self._environment.close()
            try:
                (self.path / LOCK_FILE).unlink(missing_ok=True)
                rename_durably(incoming / DATA_FILE, self.path / DATA_FILE)
                remove_tree(incoming)
            except OSError as error:
                raise state_failure(self.path, "install", error, error.errno or 0) from error
            finally:
                self._connect()

    def close(self) -> None:
        """Release the files, when nobody reads or writes any more."""
        with self._writing, self._open.exclusive():
            self._environment.close()

    def _connect(self) -> None:
        try:
            self._environment = open_environment(self.path, map_bytes=self._map_bytes)
            self._databases = open_databases(self._environment, DATABASE_NAMES)
        except lmdb.Error as error:
            raise StateDamaged(self.path, str(error)) from error

    def _reading(self) -> lmdb.Transaction[bytes]:
        return reading(self._environment)

    def _transact(self, operation: str, write: Callable[[lmdb.Transaction[bytes]], None]) -> None:
        with self._writing, self._open.shared():
            try:
                with self._environment.begin(write=True) as txn:
                    write(txn)
            except lmdb.Error as error:
                raise state_failure(self.path, operation, error, error_code(error)) from error

    def _apply(self, txn: lmdb.Transaction[bytes], change: Change) -> None:
        name, key, content = change
        if name == EVENTS or (name, key) == (META, SNAPSHOT):
            raise WriteRefused(f"{key!r} in {name} is not written as a change")
        if content is None:
            txn.delete(disk_key(key), db=self._databases[name])
        else:
            txn.put(disk_key(key), pack_record(name, key, content), db=self._databases[name])

    def _append_events(self, txn: lmdb.Transaction[bytes], events: Iterable[EventRecord]) -> None:
        database = self._databases[EVENTS]
        for event in events:
            key = _POSITION.pack(event.index, event.ordinal)
            if not txn.put(key, pack_record(EVENTS, key, event.payload), db=database, append=True):
                position = f"({event.index}, {event.ordinal})"
                raise WriteRefused(f"the event at {position} is not behind the last one")

    def _drop_events_batch(self, end: bytes) -> bool:
        database, dropped = self._databases[EVENTS], 0

        def drop(txn: lmdb.Transaction[bytes]) -> None:
            nonlocal dropped
            cursor = txn.cursor(database)
            while dropped < DROP_EVENTS_A_TRANSACTION and cursor.first() and cursor.key() <= end:
                txn.delete(cursor.key(), db=database)
                dropped += 1

        self._transact("removal of sealed events", drop)
        return dropped == DROP_EVENTS_A_TRANSACTION

    def _meta(self, txn: lmdb.Transaction[bytes]) -> StateMeta | None:
        return read_meta(self.path, txn, self._databases[META])


def read_meta(
    path: Path, txn: lmdb.Transaction[bytes], database: lmdb._Database
) -> StateMeta | None:
    """What the last snapshot covers, verified. Raises `StateDamaged`."""
    stored = txn.get(SNAPSHOT, db=database)
    if stored is None:
        return None
    try:
        return _unpack_meta(stored)
    except RecordDamaged as error:
        raise StateDamaged(path, str(error), database=META, key=SNAPSHOT) from error


def read_records(
    path: Path, txn: lmdb.Transaction[bytes], name: str, database: lmdb._Database
) -> Iterator[StateRecord]:
    """All records of one database, verified, `meta`'s own record aside. Raises `StateDamaged`."""
    seen = 0
    try:
        for key, stored in walk(txn, database):
            seen += 1
            if (name, key) != (META, SNAPSHOT):
                yield _verified(path, name, key, stored)
        promised = txn.stat(database)["entries"]
    except lmdb.Error as error:
        raise StateDamaged(path, str(error), database=name) from error
    if seen != promised:
        raise StateDamaged(path, f"{seen} of {promised} records were found", database=name)


def read_chunks(copy: Path, size: int) -> Iterator[bytes]:
    """A copy made by `copy_to` as chunks of at most `size` bytes, for `StateInstall`.

    Records, not pages, travel: the receiver may have another page size or version of LMDB, and
    verifies each record before it stores it. Raises `StateDamaged`.
    """
    with open_environment(copy, readonly=True) as environment:
        databases = open_databases(environment, DATABASE_NAMES)
        with reading(environment) as txn:
            yield from encode_stream(_stored_records(copy, txn, databases), size)


def _stored_records(
    path: Path, txn: lmdb.Transaction[bytes], databases: dict[str, lmdb._Database]
) -> Iterator[StreamedRecord]:
    read_meta(path, txn, databases[META])
    for number, name in enumerate(DATABASE_NAMES):
        for key, stored in walk(txn, databases[name]):
            if (name, key) != (META, SNAPSHOT):
                _verified(path, name, key, stored)
            yield StreamedRecord(number, key, stored)


def _verified(path: Path, name: str, key: bytes, stored: bytes) -> StateRecord:
    try:
        return StateRecord(name, *unpack_record(name, key, stored))
    except RecordDamaged as error:
        raise StateDamaged(path, str(error), database=name, key=key) from error


def _pack_meta(meta: StateMeta) -> bytes:
    return pack_named(SNAPSHOT, [meta.index, meta.term, meta.log_time_ms, meta.chain.hex()])


def _unpack_meta(stored: bytes) -> StateMeta:
    match unpack_named(SNAPSHOT, stored):
        case [int(index), int(term), int(log_time_ms), str(chain)]:
            return StateMeta(index, term, log_time_ms, bytes.fromhex(chain))
        case other:
            raise RecordDamaged(f"a snapshot's description was expected, not {other!r}")
