"""The replicated state and the event log on disk (the environment `state/` of S18).

A snapshot is one synced transaction: what changed since the last one, the event records since
then, and the index that it covers. Knows keys and bytes; `codec` knows what they mean. Writers are
serialised here; any thread may read.
"""

from __future__ import annotations

import json
import struct
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import lmdb

from holdfast.storage.disk.environment import (
    DATA_FILE,
    LOCK_FILE,
    MAP_BYTES,
    error_code,
    open_databases,
    open_environment,
    open_later_databases,
    publish_environment,
    reading,
    walk,
)
from holdfast.storage.disk.files import remove_tree, rename_durably
from holdfast.storage.disk.records import (
    RecordDamaged,
    disk_key,
    pack_named,
    pack_record,
    quick_test,
    unpack_named,
    unpack_record,
)
from holdfast.storage.disk.shared_environment import SharedEnvironment
from holdfast.storage.errors import (
    StateBusy,
    StateDamaged,
    WriteOvertaken,
    WriteRefused,
    state_failure,
)
from holdfast.storage.state.rules import StateMeta, check_event, check_snapshot
from holdfast.storage.state.state_stream import StreamedRecord, encode_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from holdfast.storage.disk.environment import Databases
    from holdfast.storage.disk.shared_environment import Opened

META = "meta"
EVENTS = "events"

Change = tuple[str, bytes, bytes | None]
"""(database, key, content; None removes the record). `state_image.Change` is one."""

# The order is the numbering of databases in a stream: only ever append to it.
_FIRST_NAMES = ("groups", "topics", "settings", "requests", EVENTS, "chains", META)
_LATER_NAMES = ("rebalances",)
"""Databases that a directory of version 0.1.0 lacks until a node of this version has opened it."""
DATABASE_NAMES = _FIRST_NAMES + _LATER_NAMES
STATE_NAMES = tuple(name for name in DATABASE_NAMES if name != EVENTS)

SNAPSHOT = b"snapshot"
COUNTS = b"counts"
"""The record in `meta` of how many records each later database has; 0.1.0 has none.

It is no part of the snapshot's description, because 0.1.0 would take a longer one for damage and
set the directory aside. So that version finds this one sound, and refuses its records' version.
"""
DROP_EVENTS_A_TRANSACTION = 2_000
"""So few that a snapshot need not wait long; and LMDB keeps the memory of its largest
transaction's pages for the next one."""
CLOSE_SECONDS = 10.0
"""How long `close` waits: a page of events takes milliseconds, a copy of a large state seconds."""
_POSITION = struct.Struct(">QI")


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

    Raises `StateDamaged` if LMDB cannot open what is there, `DiskFull` or `StateFailed` if it
    cannot make the databases that an older version lacked.
    """

    def __init__(
        self,
        path: Path,
        *,
        map_bytes: int = MAP_BYTES,
        readonly: bool = False,
        beside_writer: bool = False,
    ) -> None:
        """`readonly`: only for a state that nobody writes meanwhile, since it takes no lock.

        `beside_writer`: to read a state that another process writes.
        """
        self.path = path
        self._map_bytes = map_bytes
        self._readonly, self._beside_writer = readonly, beside_writer
        self._writing = threading.Lock()
        self._shared = SharedEnvironment(*self._connect(path))

    @staticmethod
    def create(path: Path) -> None:
        """Make an empty state appear at `path`, durably, whole or not at all."""
        publish_environment(path, DATABASE_NAMES, {})

    def meta(self) -> StateMeta | None:
        """Read what the last snapshot covers; None if there was none. Raises `StateDamaged`."""
        with self._shared.using("meta") as opened, reading(opened.environment) as txn:
            return read_meta(self.path, txn, opened.databases[META])

    def load(self) -> Iterator[StateRecord]:
        """Yield every record but the event log's, verified. Raises `StateDamaged`.

        Holds a read transaction until it is exhausted: for a start, not for a running node.
        """
        with self._shared.using("load") as opened, reading(opened.environment) as txn:
            for name in STATE_NAMES:
                if name in opened.databases:  # read-only, an older version's state lacks some
                    yield from read_records(self.path, txn, name, opened.databases[name])

    def events(self, start: tuple[int, int], limit: int) -> list[EventRecord]:
        """Read at most `limit` records of the event log from position `start` on, verified."""
        with self._shared.using("events") as opened, reading(opened.environment) as txn:
            found: list[EventRecord] = []
            for key, stored in walk(txn, opened.databases[EVENTS], _POSITION.pack(*start)):
                if len(found) == limit:
                    break
                record = _verified(self.path, EVENTS, key, stored)
                index, ordinal = _POSITION.unpack(record.key)
                found.append(EventRecord(index, ordinal, record.content))
            return found

    def write_snapshot(
        self, changes: Iterable[Change], events: Iterable[EventRecord], meta: StateMeta
    ) -> None:
        """Write a snapshot in one synced transaction, completely or not at all (S18).

        Raises `DiskFull` or `StateFailed` with the state as it was, `WriteRefused` if the snapshot
        or an event is older than what is stored, `StateContradicted` if it cannot follow on that,
        `WriteOvertaken` if an install came in between.
        """

        def write(opened: Opened, txn: lmdb.Transaction[bytes]) -> None:
            stored = read_meta(self.path, txn, opened.databases[META])
            check_snapshot(stored, meta)
            for change in changes:
                _apply(opened, txn, change)
            _append_events(opened, txn, events, meta)
            _count_later(opened, txn)
            txn.put(SNAPSHOT, _pack_meta(meta), db=opened.databases[META])

        self._transact("snapshot", write)

    def event_count(self) -> int:
        """Return how many records the event log has here."""
        with self._shared.using("count") as opened, reading(opened.environment) as txn:
            return int(txn.stat(opened.databases[EVENTS])["entries"])

    def drop_events(
        self,
        through: tuple[int, int],
        *,
        generation: int | None = None,
        go_on: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Delete the event log up to and including a position: its segments are durable (S22).

        `generation`: that of the sealed state; raises `WriteOvertaken` if another one was installed
        since. `go_on`: asked after each transaction; may rest, since nothing is held meanwhile.
        Returns False if it said no.
        """
        end = _POSITION.pack(*through)
        while self._drop_events_batch(end, generation):
            if not go_on():
                return False
        return True

    def release_dead_readers(self) -> None:
        """Let LMDB reuse the pages that a process was reading when it was killed."""
        with self._shared.using("readers") as opened:
            opened.environment.reader_check()

    @property
    def generation(self) -> int:
        """How many snapshots were installed since this store was opened."""
        return self._shared.generation

    def copy_to(self, path: Path) -> None:
        """Write a copy of this moment to the new directory `path` on the same disk.

        Streams are read from it, never from a long read transaction here (S18). It is not synced:
        a copy never outlives the process that made it (`DataDirectory` removes leftovers).
        """
        remove_tree(path)
        path.mkdir(mode=0o750)
        try:
            with self._shared.using("copy") as opened:
                opened.environment.copy(str(path), compact=True)
        except lmdb.Error as error:
            remove_tree(path)
            raise state_failure(path, "copy", error, error_code(error)) from error

    def adopt(self, incoming: Path) -> None:
        """Put the sealed environment `incoming` in the place of this one; see `StateInstall`.

        Does not wait: readers finish on the old environment, and a write still under way there is
        overtaken. The new one is opened where it was built; its files keep their identity when they
        are renamed. Raises `StateFailed` with the state in use as before.
        """
        environment, databases = self._connect(incoming)
        try:
            (incoming / LOCK_FILE).replace(self.path / LOCK_FILE)
            rename_durably(incoming / DATA_FILE, self.path / DATA_FILE)
        except OSError as error:
            environment.close()
            raise state_failure(self.path, "install", error, error.errno or 0) from error
        self._shared.replace(environment, databases)
        remove_tree(incoming)

    def close(self, within_s: float = CLOSE_SECONDS) -> None:
        """Release the files when the last read or write has ended.

        Raises `StateBusy` if that takes longer: then they stay open until the process ends.
        """
        if left := self._shared.close(within_s):
            raise StateBusy(self.path, left, within_s)

    def _connect(self, path: Path) -> tuple[lmdb.Environment, Databases]:
        try:
            environment = open_environment(
                path,
                map_bytes=self._map_bytes,
                readonly=self._readonly,
                beside_writer=self._beside_writer,
            )
        except lmdb.Error as error:
            raise StateDamaged(path, str(error)) from error
        try:
            create = not (self._readonly or self._beside_writer)
            return environment, _databases_of(path, environment, create=create)
        except BaseException:
            environment.close()
            raise

    def _transact(
        self, operation: str, write: Callable[[Opened, lmdb.Transaction[bytes]], None]
    ) -> None:
        with self._writing, self._shared.using(operation) as opened:
            try:
                with opened.environment.begin(write=True) as txn:
                    write(opened, txn)
            except lmdb.Error as error:
                raise state_failure(self.path, operation, error, error_code(error)) from error
            if opened.replaced:
                raise WriteOvertaken(f"a snapshot was installed during: {operation}")

    def _drop_events_batch(self, end: bytes, generation: int | None) -> bool:
        dropped = 0

        def drop(opened: Opened, txn: lmdb.Transaction[bytes]) -> None:
            nonlocal dropped
            if generation not in {None, opened.generation}:
                raise WriteOvertaken("a snapshot was installed after these events were sealed")
            cursor = txn.cursor(opened.databases[EVENTS])
            while dropped < DROP_EVENTS_A_TRANSACTION and cursor.first() and cursor.key() <= end:
                cursor.delete()
                dropped += 1

        self._transact("removal of sealed events", drop)
        return dropped == DROP_EVENTS_A_TRANSACTION


def _apply(opened: Opened, txn: lmdb.Transaction[bytes], change: Change) -> None:
    name, key, content = change
    if name == EVENTS or (name == META and key in {SNAPSHOT, COUNTS}):
        raise WriteRefused(f"{key!r} in {name} is not written as a change")
    if content is None:
        txn.delete(disk_key(key), db=opened.databases[name])
    else:
        txn.put(disk_key(key), pack_record(name, key, content), db=opened.databases[name])


def _append_events(
    opened: Opened, txn: lmdb.Transaction[bytes], events: Iterable[EventRecord], meta: StateMeta
) -> None:
    database = opened.databases[EVENTS]
    for event in events:
        check_event(meta, event.index)
        key = _POSITION.pack(event.index, event.ordinal)
        if not txn.put(key, pack_record(EVENTS, key, event.payload), db=database, append=True):
            position = f"({event.index}, {event.ordinal})"
            raise WriteRefused(f"the event at {position} is not behind the last one")


def read_meta(
    path: Path, txn: lmdb.Transaction[bytes], database: lmdb._Database
) -> StateMeta | None:
    """Read what the last snapshot covers, verified. Raises `StateDamaged`."""
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
    """Yield all records of one database, verified, but `meta`'s own. Raises `StateDamaged`."""
    seen = 0
    try:
        for key, stored in walk(txn, database):
            seen += 1
            if (name, key) == (META, SNAPSHOT):
                continue
            record = _verified(path, name, key, stored)
            if (name, key) != (META, COUNTS):
                yield record
        promised = txn.stat(database)["entries"]
    except lmdb.Error as error:
        raise StateDamaged(path, str(error), database=name) from error
    _refuse_fewer(path, name, seen, promised)


def verify_records(
    path: Path, txn: lmdb.Transaction[bytes], name: str, database: lmdb._Database
) -> None:
    """Verify all records of one database, as `read_records` does, in less than half of its time.

    A record that the quick test does not know to be sound is judged as there.
    """
    seen, is_sound = 0, quick_test(name)
    try:
        for key, stored in txn.cursor(database):
            seen += 1
            if not is_sound(key, stored) and (name, key) != (META, SNAPSHOT):
                _verified(path, name, key, stored)
        promised = txn.stat(database)["entries"]
    except lmdb.Error as error:
        raise StateDamaged(path, str(error), database=name) from error
    _refuse_fewer(path, name, seen, promised)


def _refuse_fewer(path: Path, name: str, seen: int, promised: int) -> None:
    if seen != promised:
        raise StateDamaged(path, f"{seen} of {promised} records were found", database=name)


def _databases_of(path: Path, environment: lmdb.Environment, *, create: bool) -> Databases:
    """Open a state's databases. What cannot be read is damage; what cannot be written is not."""
    try:
        open_state_databases(environment, create=False)
    except lmdb.Error as error:
        raise StateDamaged(path, str(error)) from error
    try:
        return open_state_databases(environment, create=create)
    except lmdb.Error as error:
        raise state_failure(path, "new database", error, error_code(error)) from error


def open_state_databases(environment: lmdb.Environment, *, create: bool) -> Databases:
    """Open a state's databases. `create`: make those that an older version lacks; else skip them.

    Raises `lmdb.Error` if one is missing that every version has made.
    """
    first = open_databases(environment, _FIRST_NAMES)
    return first | open_later_databases(environment, _LATER_NAMES, create=create)


def check_counts(path: Path, txn: lmdb.Transaction[bytes], databases: Databases) -> None:
    """Raise `StateDamaged` if a later database lacks records, or is missing (S21).

    LMDB finds a database by its name: if the name is damaged, it looks like one never made.
    """
    stored = txn.get(COUNTS, db=databases[META])
    if stored is None:
        return
    counts = json.loads(_verified(path, META, COUNTS, stored).content)
    for name in _LATER_NAMES:
        found = txn.stat(databases[name])["entries"] if name in databases else 0
        if found != (promised := counts.get(name, 0)):
            raise StateDamaged(path, f"{found} of {promised} records were found", database=name)


def _count_later(opened: Opened, txn: lmdb.Transaction[bytes]) -> None:
    counts = {name: txn.stat(opened.databases[name])["entries"] for name in _LATER_NAMES}
    content = json.dumps(counts, sort_keys=True).encode()
    txn.put(COUNTS, pack_record(META, COUNTS, content), db=opened.databases[META])


def read_chunks(copy: Path, size: int) -> Iterator[bytes]:
    """Read a copy made by `copy_to` as chunks of at most `size` bytes, for `StateInstall`.

    Records are sent, not pages: the receiver may have another page size or version of LMDB, and
    verifies each record before it stores it. Raises `StateDamaged`.
    """
    with open_environment(copy, readonly=True) as environment:
        databases = open_state_databases(environment, create=False)
        with reading(environment) as txn:
            yield from encode_stream(_stored_records(copy, txn, databases), size)


def _stored_records(
    path: Path, txn: lmdb.Transaction[bytes], databases: Databases
) -> Iterator[StreamedRecord]:
    read_meta(path, txn, databases[META])
    for name, database in databases.items():
        number = DATABASE_NAMES.index(name)
        for key, stored in walk(txn, database):
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
