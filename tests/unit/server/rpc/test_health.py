"""gRPC's health service: who leads is told as ready only once it serves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from grpc_health.v1 import health_pb2

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.events import RecoveryNumberRaised
from holdfast.runtime.groups.actors import Actors
from holdfast.server.rpc.health import LEADING, Health
from unit.runtime.world import World

if TYPE_CHECKING:
    from holdfast.server.rpc.callers import Context

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
RAISE = c.RaiseRecoveryNumber(1, 5)


class Asked(World):
    """A node whose cluster was restored, and what its health service answers."""

    def __init__(self) -> None:
        super().__init__()
        self.replica = self._replica()
        self.actors = Actors(self.replica, self.timers, {}, self._forming, RAISE)
        self.health = Health(self.replica, lambda: self.actors.is_serving)
        self.actors.listen()
        self.health.listen()

    @staticmethod
    def _forming() -> c.FormCluster:
        return c.FormCluster("c", ())

    async def says(self, service: str) -> int:
        await self.settle()
        request = health_pb2.HealthCheckRequest(service=service)
        answer = await self.health.servicer.Check(request, cast("Context", None))
        status: int = answer.status
        return status


def test_s13_a_restored_cluster_is_not_told_as_ready_before_its_number_is_raised() -> None:
    async def story() -> None:
        world = Asked()
        world.replica.state = world.replica.state._replace(cluster_id="c")
        world.replica.hold = True
        await world.health.begin()
        world.replica.lead(2)
        for service in LEADING:
            assert await world.says(service) == NOT_SERVING
        world.replica.release()
        assert any(isinstance(r.event, RecoveryNumberRaised) for r in world.replica.records)
        for service in LEADING:
            assert await world.says(service) == SERVING
        assert await world.says("") == SERVING

    asyncio.run(story())


def test_a_node_that_does_not_lead_any_more_is_not_told_as_ready() -> None:
    async def story() -> None:
        world = Asked()
        world.replica.state = world.replica.state._replace(cluster_id="c", recovery_number=1)
        await world.health.begin()
        world.replica.lead(2)
        assert await world.says(LEADING[0]) == SERVING
        world.replica.step_down()
        assert await world.says(LEADING[0]) == NOT_SERVING

    asyncio.run(story())
