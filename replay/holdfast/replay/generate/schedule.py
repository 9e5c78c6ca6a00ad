"""When something is due that happens again and again, by the length of the log. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


class Schedule:
    """Something is due about every `apart` records, at random; 0: never."""

    def __init__(self, apart: int, chance: Random) -> None:
        self._apart, self._chance = apart, chance
        self._next = self._after(0)

    def _after(self, count: int) -> int:
        return count + self._chance.randint(self._apart // 2, self._apart * 3 // 2)

    def due(self, count: int) -> bool:
        """Return whether it is due at this length; it is due again later."""
        if not self._apart or count < self._next:
            return False
        self._next = self._after(count)
        return True
