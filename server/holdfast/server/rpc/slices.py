"""Long work in slices, so that the loop serves everybody else in between.

Whoever works through many items takes them from `Slices`; after so many the loop has its turn. What
is worked on must be a value that does not change meanwhile, as a `State` is. Knows no services.
"""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

Item = TypeVar("Item")

MADE_MAX: Final = 100
"""Items of a slice from each of which a message is made, or a decision: 10 to 40 microseconds."""
SEEN_MAX: Final = 500
"""Items of a slice that are only looked at, or moved: 1 to 4 microseconds."""


class Slices:
    """Counts the items of one call; nested loops share one."""

    def __init__(self, most: int = MADE_MAX) -> None:
        """`most`: items of one slice."""
        self._most = most
        self._done = 0

    async def done(self, items: int = 1) -> None:
        """So many items are about to be worked on; first comes the loop's turn, if it is due."""
        if self._done and self._done + items > self._most:
            done, self._done = self._done, 0
            await give_way(done)
        self._done += items

    async def of(self, items: Iterable[Item]) -> AsyncIterator[Item]:
        """The items, one by one."""
        for item in items:
            if self._done >= self._most:
                done, self._done = self._done, 0
                await give_way(done)
            self._done += 1
            yield item


async def chunks(items: Sequence[Item], most: int = MADE_MAX) -> AsyncIterator[Sequence[Item]]:
    """The items in runs of so many, with the loop's turn in between: costs nothing for few."""
    for first in range(0, len(items), most):
        if first:
            await give_way(most)
        yield items[first : first + most]


async def collected(items: Iterable[Item]) -> tuple[Item, ...]:
    """As `tuple`, of what is made while it is walked through, in slices."""
    return tuple([item async for item in Slices(SEEN_MAX).of(items)])


async def give_way(done: int) -> None:
    """Let the loop serve everybody else once; `done`: items since the last time."""
    del done  # tests count it
    await asyncio.sleep(0)


def _itself(item: Item) -> Item:
    return item


async def ordered(items: Iterable[Item], key: Callable[[Item], Any] = _itself) -> list[Item]:
    """As `sorted`, in slices: short runs, and then one walk over all of them."""
    runs: list[list[Item]] = [[]]
    slices = Slices(SEEN_MAX)
    async for item in slices.of(items):
        if len(runs[-1]) == SEEN_MAX:
            runs[-1].sort(key=key)
            runs.append([])
        runs[-1].append(item)
    runs[-1].sort(key=key)
    if len(runs) == 1:
        return runs[0]
    merged = heapq.merge(*runs, key=key)
    return [item async for item in slices.of(merged)]
