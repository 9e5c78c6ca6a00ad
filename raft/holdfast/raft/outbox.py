"""Parts that wait for an entry: many share one while others are on their way (group commit).

An entry has a fixed cost on every node (a sync, messages, hand-overs between threads). While one of
a leader's entries is under way, what is proposed comes together in the next one, which waits for it
unless it is full: nobody waits on an idle log, and a busy one pays the fixed cost once for many
parts. Bounded. Knows no engine.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator import settings
from holdfast.raft.api import EntryTooLarge, Overloaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.events import LogEntry, Part
    from holdfast.coordinator.state import State
    from holdfast.raft.api import Committed

COALESCED_BYTES: Final = 256 * 1024
"""Parts share an entry up to about this size (S7)."""

ENTRIES_IN_FLIGHT: Final = 2
"""The most under way at once; the second one only if it is full."""

WAITING_MAX: Final = 16_384
WAITING_BYTES_MAX: Final = 64 << 20
"""Parts that may wait; more are refused, as by the engine's own queue."""


def fitting(content: bytes, state: State) -> bytes:
    """Return a part's bytes, or raise EntryTooLarge (S7).

    The limit in force decides (S23); the engine's own is the most that may ever be set.
    """
    most = settings.of_cluster(state).entry_bytes_max
    if len(content) > most:
        raise EntryTooLarge(len(content), most)
    return content


class Waiting(NamedTuple):
    """A part, its bytes in an entry, and what is told its fate."""

    part: Part
    content: bytes
    future: asyncio.Future[Committed]


class Offered(NamedTuple):
    """An own entry under way, its bytes, and what is told the fate of each of its parts."""

    entry: LogEntry
    content: bytes
    futures: Sequence[asyncio.Future[Committed]]


class Outbox:
    """First in, first out; a group's order is kept, since it has one part under way at a time."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def term(self) -> int:
        """The term in which the oldest part was decided; there must be one."""
        return self._waiting[0].part.term

    @property
    def fills_an_entry(self) -> bool:
        """Whether what waits is enough for an entry of the target size."""
        return self._bytes >= COALESCED_BYTES

    def add(self, part: Part, content: bytes, future: asyncio.Future[Committed]) -> None:
        """Let a part wait. Raises Overloaded: nothing was proposed."""
        if len(self) >= WAITING_MAX or self._bytes + len(content) > WAITING_BYTES_MAX:
            raise Overloaded(
                f"{len(self)} changes wait for the log already: nothing was proposed, try later"
            )
        self._waiting.append(Waiting(part, content, future))
        self._bytes += len(content)

    def take(self) -> list[Waiting]:
        """The oldest parts, all of one term (S1), as many as an entry should hold.

        At least one. A long one is alone: beside it, short ones could exceed the hard limit (S7).
        """
        taken = [self._waiting.popleft()]
        size = len(taken[0].content)
        while self and self.term == taken[0].part.term:
            size += len(self._waiting[0].content)
            if size > COALESCED_BYTES:
                break
            taken.append(self._waiting.popleft())
        self._bytes -= sum(len(waiting.content) for waiting in taken)
        return taken
