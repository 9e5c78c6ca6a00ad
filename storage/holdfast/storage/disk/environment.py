"""LMDB environments as Holdfast opens them: the one place that knows LMDB's options.

Writes go by pwrite, never through the map (`writemap=False`): a commit writes its pages, syncs
them, and only then writes the meta page that makes them the newest, through a descriptor that
syncs by itself. Whichever part of this reaches the disk, one of the two meta pages is whole.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import lmdb

from holdfast.storage.disk.files import make_directory, remove_tree, rename_durably, sync_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

DATA_FILE = "data.mdb"
LOCK_FILE = "lock.mdb"

_OPENINGS_MAX = 500
_OPEN_AGAIN_SECONDS = 0.01
"""Five seconds together, since the disk on which the files are replaced may be busy."""

# The map is address space, not memory and not disk: it is sized once, far above need (S20), so that
# it never has to grow under a running transaction.
MAP_BYTES = 64 * 1024**3

Databases = dict[str, "lmdb._Database"]  # noqa: SLF001 - the only name that lmdb gives its type


def open_environment(
    path: Path,
    *,
    map_bytes: int = MAP_BYTES,
    readonly: bool = False,
    beside_writer: bool = False,
    sync: bool = True,
) -> lmdb.Environment:
    """Open the environment at `path`; raises `lmdb.Error` if it is absent or not readable.

    A read-only environment takes no lock: only for files that nobody writes meanwhile.
    `beside_writer`: to read while another process writes; its writers are never waited for.
    """
    return lmdb.open(
        str(path),
        map_size=map_bytes,
        max_dbs=16,
        readonly=readonly or beside_writer,
        lock=not readonly,
        create=False,
        sync=sync,
        readahead=readonly,  # a check reads all pages in order; a node reads here and there
    )


def open_beside_writer(path: Path, map_bytes: int) -> lmdb.Environment:
    """Open what another process writes, and may replace at this moment by another environment.

    That replaces two files, one after the other. Of a pair that does not belong together, LMDB
    would show not the last transaction but any, and its writer would not see that it is read: so
    it is opened again until both are replaced. Raises `lmdb.Error` as `open_environment` does.
    """
    for _ in range(_OPENINGS_MAX):
        environment = open_environment(path, map_bytes=map_bytes, beside_writer=True)
        if _is_one_pair(environment):
            return environment
        environment.close()
        time.sleep(_OPEN_AGAIN_SECONDS)
    raise lmdb.Error(f"{path / LOCK_FILE} is of another environment than {path / DATA_FILE}")


def _is_one_pair(environment: lmdb.Environment) -> bool:
    """Return whether the lock file tells the last transaction that the data file has."""
    before = environment.info()["last_txnid"]
    with reading(environment) as txn:
        return before <= txn.id() <= environment.info()["last_txnid"]


def new_environment(
    path: Path, names: Sequence[str], *, map_bytes: int = MAP_BYTES, sync: bool = True
) -> lmdb.Environment:
    """Make an empty environment with the databases `names` at `path`, which must not exist."""
    path.mkdir(mode=0o750)
    environment = lmdb.open(
        str(path), map_size=map_bytes, max_dbs=16, sync=sync, readahead=False, mode=0o640
    )
    for name in names:
        environment.open_db(name.encode())
    return environment


def publish_environment(
    path: Path, names: Sequence[str], records: Mapping[tuple[str, bytes], bytes]
) -> None:
    """Make an environment with its first records at `path`, whole or not at all.

    It is built at `<path>.new` and renamed when it is durable. So an environment at `path` without
    its first records is damage, never an interrupted start.
    """
    make_directory(path.parent)
    beginning = path.with_name(path.name + ".new")
    remove_tree(beginning)
    with new_environment(beginning, names) as environment:
        databases = open_databases(environment, names)
        with environment.begin(write=True) as txn:
            for (name, key), value in records.items():
                txn.put(key, value, db=databases[name])
    sync_path(beginning)
    rename_durably(beginning, path)


def open_databases(environment: lmdb.Environment, names: Sequence[str]) -> Databases:
    """Open databases that must exist; raises `lmdb.Error` if one does not."""
    return {name: environment.open_db(name.encode(), create=False) for name in names}


def open_later_databases(
    environment: lmdb.Environment, names: Sequence[str], *, create: bool
) -> Databases:
    """Open databases that an older version lacks: `create` them now, or leave them out."""
    found: Databases = {}
    for name in names:
        try:
            found |= open_databases(environment, [name])
        except lmdb.NotFoundError:
            if create:
                found[name] = environment.open_db(name.encode())
    return found


def reading(environment: lmdb.Environment) -> lmdb.Transaction[bytes]:
    """Begin a read transaction. Keep it short: pages cannot be reused while it lasts (S18)."""
    return environment.begin()


def walk(
    txn: lmdb.Transaction[bytes], database: lmdb._Database, start: bytes | None = None
) -> Iterator[tuple[bytes, bytes]]:
    """Yield all (key, value) of a database in the order of the keys, from `start` on."""
    cursor = txn.cursor(database)
    if start is None or cursor.set_range(start):
        yield from cursor


def error_code(error: lmdb.Error) -> int:
    """Return the errno, or LMDB's own negative number; 0 if the error has none."""
    return int(getattr(error, "code", 0) or 0)
