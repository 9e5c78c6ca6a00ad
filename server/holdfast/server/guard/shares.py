"""How much of something one caller may have at a time, and all callers together.

It bounds what a caller holds while its call goes on: watches, streams, bytes of requests. More than
the share is refused at once, but for a stream of calls, which is not read until there is room.
Knows no calls.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Final

from holdfast.server.rpc.errors import exhausted

if TYPE_CHECKING:
    from collections.abc import Iterator

WATCHES_EACH_MAX: Final = 32
WATCHES_MAX: Final = 128
"""Watches of one principal, and of all: each event of the log wakes every watch."""


class Shares:
    """How much of one resource each caller holds."""

    def __init__(self, what: str, each: int, total: int, advice: str) -> None:
        """Bound the resource `what`, a plural; `advice`: what a refused caller can do."""
        self._what, self._advice = what, advice
        self._each, self._all = each, total
        self._held: Counter[str] = Counter()
        self._sum = 0
        self._waiting: list[asyncio.Future[None]] = []

    @contextlib.contextmanager
    def held(self, who: str, amount: int = 1) -> Iterator[None]:
        """Hold this amount while the body runs; raises CallFailed if it is more than the share."""
        if why := self._excess(who, amount):
            raise exhausted(why)
        self.add(who, amount)
        try:
            yield
        finally:
            self.give_back(who, amount)

    def of(self, who: str) -> int:
        """Return what one caller holds."""
        return self._held.get(who, 0)

    @property
    def sum(self) -> int:
        """What all callers hold."""
        return self._sum

    def add(self, who: str, amount: int) -> None:
        """Hold this amount until `give_back`, also if it is more than the share."""
        self._held[who] += amount
        self._sum += amount

    def give_back(self, who: str, amount: int) -> None:
        """Hold so much less, and let those that wait look again."""
        self._sum -= amount
        self._held[who] -= amount
        if not self._held[who]:
            del self._held[who]
        waiting, self._waiting = self._waiting, []
        for room in waiting:
            if not room.done():
                room.set_result(None)

    async def room(self, who: str) -> None:
        """Wait until this caller, and all together, hold no more than their shares."""
        while self._held.get(who, 0) > self._each or self._sum > self._all:
            room = asyncio.get_running_loop().create_future()
            self._waiting.append(room)
            await room

    def _excess(self, who: str, amount: int) -> str:
        """Say why the caller cannot have so much more; empty: it can.

        A caller that holds nothing is bounded by the total alone, so a single long request passes.
        """
        mine = self._held.get(who, 0)
        if mine and mine + amount > self._each:
            return self._refusal(f"this caller has {mine}", self._each)
        if self._sum and self._sum + amount > self._all:
            return self._refusal(f"all callers have {self._sum}", self._all)
        return ""

    def _refusal(self, holding: str, most: int) -> str:
        return f"{holding} {self._what} at this node, and {most} are allowed: {self._advice}"
