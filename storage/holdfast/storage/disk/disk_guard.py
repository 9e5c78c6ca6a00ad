"""Check that the disk still has its reserve (S20), before each proposal, so it must be cheap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from holdfast.storage.disk.files import below_reserve

LOOK_AGAIN_SECONDS = 1.0


class DiskGuard:
    """Asks the file system at most once a second; between, `low` answers from memory."""

    def __init__(self, path: Path, clock: Callable[[], float], reserve: int | None = None) -> None:
        """`reserve` in bytes; None: the larger of 256 MiB and 5 %."""
        self._path, self._clock, self._reserve = path, clock, reserve
        self._looked_at = float("-inf")
        self._low = False

    def low(self) -> bool:
        """Return whether proposals must be refused, while snapshots and journal cuts go on."""
        now = self._clock()
        if now - self._looked_at >= LOOK_AGAIN_SECONDS:
            self._looked_at, self._low = now, below_reserve(self._path, self._reserve)
        return self._low
