"""Parts that wait for an entry: many share one while others are on their way (group commit).

An entry has a fixed cost on every node (a sync, messages, switches of threads). While one of a
leader's entries is under way, the parts proposed meanwhile gather for the next one, which waits for
it unless it is full: a busy log pays the fixed cost once for many parts. After an entry of many
parts most callers ask again as soon as they are answered, so the next entry lingers for them a
moment, even if only one part comes, much later. Bounded. Knows no engine, no clock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator.cluster import settings
from holdfast.raft.api import EntryTooLarge, Overloaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.model.events import LogEntry, Part
    from holdfast.coordinator.model.state import State
    from holdfast.runtime.ports import Committed

COALESCED_BYTES: Final = 256 * 1024
"""Parts share an entry up to about this many bytes (S7)."""

ENTRIES_IN_FLIGHT: Final = 2
"""The most own entries under way at once; the second one only if it is full."""

LINGER_PARTS: Final = 4
"""The next entry lingers after one of this many parts; fewer callers never wait for each other."""

LINGER_GAP_S: Final = 0.002
"""Stop waiting for more parts when none has arrived for this long, in seconds."""

LINGER_S: Final = 0.02
"""An entry lingers no longer than this, in seconds, however steadily parts come."""

WAITING_MAX: Final = 16_384
WAITING_BYTES_MAX: Final = 64 << 20
"""Bounds on parts that wait; more are refused, as by the engine's own queue."""


def fitting(content: bytes, state: State) -> bytes:
    """Return a part's bytes if they fit into an entry. Raises EntryTooLarge (S7).

    The limit in force decides (S23); the engine's own is the most that may ever be set.
    """
    most = settings.of_cluster(state).entry_bytes_max
    if len(content) > most:
        raise EntryTooLarge(len(content), most)
    return content


class WaitingPart(NamedTuple):
    """A part that waits for an entry."""

    part: Part
    content: bytes
    """The part's bytes in an entry."""
    future: asyncio.Future[Committed]
    """Gets the part's fate."""


class OwnEntry(NamedTuple):
    """An own entry under way."""

    entry: LogEntry
    content: bytes
    """The entry's bytes."""
    futures: Sequence[asyncio.Future[Committed]]
    """Get the fates of its parts, in their order."""
    since: Sequence[float] = ()
    """When each part was proposed, in seconds of the boot clock."""
    sent: float = 0.0
    """When it went to the engine, by the same clock."""


class GroupCommit:
    """A FIFO of parts; a group's order is kept, since it has one part under way at a time."""

    def __init__(self, linger_parts: int = LINGER_PARTS) -> None:
        """`linger_parts`: the next entry lingers after one of this many parts."""
        self._linger_parts = linger_parts
        self._waiting: deque[WaitingPart] = deque()
        self._bytes = 0
        self._last_held = 0
        self._seen, self._lingers_since = 0, 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def term(self) -> int:
        """The term in which the oldest part was decided; some part must wait."""
        return self._waiting[0].part.term

    @property
    def fills_an_entry(self) -> bool:
        """Whether the waiting parts are enough for an entry of the target size."""
        return self._bytes >= COALESCED_BYTES

    def may_follow(self, under_way: int) -> bool:
        """Return whether to offer an entry while `under_way` ones of its term are under way."""
        return not under_way or (under_way < ENTRIES_IN_FLIGHT and self.fills_an_entry)

    def lingers(self, now: float) -> bool:
        """Return whether to look again in `LINGER_GAP_S` before parts are taken; `now` in seconds.

        To be called only while a part waits that might be taken.
        """
        if not self._seen:
            self._lingers_since = now
        more_came = len(self) > self._seen
        in_time = now - self._lingers_since < LINGER_S
        many = self._last_held >= self._linger_parts
        lingers = many and more_came and in_time and not self.fills_an_entry
        self._seen = len(self) if lingers else 0
        return lingers

    def add(self, part: Part, content: bytes, future: asyncio.Future[Committed]) -> None:
        """Append a part to those that wait. Raises Overloaded: nothing was proposed."""
        if len(self._waiting) >= WAITING_MAX or self._bytes + len(content) > WAITING_BYTES_MAX:
            raise Overloaded(
                f"{len(self)} changes wait for the log already: nothing was proposed, try later"
            )
        self._waiting.append(WaitingPart(part, content, future))
        self._bytes += len(content)

    def take(self) -> list[WaitingPart]:
        """Remove and return the oldest parts of one term (S1), as many as an entry should hold.

        At least one. A long one is alone: together with short ones it could exceed the limit (S7).
        """
        taken = [self._waiting.popleft()]
        size = len(taken[0].content)
        while self and self.term == taken[0].part.term:
            size += len(self._waiting[0].content)
            if size > COALESCED_BYTES:
                break
            taken.append(self._waiting.popleft())
        self._bytes -= sum(len(waiting.content) for waiting in taken)
        self._last_held, self._seen = len(taken), 0
        return taken
