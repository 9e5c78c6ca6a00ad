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
from typing import TYPE_CHECKING

import lmdb

from holdfast.storage.disk.environment import (
    DATA_FILE,
    LOCK_FILE,
    MAP_BYTES,
    error_code,
    open_beside_writer,
    open_environment,
    publish_environment,
    reading,
    walk,
)
from holdfast.storage.disk.files import remove_tree, rename_durably
from holdfast.storage.disk.records import (
    disk_key,
    pack_record,
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
from holdfast.storage.state.state_records import (
    COUNTS,
    DATABASE_NAMES,
    EVENTS,
    LATER_NAMES,
    META,
    SNAPSHOT,
    STATE_NAMES,
    StateRecord,
    open_state_databases,
    pack_meta,
    read_meta,
    read_records,
    verified,
)
from holdfast.storage.state.state_stream import StreamedRecord, encode_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from holdfast.storage.disk.environment import Databases
    from holdfast.storage.disk.shared_environment import Opened

Change = tuple[str, bytes, bytes | None]
"""(database, key, content; None removes the record). `state_image.Change` is one."""

DROP_EVENTS_A_TRANSACTION = 2_000
"""So few that a snapshot need not wait long; and LMDB keeps the memory of its largest
transaction's pages for the next one."""
CLOSE_SECONDS = 10.0
"""How long `close` waits: a page of events takes milliseconds, a copy of a large state seconds."""
_POSITION = struct.Struct(">QI")


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
                record = verified(self.path, EVENTS, key, stored)
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
            txn.put(SNAPSHOT, pack_meta(meta), db=opened.databases[META])

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
            if self._beside_writer:
                environment = open_beside_writer(path, self._map_bytes)
            else:
                environment = open_environment(
                    path, map_bytes=self._map_bytes, readonly=self._readonly
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


def _count_later(opened: Opened, txn: lmdb.Transaction[bytes]) -> None:
    counts = {name: txn.stat(opened.databases[name])["entries"] for name in LATER_NAMES}
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
                verified(path, name, key, stored)
            yield StreamedRecord(number, key, stored)
