"""Heartbeats of single machines that are lost, that come late, or that come twice.

A connection loses nothing and keeps its order; what stands between a client and a node may not: a
proxy gives up, or sends again what nobody waits for any more. So a heartbeat is taken out here, and
delivered by itself when its time has come. Whoever sent it hears nothing of that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import grpc

from holdfast.v1 import group_pb2
from simulation.schedule import US
from simulation.server_side import ServerCall, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from simulation.client_side import Line, Observer
    from simulation.schedule import Schedule
    from simulation.server_side import Trailing

LOST, LATE, DOUBLED = "lost-beats", "late-beats", "doubled-beats"
METHOD: Final = "/holdfast.v1.GroupService/ConsumerGroupHeartbeat"
AFTER_US: Final = (US // 50, 6 * US)
"""How much later one comes that comes late, or a second time."""
_UNHEARD: Final = Status(grpc.StatusCode.CANCELLED, "nobody waits for it", ())


class How(NamedTuple):
    """What happens to the heartbeats of a machine, and to how many of them."""

    kind: str
    share: float
    random: Random


class Meddler:
    """Who stands between the clients and the nodes."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._on: dict[str, list[How]] = {}

    def begin(self, machine: str, kind: str, share: float, random: Random) -> Callable[[], None]:
        """Meddle with so large a part of a machine's heartbeats; returns what ends that."""
        how = How(kind, share, random)
        self._on.setdefault(machine, []).append(how)
        return lambda: self._on[machine].remove(how)

    def passes(self, line: Line, request: Any, metadata: Trailing, observer: Observer) -> bool:  # noqa: ANN401 - any
        """Whether a request goes on as usual."""
        if not isinstance(request, group_pb2.ConsumerGroupHeartbeatRequest):
            return True
        for how in self._on.get(line.client.machine, ()):
            if how.random.random() >= how.share:
                continue
            if how.kind != LOST:
                after_us = how.random.randint(*AFTER_US)
                arrival = _Arrival(line, request, metadata, observer)
                self._schedule.after(after_us, arrival.begin)
            if how.kind != DOUBLED:
                return False
        return True


class _Arrival:
    """A heartbeat that arrives by itself. In the history it is a call of its own, unheard."""

    def __init__(
        self,
        line: Line,
        request: group_pb2.ConsumerGroupHeartbeatRequest,
        metadata: Trailing,
        observer: Observer,
    ) -> None:
        self._line, self._request, self._metadata = line, request, metadata
        self._observer, self._call = observer, 0

    def begin(self) -> None:
        """It reaches the node's process, if that still lives."""
        server = self._line.server
        if not server.process.runs:
            return
        self._call = self._observer.sent(f"{self._line.client.name}~", self._request)
        raw = self._request.SerializeToString()
        call = ServerCall(
            server, METHOD, self._line.peer, self._metadata, _nothing, _unread, self._ended
        )
        server.process.loop.call_soon(call.begin, raw)

    def _ended(self, _status: Status) -> None:
        self._observer.failed(self._call, _UNHEARD)


def _nothing() -> None:
    """Nobody waits for its beginning."""


def _unread(_raw: bytes) -> None:
    """Nobody reads its answer."""
