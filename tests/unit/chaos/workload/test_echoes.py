"""Heartbeats that come late or twice in a run of chaos: the node hears them, and nobody else."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from harness.poll import until_async
from holdfast.chaos.history.happenings import Happening, Invoked, Returned
from holdfast.chaos.history.jsonl import happening_of
from holdfast.chaos.workload.callers import RecordedConnection
from holdfast.chaos.workload.echoes import AFTER_S, DOUBLED, LATE, Echoes
from holdfast.chaos.workload.recorder import Recorder
from holdfast.client._session.session_io import Failure
from holdfast.client.errors import OutcomeUnknown
from holdfast.v1 import group_pb2 as g
from unit.client.fake_cluster import fake_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from google.protobuf.message import Message

    from unit.client.fake_cluster import FakeGroup, FakeNode

BEAT = g.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=2)
OTHER = g.HeartbeatRequest(group_id="g", member_id="m", generation_id=1)


class Fated(Random):
    """Says the same at each draw, and takes no time."""

    def __init__(self, chance: float) -> None:
        super().__init__(0)
        self._chance = chance

    def random(self) -> float:
        return self._chance

    def uniform(self, a: float, b: float) -> float:
        assert (a, b) == AFTER_S
        return 0.0


def written(path: Path) -> list[Happening]:
    return [happening_of(line) for line in path.read_text().splitlines()]


async def asked(
    path: Path, chance: float, request: Message, heard: int
) -> tuple[Any, list[Any], list[Happening]]:
    """Have a member say this; its answer, what the node has heard, and what was written down."""
    group: FakeGroup
    nodes: list[FakeNode]
    async with fake_cluster() as (group, nodes):
        recorder = Recorder(path, 1)
        echoes = Echoes([nodes[0].address], None, recorder, "m#1", Fated(chance))
        own = RecordedConnection([nodes[0].address], None, recorder, "m#1", echoes)
        answer = await own.caller.attempt(request, 5_000)
        name = type(request).__name__.removesuffix("Request")
        await until_async(lambda: len(group.requests[name]) >= heard, "what was sent")
        await until_async(lambda: len(written(path)) >= 2 * max(1, heard), "the ends of the calls")
        await own.close()
        recorder.close()
        return answer, list(group.requests[name]), written(path)


def calls(happenings: list[Happening]) -> list[tuple[str, str]]:
    """Who called, and the outcome, in the order of the calls."""
    ends = {each.call: each.outcome for each in happenings if isinstance(each, Returned)}
    return [(each.who, ends[each.call]) for each in happenings if isinstance(each, Invoked)]


def test_a_doubled_heartbeat_is_heard_twice_and_its_echo_by_nobody(tmp_path: Path) -> None:
    """S26: the member has its answer, and the second one is a call that nobody waits for."""
    answer, heard, history = asyncio.run(asked(tmp_path / "h", LATE, BEAT, 2))

    assert not isinstance(answer, Failure)
    assert [each.member_epoch for each in heard] == [2, 2]
    assert sorted(calls(history)) == [("m#1", "rejected"), ("m#1~", "unknown")], "a stranger"


def test_a_late_heartbeat_is_heard_once_and_its_member_knows_nothing_of_it(tmp_path: Path) -> None:
    """S26, S5: for the member its outcome is unknown."""
    answer, heard, history = asyncio.run(asked(tmp_path / "h", LATE / 2, BEAT, 1))

    assert isinstance(answer, Failure)
    assert isinstance(answer.error, OutcomeUnknown)
    assert [each.member_epoch for each in heard] == [2]
    assert sorted(calls(history)) == [("m#1", "unknown"), ("m#1~", "unknown")]


@pytest.mark.parametrize(("chance", "request_"), [(LATE + DOUBLED, BEAT), (0.0, OTHER)])
def test_what_is_not_chosen_and_other_calls_go_on_as_usual(
    chance: float, request_: Message, tmp_path: Path
) -> None:
    """Only heartbeats of the heartbeat protocol have an order of their own (S26)."""
    answer, heard, history = asyncio.run(asked(tmp_path / "h", chance, request_, 1))

    assert not isinstance(answer, Failure)
    assert len(heard) == 1
    assert [who for who, _ in calls(history)] == ["m#1"]
