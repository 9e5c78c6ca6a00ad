"""The folder that a followed archive is written to, a batch at a time, each exactly once.

    events/batch-N/*.parquet   alerts/batch-N.jsonl   state/batch-N.json   checkpoint/   tail.json

All of a batch is written beside these first and then renamed, so whoever globs sees whole batches
alone. A batch that is done again after a crash has the same records: its events are kept if they
are there, and the rest is replaced by equal files. Knows files: no Spark, and nothing of their
content.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from holdfast.coordinator.model.text import truncate
from holdfast.replay.findings import WrongUse
from holdfast.storage.disk.files import make_directory, rename_durably, sync_path

FORMAT: Final = 1
_CLAIM: Final = "tail.json"
_LOCK: Final = "lock"
_WRITING: Final = "writing"


class Output:
    """A folder of batches, of one cluster."""

    def __init__(self, root: Path) -> None:
        """Make the folder, if there is none. Raises WrongUse if it holds something else."""
        self._root = root
        if root.is_dir() and any(root.iterdir()) and not (root / _LOCK).exists():
            raise WrongUse(f"{root} holds something else: give a new folder, or that of a tail")
        make_directory(root)
        (root / _LOCK).touch()
        for name in ("events", "alerts", "state", _WRITING):
            make_directory(root / name)

    @property
    def checkpoint(self) -> Path:
        """The folder for what Spark remembers. It belongs to the batches: neither goes alone."""
        return self._root / "checkpoint"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep others from writing here; what a killed process left half written goes away."""
        with (self._root / _LOCK).open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise WrongUse(f"another process writes to {self._root}: end it first") from error
            shutil.rmtree(self._root / _WRITING)
            make_directory(self._root / _WRITING)
            yield

    def claim(self, cluster_id: str) -> None:
        """Note whose log this is. Raises WrongUse if it is another cluster's."""
        path = self._root / _CLAIM
        if not path.exists():
            self._put(path, json.dumps({"format": FORMAT, "cluster_id": cluster_id}))
        known = json.loads(path.read_text())
        if (known["format"], known["cluster_id"]) != (FORMAT, cluster_id):
            raise WrongUse(
                f"{self._root} is of cluster {truncate(str(known['cluster_id']))}, format "
                f"{known['format']}, and the log of {cluster_id}: give another folder"
            )

    def add_events(self, batch: int, write: Callable[[str], None]) -> Path:
        """Have a batch's events written, unless they are there; returns their folder."""
        target = self.events(batch)
        if not target.exists():
            made = self._root / _WRITING / f"{_name(batch)}-{uuid4()}"
            write(str(made))
            for path in (*made.glob("*.parquet"), made):
                sync_path(path)
            rename_durably(made, target)
        return target

    def add_alerts(self, batch: int, alerts: Sequence[dict[str, Any]]) -> None:
        """Write a batch's alerts, a line each; no file if there are none."""
        if alerts:
            lines = "".join(json.dumps(each) + "\n" for each in alerts)
            self._put(self._alerts(batch), lines)

    def last_done(self) -> int:
        """Return the number of the last batch that is done; -1: none is."""
        done = (path.stem.rpartition("-")[2] for path in (self._root / "state").iterdir())
        return max(map(int, done), default=-1)

    def events(self, batch: int) -> Path:
        """Return the folder of a batch's events."""
        return self._root / "events" / _name(batch)

    def count_alerts(self, batch: int) -> int:
        """Return how many alerts a batch has."""
        path = self._alerts(batch)
        return len(path.read_bytes().splitlines()) if path.exists() else 0

    def state_before(self, batch: int) -> dict[str, Any] | None:
        """Read what was known after the batch before; None before the first.

        Raises WrongUse if it is not there: then batches would be told without what came before.
        """
        if batch == 0:
            return None
        path = self._state(batch - 1)
        try:
            found: dict[str, Any] = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise WrongUse(
                f"{path} cannot be read ({error}): begin again with a new --out"
            ) from error
        return found

    def add_state(self, batch: int, state: dict[str, Any]) -> None:
        """Write what is known after a batch; what the batch before last left is not needed more."""
        self._put(self._state(batch), json.dumps(state))
        self._state(batch - 2).unlink(missing_ok=True)

    def _alerts(self, batch: int) -> Path:
        return self._root / "alerts" / f"{_name(batch)}.jsonl"

    def _state(self, batch: int) -> Path:
        return self._root / "state" / f"{_name(batch)}.json"

    def _put(self, path: Path, text: str) -> None:
        made = self._root / _WRITING / f"{path.name}-{uuid4()}"
        with made.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        rename_durably(made, path)


def _name(batch: int) -> str:
    return f"batch-{batch:020d}"
