"""Where the demo keeps things, and whom it works with. Plain values."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

WORKERS: Final = tuple(f"worker-{number}" for number in range(1, 7))
SEVENTH: Final = "worker-7"
FROZEN: Final = "worker-3"
REMOVED: Final = ("worker-2", "worker-5")
OPERATOR: Final = "operator"
ROWS_A_PHASE: Final = 20
_MARKER: Final = "store.sqlite"


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of one run and what lies in it."""

    folder: Path

    @property
    def cluster(self) -> Path:
        """The nodes' configurations, certificates, data and loggers' files."""
        return self.folder / "cluster"

    @property
    def store(self) -> Path:
        """The application's own data: the index that is built."""
        return self.folder / _MARKER

    @property
    def diary(self) -> Path:
        """What happened, told by the workers."""
        return self.folder / "diary.sqlite"

    @property
    def alone(self) -> Path:
        """The index as the plain single process computes it."""
        return self.folder / "alone.json"

    @property
    def picture(self) -> Path:
        """Who owned what when."""
        return self.folder / "ownership.png"

    @property
    def page(self) -> Path:
        """The whole report of the log, to be opened in a browser."""
        return self.folder / "report.html"

    def witness(self, name: str) -> Path:
        """What was acknowledged to one client."""
        return self.folder / f"{name}.witness.jsonl"

    def worker_log(self, name: str) -> Path:
        """What a worker's logger wrote."""
        return self.folder / f"{name}.log"

    def witnesses(self) -> list[Path]:
        """The witness files of all clients."""
        return sorted(self.folder.glob("*.witness.jsonl"))

    def prepare(self) -> None:
        """Make the folder empty. Raises FileExistsError if it holds something that is not ours."""
        if self.folder.exists() and any(self.folder.iterdir()):
            if not self.store.exists():
                raise FileExistsError(f"{self.folder} is not from an earlier demo; move it away.")
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
