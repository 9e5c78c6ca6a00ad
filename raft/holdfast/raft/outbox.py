"""Parts that wait for an entry: many share one while others are on their way (group commit).

An entry has a fixed cost on every node (a sync, messages, hand-overs between threads). With only
so many of a leader's entries under way at once, what is proposed meanwhile comes together in the
next one: nobody waits on an idle log, and a busy one pays the fixed cost once for many parts.
Bounded. Knows no engine.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.raft.api import Overloaded

if TYPE_CHECKING:
    from holdfast.coordinator.events import Part
    from holdfast.raft.replica import Committed

COALESCED_BYTES: Final = 256 * 1024
"""Parts share an entry up to about this size (S7)."""

ENTRIES_IN_FLIGHT: Final = 2
"""One that is being synced and sent, and one that is being put together for right after it."""

WAITING_MAX: Final = 16_384
WAITING_BYTES_MAX: Final = 64 << 20
"""Parts that may wait; more are refused, as by the engine's own queue."""


class Waiting(NamedTuple):
    """A part, and what is told its fate."""

    part: Part
    future: asyncio.Future[Committed]


class Outbox:
    """First in, first out; a group's order is kept, since it has one part under way at a time."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Waiting, int]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def term(self) -> int:
        """The term in which the oldest part was decided; there must be one."""
        return self._waiting[0][0].part.term

    def add(self, part: Part, future: asyncio.Future[Committed]) -> None:
        """Let a part wait. Raises Overloaded: nothing was proposed."""
        size = _size_hint(part)
        if len(self) >= WAITING_MAX or self._bytes + size > WAITING_BYTES_MAX:
            raise Overloaded(
                f"{len(self)} changes wait for the log already: nothing was proposed, try later"
            )
        self._waiting.append((Waiting(part, future), size))
        self._bytes += size

    def take(self) -> list[Waiting]:
        """The oldest parts, all of one term (S1), as many as an entry should hold."""
        taken, size, term = [], 0, self.term
        while self and self.term == term and size < COALESCED_BYTES:
            waiting, hint = self._waiting.popleft()
            taken.append(waiting)
            size += hint
        self._bytes -= size
        return taken


def _size_hint(part: Part) -> int:
    """About how many bytes a part will take; exactness does not matter below the hard limit."""
    return 64 + sum(_event_hint(proposed.event) for proposed in part.events)


def _event_hint(event: object) -> int:
    size = 64
    for name in ("protocols", "assignments", "offsets"):
        for piece in getattr(event, name, ()):
            size += 16 + sum(len(field) for field in piece if isinstance(field, bytes | str))
    return size
