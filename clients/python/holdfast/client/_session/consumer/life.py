"""The life of a member's process, and the numbers of its heartbeats, by which they have an order.

Each heartbeat that is made gets the next number, a goodbye too; one that is sent again keeps its
own. So whatever the network delivers late is known to be of the past (S26). No IO, no clock.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holdfast.v1 import extras_pb2

if TYPE_CHECKING:
    from holdfast.client._session.requests import RequestIdSource

_LIFE: Final = re.compile(
    r"([0-9a-f]{8})-([0-9a-f]{4})(-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})"
)
"""A UUIDv7: 48 bits of time in milliseconds, and the rest."""
_LAST: Final = "7" + 11 * "f"
"""The latest time that the service takes."""


class Life:
    """One life: it lasts as long as the member object, over all joins."""

    def __init__(self, ids: RequestIdSource) -> None:
        self.name = ""
        """A UUIDv7, made for the first heartbeat; the log time may be known by then."""
        self._ids = ids
        self._beats = 0
        self._is_taken = False

    def number(self, now_ms: int) -> extras_pb2.RequestExtras:
        """Return what a new heartbeat says of its place in this life."""
        if not self.name:
            self.name = self._ids.make_life(now_ms)
        self._beats += 1
        return extras_pb2.RequestExtras(life=self.name, beat=self._beats)

    def accepted(self) -> None:
        """Note that the group has, or may have, taken a heartbeat of this life: it stays."""
        self._is_taken = True

    def rise_above(self, holder: str) -> bool:
        """Take a life just above that of whoever holds the instance id; return whether it may be.

        Log time can have fallen back while nobody led, and a wall clock can be behind; then a new
        process has a life below that of the one before it. Once a heartbeat was accepted, or may
        have been, a holder with a higher life is a newer process.
        """
        found = _LIFE.fullmatch(holder)
        if self._is_taken or found is None or holder < self.name:
            return False
        high, low, rest = found.groups()
        later = f"{int(high + low, 16) + 1:012x}"
        if later > _LAST:
            return False
        self.name = f"{later[:8]}-{later[8:]}{rest}"
        return True
