"""Segments that arrived flawed, and when each may be fetched again (S22).

A segment is long, and a peer's damaged copy rarely becomes sound: each failure doubles the pause.
 Knows names and a clock; nothing of segments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

AGAIN_SECONDS: Final = 60.0
AGAIN_SECONDS_MAX: Final = 3_600.0


@dataclass(slots=True)
class _Flaw:
    """A flawed copy: the pause after its last failure, in seconds, and when that ends."""

    pause: float
    again_at: float


class Flaws:
    """Flawed copies by name. Not thread-safe."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now`: a monotonic clock in seconds."""
        self._now = now
        self._known: dict[str, _Flaw] = {}

    def note(self, name: str) -> bool:
        """Record a failure; return whether it is the first."""
        before = self._known.get(name)
        pause = min(2 * before.pause, AGAIN_SECONDS_MAX) if before else AGAIN_SECONDS
        self._known[name] = _Flaw(pause, self._now() + pause)
        return before is None

    def is_known(self, name: str) -> bool:
        """Return whether it failed before, so that others are asked first."""
        return name in self._known

    def may_try(self, name: str) -> bool:
        """Return whether it never failed, or its pause is over."""
        flaw = self._known.get(name)
        return flaw is None or self._now() >= flaw.again_at

    def forget_all(self) -> None:
        """Drop all failures: nothing is missing any more."""
        self._known.clear()
