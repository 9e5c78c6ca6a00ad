"""What workers and the conductor tell each other: the pace, a place to stop at, and what happened.

Not part of the job and never a guard: the store alone decides what is written. SQLite; a `Diary`
belongs to one thread. Times are seconds since the epoch, which all processes here share.
"""

from __future__ import annotations

import enum
import sqlite3
import time
from pathlib import Path
from typing import Final, NamedTuple, Self

_WAIT_S: Final = 30.0
_SCHEMA: Final = """
CREATE TABLE control (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE notes (at REAL, worker TEXT, kind TEXT, text TEXT);
CREATE TABLE ends (at REAL, worker TEXT, partition INTEGER, token INTEGER);
"""
_PACE: Final = "pace"
_HOLD: Final = "hold"


class Kind(enum.StrEnum):
    """What a note is about."""

    STARTED = "started"
    STOPPED = "stopped"
    HOLDING = "holding"
    """Checked its ownership and is about to write: the announced point."""
    LOST = "lost"
    """The client said by itself that ownership is lost (S11)."""
    ERROR = "error"


class Note(NamedTuple):
    """One thing that a worker saw."""

    at: float
    worker: str
    kind: Kind
    text: str


class End(NamedTuple):
    """A worker let go of a partition, or heard that it had lost it."""

    at: float
    worker: str
    partition: int
    token: int


class Diary:
    """Notes of everybody, and two wishes of the conductor."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
        self._db.execute("PRAGMA synchronous = OFF")

    @classmethod
    def create(cls, path: Path) -> Self:
        """Make an empty diary: no pause, nobody is held."""
        diary = cls(path)
        diary._db.execute("PRAGMA journal_mode = WAL")
        diary._db.executescript(_SCHEMA)
        diary.pace_s, diary.hold = 0.0, ""
        return diary

    @property
    def pace_s(self) -> float:
        """How long every worker rests after a row."""
        return float(self._get(_PACE))

    @pace_s.setter
    def pace_s(self, seconds: float) -> None:
        self._set(_PACE, str(seconds))

    @property
    def hold(self) -> str:
        """The worker that shall stop between its next check and write; "": none."""
        return self._get(_HOLD)

    @hold.setter
    def hold(self, worker: str) -> None:
        self._set(_HOLD, worker)

    def note(self, worker: str, kind: Kind, text: str = "") -> None:
        """Write down what happened now."""
        note = Note(time.time(), worker, kind, text)
        self._db.execute("INSERT INTO notes VALUES (?, ?, ?, ?)", note)

    def notes(self, *kinds: Kind, since: float = 0) -> list[Note]:
        """The notes of these kinds, in order of time."""
        rows = self._db.execute("SELECT * FROM notes WHERE at >= ? ORDER BY rowid", (since,))
        found = (Note(at, worker, Kind(kind), text) for at, worker, kind, text in rows)
        return [note for note in found if note.kind in kinds]

    def end(self, worker: str, partition: int, token: int) -> None:
        """Write down that a worker has let go of a partition."""
        end = End(time.time(), worker, partition, token)
        self._db.execute("INSERT INTO ends VALUES (?, ?, ?, ?)", end)

    def ends(self) -> list[End]:
        """All ends, in order of time."""
        return [End(*row) for row in self._db.execute("SELECT * FROM ends ORDER BY rowid")]

    def _get(self, name: str) -> str:
        query = "SELECT value FROM control WHERE name = ?"
        return str(self._db.execute(query, (name,)).fetchone()[0])

    def _set(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO control VALUES (?, ?)", (name, value))
