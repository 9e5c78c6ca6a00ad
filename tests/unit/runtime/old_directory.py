"""A data directory as version 0.1.0 left it: its state from a golden file, its journal empty."""

from __future__ import annotations

from pathlib import Path

from holdfast.storage.disk.environment import new_environment
from holdfast.storage.journal.journal import Identity, JournalBatch
from holdfast.storage.journal.lmdb_journal import LmdbJournal

GOLDEN = Path(__file__).parents[2] / "golden" / "state-directory-0.1.0.txt"
"""What version 0.1.0 stored of a group of two, `a` and `b`, and its four rebalances.

A line a record: database, key, value as on disk. In the last one, under way, `b` was removed.
"""
DATABASES = ("groups", "topics", "settings", "requests", "events", "chains", "meta")


def make_old_directory(path: Path) -> None:
    """Make one at `path`, which exists; no node runs on it."""
    with new_environment(path / "state", DATABASES) as environment:
        databases = {name: environment.open_db(name.encode()) for name in DATABASES}
        with environment.begin(write=True) as txn:
            for line in GOLDEN.read_text(encoding="utf-8").splitlines():
                name, key, value = line.split()
                txn.put(bytes.fromhex(key), bytes.fromhex(value), db=databases[name])
    LmdbJournal.create(path / "raft")


def name_node(path: Path) -> None:
    """Make the directory one of a node that ran: its lock file, and an identity."""
    (path / "lock").touch()
    journal = LmdbJournal(path / "raft")
    journal.load()
    journal.commit(JournalBatch(identity=Identity("c", "n1", "i", "member")))
    journal.close()
