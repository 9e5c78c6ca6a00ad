"""The results, in a store that does what a fencing token needs of storage (S13).

It holds the highest token of each partition, never one for the whole store. A claim and a write are
one transaction each, and either is refused if its token is lower than the highest one; a refusal is
a value, and is kept as a row. SQLite; a `Store` belongs to one thread. Knows nothing of Holdfast.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Self

from demo.job import Row

_WAIT_S: Final = 30.0
_SCHEMA: Final = """
CREATE TABLE files (path TEXT PRIMARY KEY, partition INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE tokens (partition INTEGER PRIMARY KEY, token INTEGER NOT NULL);
CREATE TABLE results (
    path TEXT PRIMARY KEY, size INTEGER, lines INTEGER, functions INTEGER, classes INTEGER,
    sha256 TEXT, partition INTEGER, token INTEGER, worker TEXT, at REAL
) WITHOUT ROWID;
CREATE TABLE claims (at REAL, partition INTEGER, token INTEGER, worker TEXT);
CREATE TABLE refusals (
    at REAL, action TEXT, partition INTEGER, token INTEGER, highest INTEGER, worker TEXT
);
"""


class Refusal(NamedTuple):
    """A claim or a write that came too late: somebody has used a higher token."""

    at: float
    action: str
    partition: int
    token: int
    highest: int
    worker: str


class Claim(NamedTuple):
    """An accepted claim; `at` in seconds since the epoch."""

    at: float
    partition: int
    token: int
    worker: str


class Holder(NamedTuple):
    """Who works on a partition, and under which token."""

    worker: str
    partition: int
    token: int


class Store:
    """The index, the tokens, and what was refused."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
        self._db.execute("PRAGMA synchronous = NORMAL")

    @classmethod
    def create(cls, path: Path, files: Iterable[tuple[str, int]]) -> Self:
        """Make an empty store for these (path, partition) pairs."""
        store = cls(path)
        store._db.execute("PRAGMA journal_mode = WAL")
        store._db.executescript(_SCHEMA)
        with store._transaction():
            store._db.executemany("INSERT INTO files VALUES (?, ?)", files)
        return store

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def claim(self, holder: Holder) -> list[str] | Refusal:
        """Take a partition under a token; returns the files that are left to do in it."""
        with self._transaction():
            refusal = self._admit("claim", holder)
            if refusal:
                return refusal
            claim = Claim(time.time(), holder.partition, holder.token, holder.worker)
            self._db.execute("INSERT INTO claims VALUES (?, ?, ?, ?)", claim)
            rows = self._db.execute(
                "SELECT path FROM files WHERE partition = ? "
                "AND path NOT IN (SELECT path FROM results) ORDER BY path DESC",
                (holder.partition,),
            )
            return [path for (path,) in rows]

    def write(self, holder: Holder, row: Row) -> Refusal | None:
        """Store a result. Raises sqlite3.IntegrityError if the file has one: it was done twice."""
        with self._transaction():
            refusal = self._admit("write", holder)
            if refusal is None:
                values = (*row, holder.partition, holder.token, holder.worker, time.time())
                self._db.execute(
                    "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values
                )
            return refusal

    def tokens(self) -> dict[int, int]:
        """The highest token of each partition."""
        return dict(self._db.execute("SELECT partition, token FROM tokens"))

    def claims(self) -> list[Claim]:
        """All claims that were accepted, in order of time."""
        return [Claim(*row) for row in self._db.execute("SELECT * FROM claims ORDER BY rowid")]

    def refusals(self) -> list[Refusal]:
        """All that was refused, in order of time."""
        return [Refusal(*row) for row in self._db.execute("SELECT * FROM refusals ORDER BY rowid")]

    def results(self) -> list[Row]:
        """The whole index, by path."""
        columns = ", ".join(Row._fields)
        query = f"SELECT {columns} FROM results ORDER BY path"  # noqa: S608 - names of our own
        return [Row(*row) for row in self._db.execute(query)]

    def count(self, since: float = 0, *, other_than: Collection[str] = ()) -> int:
        """Results written since a moment, without those of some workers."""
        query = "SELECT worker, count(*) FROM results WHERE at >= ? GROUP BY worker"
        counts = self._db.execute(query, (since,))
        return sum(count for worker, count in counts if worker not in other_than)

    def size(self) -> int:
        """How many files there are to index."""
        return int(self._db.execute("SELECT count(*) FROM files").fetchone()[0])

    def _admit(self, action: str, holder: Holder) -> Refusal | None:
        """Compare with the highest token of this partition, and raise it (S13)."""
        highest = self.tokens().get(holder.partition, 0)
        if holder.token >= highest:
            pair = (holder.partition, holder.token)
            self._db.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?)", pair)
            return None
        refusal = Refusal(
            time.time(), action, holder.partition, holder.token, highest, holder.worker
        )
        self._db.execute("INSERT INTO refusals VALUES (?, ?, ?, ?, ?, ?)", refusal)
        return refusal

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Begin as a writer at once: two that read first would both see the old token."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
