"""grpc.health.v1: "" says that the process serves, "holdfast.v1.GroupService" that it leads.

A load balancer in front of all nodes asks for the first, one that must find the leader for the
second. This is a listener of the replica.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from grpc_health.v1 import health_pb2
from grpc_health.v1.health import aio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.coordinator.model.events import Record
    from holdfast.runtime.ports import ReplicaLike

LEADING: Final = (
    "holdfast.v1.GroupService",
    "holdfast.v1.OffsetService",
    "holdfast.v1.AdminService",
)
_SERVING: Final = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING


class Health:
    """The node's health, for callers that ask or watch."""

    def __init__(self, replica: ReplicaLike, is_serving: Callable[[], bool]) -> None:
        """`is_serving`: whether this node leads and decides commands (`Actors.is_serving`)."""
        self.servicer = aio.HealthServicer()
        self._replica, self._is_serving = replica, is_serving
        self._ready = False
        self._telling: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """Report that the process serves, and whether it leads already."""
        await self.servicer.set("", _SERVING)
        await self._tell(ready=self._ready)

    async def end(self) -> None:
        """Report that the process is about to stop."""
        await self.servicer.enter_graceful_shutdown()

    def listen(self) -> None:
        """Subscribe to the replica, behind the actors, whose word it passes on."""
        self._replica.subscribe(
            on_leading=self.on_leading,
            on_not_leading=self.on_not_leading,
            on_applied=self.on_applied,
            on_stopped=self.on_stopped,
        )

    def on_leading(self, term: int) -> None:
        """Report ready, once the log has a cluster, and what a restore owes it (S13)."""
        del term
        self._look()

    def on_not_leading(self) -> None:
        """Report not ready."""
        self._look()

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        """Report ready when the first record, the cluster or its recovery number, is applied."""
        del records, index
        if not self._ready:
            self._look()

    def on_stopped(self, reason: str) -> None:
        """Report not ready."""
        del reason
        self._look()

    def _look(self) -> None:
        ready = self._is_serving()
        if ready != self._ready:
            self._ready = ready
            task = asyncio.ensure_future(self._tell(ready=ready))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tell(self, *, ready: bool) -> None:
        for service in LEADING:
            await self.servicer.set(service, _SERVING if ready else _NOT_SERVING)
