"""A journal whose syncs are slow or fail when a file asks for it, to test whole nodes on disks.

Only `holdfast node --test-failpoints FILE` makes one. No configuration key and no environment
variable does, and the node logs it at every start, so that nobody runs one by accident. The
file is one JSON object: `{"sync_delay_ms": 200}` or `{"sync_fails": true}`; no file means no fault.
"""

from __future__ import annotations

import errno
import json
import time
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.storage.errors import JournalFailed
from holdfast.storage.journal.journal import Journal, JournalBatch, JournalImage

_DELAY_MS_MAX: Final = 60_000


class Failpoints(NamedTuple):
    """What the next sync has to do: wait `delay_ms`, then fail or not."""

    delay_ms: int = 0
    fails: bool = False


def read_failpoints(file: Path) -> Failpoints:
    """Read what the file asks for; nothing if it is absent. Raises ValueError."""
    try:
        raw = json.loads(file.read_text())
    except FileNotFoundError:
        return Failpoints()
    if not isinstance(raw, dict) or raw.keys() - {"sync_delay_ms", "sync_fails"}:
        raise ValueError(f'{file}: write {{"sync_delay_ms": 200}} or {{"sync_fails": true}}')
    delay_ms = min(int(raw.get("sync_delay_ms", 0)), _DELAY_MS_MAX)
    return Failpoints(delay_ms, bool(raw.get("sync_fails", False)))


class FailpointJournal:
    """A `Journal` around another one; the file is read before each batch."""

    def __init__(self, path: Path, journal: Journal, file: Path) -> None:
        self._path, self._journal, self._file = path, journal, file
        self._failure: JournalFailed | None = None

    def load(self) -> JournalImage:
        """Load the journal inside."""
        return self._journal.load()

    def commit(self, batch: JournalBatch) -> None:
        """Commit to the journal inside after the delay; or fail, from then on at every call."""
        if self._failure is not None:
            raise self._failure
        asked = read_failpoints(self._file)
        time.sleep(asked.delay_ms / 1_000)
        if asked.fails:
            self._failure = JournalFailed(self._path, f"{self._file} asks for it", errno.EIO)
            raise self._failure
        self._journal.commit(batch)

    def close(self) -> None:
        """Close the journal inside."""
        self._journal.close()
