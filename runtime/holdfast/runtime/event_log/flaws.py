"""Whose segments arrived flawed, and when they may be asked for again (S22).

A segment is long, and what a peer's disk holds seldom becomes sound by itself: each failure doubles
the pause. Knows names and a clock; nothing of segments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

AGAIN_SECONDS: Final = 60.0
AGAIN_SECONDS_MAX: Final = 3_600.0


@dataclass(slots=True)
class _Flaw:
    """`pause`: seconds from the last failure to the next try, at `again_at`."""

    pause: float
    again_at: float


class Flaws:
    """What failed, by name. Not for several threads."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now`: seconds of a clock that only goes on."""
        self._now = now
        self._known: dict[str, _Flaw] = {}

    def note(self, name: str) -> bool:
        """It failed just now; True if that is new."""
        before = self._known.get(name)
        pause = min(2 * before.pause, AGAIN_SECONDS_MAX) if before else AGAIN_SECONDS
        self._known[name] = _Flaw(pause, self._now() + pause)
        return before is None

    def is_known(self, name: str) -> bool:
        """Whether it failed before: others are asked first."""
        return name in self._known

    def may_try(self, name: str) -> bool:
        """Whether it never failed, or long enough ago."""
        flaw = self._known.get(name)
        return flaw is None or self._now() >= flaw.again_at

    def forget_all(self) -> None:
        """Nothing is missing any more."""
        self._known.clear()
