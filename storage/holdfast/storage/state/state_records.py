"""What stands in a state's environment: its databases, and records that are verified as read.

A database has a name and a number, a snapshot has a description, and each record carries the check
by which damage is found (S21). Knows keys and bytes; writes nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import lmdb

from holdfast.storage.disk.environment import open_databases, open_later_databases, walk
from holdfast.storage.disk.records import (
    RecordDamaged,
    pack_named,
    quick_test,
    unpack_named,
    unpack_record,
)
from holdfast.storage.errors import StateDamaged
from holdfast.storage.state.rules import StateMeta

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.storage.disk.environment import Databases

META = "meta"
EVENTS = "events"
CHAINS = "chains"

# The order is the numbering of databases in a stream: only ever append to it.
_FIRST_NAMES = ("groups", "topics", "settings", "requests", EVENTS, CHAINS, META)
LATER_NAMES = ("rebalances",)
"""Databases that a directory of version 0.1.0 lacks until a node of this version has opened it."""
DATABASE_NAMES = _FIRST_NAMES + LATER_NAMES
STATE_NAMES = tuple(name for name in DATABASE_NAMES if name != EVENTS)

SNAPSHOT = b"snapshot"
COUNTS = b"counts"
"""The record in `meta` of how many records each later database has; 0.1.0 has none.

It is no part of the snapshot's description, because 0.1.0 would take a longer one for damage and
set the directory aside. So that version finds this one sound, and refuses its records' version.
"""


class StateRecord(NamedTuple):
    """One stored record."""

    database: str
    key: bytes
    content: bytes


def read_meta(
    path: Path, txn: lmdb.Transaction[bytes], database: lmdb._Database
) -> StateMeta | None:
    """Read what the last snapshot covers, verified. Raises `StateDamaged`."""
    stored = txn.get(SNAPSHOT, db=database)
    if stored is None:
        return None
    try:
        return unpack_meta(stored)
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
            record = verified(path, name, key, stored)
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
                verified(path, name, key, stored)
        promised = txn.stat(database)["entries"]
    except lmdb.Error as error:
        raise StateDamaged(path, str(error), database=name) from error
    _refuse_fewer(path, name, seen, promised)


def _refuse_fewer(path: Path, name: str, seen: int, promised: int) -> None:
    if seen != promised:
        raise StateDamaged(path, f"{seen} of {promised} records were found", database=name)


def open_state_databases(environment: lmdb.Environment, *, create: bool) -> Databases:
    """Open a state's databases. `create`: make those that an older version lacks; else skip them.

    Raises `lmdb.Error` if one is missing that every version has made.
    """
    first = open_databases(environment, _FIRST_NAMES)
    return first | open_later_databases(environment, LATER_NAMES, create=create)


def check_counts(path: Path, txn: lmdb.Transaction[bytes], databases: Databases) -> None:
    """Raise `StateDamaged` if a later database lacks records, or is missing (S21).

    LMDB finds a database by its name: if the name is damaged, it looks like one never made.
    """
    stored = txn.get(COUNTS, db=databases[META])
    if stored is None:
        return
    counts = json.loads(verified(path, META, COUNTS, stored).content)
    for name in LATER_NAMES:
        found = txn.stat(databases[name])["entries"] if name in databases else 0
        if found != (promised := counts.get(name, 0)):
            raise StateDamaged(path, f"{found} of {promised} records were found", database=name)


def verified(path: Path, name: str, key: bytes, stored: bytes) -> StateRecord:
    """Return a record as it was written. Raises `StateDamaged`."""
    try:
        return StateRecord(name, *unpack_record(name, key, stored))
    except RecordDamaged as error:
        raise StateDamaged(path, str(error), database=name, key=key) from error


def pack_meta(meta: StateMeta) -> bytes:
    """Encode what a snapshot covers, as `read_meta` reads it."""
    return pack_named(SNAPSHOT, [meta.index, meta.term, meta.log_time_ms, meta.chain.hex()])


def unpack_meta(stored: bytes) -> StateMeta:
    """Decode what `pack_meta` encoded. Raises `RecordDamaged`."""
    match unpack_named(SNAPSHOT, stored):
        case [int(index), int(term), int(log_time_ms), str(chain)]:
            return StateMeta(index, term, log_time_ms, bytes.fromhex(chain))
        case other:
            raise RecordDamaged(f"a snapshot's description was expected, not {other!r}")
