"""Heartbeats of one machine are lost, come late, or come twice; all others go on as usual."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.v1 import group_pb2
from simulation.beats import AFTER_US, DOUBLED, LATE, LOST, Meddler
from simulation.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable

BEAT = group_pb2.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=3)


class Scene:
    """A machine `client-1` that has a connection, and who writes down what arrives by itself."""

    def __init__(self) -> None:
        self.schedule = Schedule()
        self.meddler = Meddler(self.schedule)
        self.arrived: list[tuple[int, str]] = []
        loop = SimpleNamespace(call_soon=self._soon)
        server = SimpleNamespace(process=SimpleNamespace(runs=True, loop=loop))
        client = SimpleNamespace(machine="client-1", name="client-1.1")
        self.line: Any = SimpleNamespace(client=client, server=server, peer="p")

    def _soon(self, begin: Callable[..., None], raw: bytes) -> None:
        del begin
        assert raw == BEAT.SerializeToString()

    def sent(self, who: str, request: object) -> int:
        assert request is BEAT
        self.arrived.append((self.schedule.now_us, who))
        return 1

    def failed(self, call: int, status: object) -> None:
        """Nothing: the server here answers nobody."""

    def passes(self, request: object = BEAT) -> bool:
        observer: Any = self
        return self.meddler.passes(self.line, request, (), observer)


@pytest.mark.parametrize(
    ("kind", "passes", "comes"), [(LOST, False, 0), (LATE, False, 1), (DOUBLED, True, 1)]
)
def test_what_becomes_of_a_heartbeat(kind: str, passes: bool, comes: int) -> None:  # noqa: FBT001 - a case
    scene = Scene()
    scene.meddler.begin("client-1", kind, 1.0, Random(1))

    assert scene.passes() is passes
    scene.schedule.run(2 * AFTER_US[1])

    assert len(scene.arrived) == comes
    for at_us, who in scene.arrived:
        assert AFTER_US[0] <= at_us <= AFTER_US[1]
        assert who == "client-1.1~", "a call of its own, for nobody hears its answer"


def test_other_calls_and_other_machines_go_on() -> None:
    scene = Scene()
    scene.meddler.begin("client-2", LOST, 1.0, Random(1))
    assert scene.passes()

    scene.meddler.begin("client-1", LOST, 1.0, Random(1))

    assert scene.passes(group_pb2.HeartbeatRequest(group_id="g"))
    assert not scene.passes()


def test_it_ends() -> None:
    scene = Scene()
    end = scene.meddler.begin("client-1", LOST, 1.0, Random(1))
    end()

    assert scene.passes()


def test_a_node_that_stands_still_or_is_gone_is_not_reached() -> None:
    scene = Scene()
    scene.meddler.begin("client-1", LATE, 1.0, Random(1))
    scene.passes()
    scene.line.server.process.runs = False
    scene.schedule.run(2 * AFTER_US[1])

    assert scene.arrived == []
