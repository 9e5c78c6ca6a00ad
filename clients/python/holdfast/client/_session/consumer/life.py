"""The life of a member's process, and the numbers of its heartbeats, by which they have an order.

Each heartbeat that is made gets the next number, a goodbye too; one that is sent again keeps its
own. So whatever the network delivers late is known to be of the past (S26). No IO, no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.v1 import extras_pb2

if TYPE_CHECKING:
    from holdfast.client._session.requests import RequestIdSource


class Life:
    """One life: it lasts as long as the member object, over all joins."""

    def __init__(self, ids: RequestIdSource) -> None:
        self.name = ""
        """A UUIDv7, made for the first heartbeat; the log time may be known by then."""
        self._ids = ids
        self._beats = 0

    def number(self, now_ms: int) -> extras_pb2.RequestExtras:
        """Return what a new heartbeat says of its place in this life."""
        if not self.name:
            self.name = self._ids.make_life(now_ms)
        self._beats += 1
        return extras_pb2.RequestExtras(life=self.name, beat=self._beats)
