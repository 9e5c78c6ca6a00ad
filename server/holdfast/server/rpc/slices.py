"""Long work in slices, so that the loop serves other calls in between.

A function that works through many items takes them from `Slices`, which yields to the loop after
each slice. The items must not change meanwhile, as those of a `State` do not. Knows no services.
"""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

Item = TypeVar("Item")

MADE_MAX: Final = 100
"""Items of a slice if each needs a message or a decision: 10 to 40 microseconds each."""
SEEN_MAX: Final = 500
"""Items of a slice if each is only read or copied: 1 to 4 microseconds each."""


class Slices:
    """Counts the items of one call; nested loops share one."""

    def __init__(self, most: int = MADE_MAX) -> None:
        """`most`: items of one slice."""
        self._most = most
        self._done = 0

    async def done(self, items: int = 1) -> None:
        """Count items before they are worked on; yield to the loop first if the slice is full."""
        if self._done and self._done + items > self._most:
            done, self._done = self._done, 0
            await give_way(done)
        self._done += items

    async def of(self, items: Iterable[Item]) -> AsyncIterator[Item]:
        """Yield the items one by one, and yield to the loop after each slice."""
        for item in items:
            if self._done >= self._most:
                done, self._done = self._done, 0
                await give_way(done)
            self._done += 1
            yield item


async def chunks(items: Sequence[Item], most: int = MADE_MAX) -> AsyncIterator[Sequence[Item]]:
    """Yield the items in runs of `most`, and yield to the loop between them: free for few items."""
    for first in range(0, len(items), most):
        if first:
            await give_way(most)
        yield items[first : first + most]


async def collected(items: Iterable[Item]) -> tuple[Item, ...]:
    """Collect an iterable like `tuple`, in slices: its items are made while it is walked."""
    return tuple([item async for item in Slices(SEEN_MAX).of(items)])


async def give_way(done: int) -> None:
    """Yield to the loop once; `done`: items since the last time."""
    del done  # tests count it
    await asyncio.sleep(0)


def _itself(item: Item) -> Item:
    return item


async def ordered(items: Iterable[Item], key: Callable[[Item], Any] = _itself) -> list[Item]:
    """Sort like `sorted`, in slices: sort short runs, then merge them."""
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
