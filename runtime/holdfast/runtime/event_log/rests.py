"""Long work of a node's own threads rests again and again.

Such work holds the interpreter's lock again and again, and who answers callers waits for it each
time. The rests leave most of the time to them. Knows nothing of the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from threading import Event
from typing import Final, TypeVar

T = TypeVar("T")

SLICE_S: Final = 0.002
REST: Final = 3.0
"""A rest is so many times as long as the slice before it: the work has a quarter of the time."""


class Rests:
    """The rests of one thread's work. `hurry` belongs to any thread."""

    def __init__(self, rest: float = REST, clock: Callable[[], float] = time.perf_counter) -> None:
        """`rest`: how long a rest is, in slices; 0 for none. `clock`: in seconds."""
        self._share, self._clock = rest, clock
        self._hurried = Event()
        self._began = clock()

    def hurry(self) -> None:
        """End the rest under way, and rest no more: somebody waits for the work by now."""
        self._hurried.set()

    @property
    def hurried(self) -> bool:
        """Whether somebody waits for the work."""
        return self._hurried.is_set()

    def rest(self) -> None:
        """Rest if the slice has lasted long enough; a node's thread calls this in its work."""
        worked = self._clock() - self._began
        if worked >= SLICE_S and self._share:
            self._hurried.wait(self._share * worked)
            self._began = self._clock()

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, with rests between them."""
        self._began = self._clock()
        for item in items:
            yield item
            self.rest()
