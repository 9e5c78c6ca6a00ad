"""Calls and bytes of one principal in a second: what passes, what is refused, and for how long."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import pytest

from holdfast.coordinator.model.access import CLUSTER, DENY, READER, Acl, administrator
from holdfast.coordinator.model.events import (
    AccessModeChanged,
    AclsChanged,
    Event,
    LevelRaised,
    SettingChange,
    SettingsChanged,
)
from holdfast.coordinator.model.state import Settings, State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.server.access import principal_limits
from holdfast.server.access.principal_limits import PrincipalLimits
from holdfast.server.rpc.errors import OUTCOME_KEY, CallFailed
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import log_pb2 as lg
from unit.server.nodes import beat, commit, join, served, sync

if TYPE_CHECKING:
    from unit.server.nodes import Served

EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


class World:
    """Limits with a clock that stands still."""

    def __init__(self, **settings: int) -> None:
        self.now, self.slept = 100.0, list[float]()
        self.set(**settings)
        self.limits = PrincipalLimits(lambda: self.state, lambda: self.now, self.sleep)

    def set(self, **settings: int) -> None:
        named = ((f"principal.{name}", str(value)) for name, value in settings.items())
        self.state = State(settings=Settings(PMap(named)))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))

    def passes(self, principal: str = "svc", size: int = 1) -> bool:
        refused = self.refusal(principal, size)
        if refused is not None:
            assert refused.status is EXHAUSTED
            assert refused.outcome == "not-applied"
            assert "holdfast settings set principal." in refused.sentence
        return refused is None

    def refusal(self, principal: str, size: int) -> CallFailed | None:
        try:
            self.limits.take(principal, size)
        except CallFailed as error:
            return error
        return None


def test_without_a_setting_nothing_is_limited() -> None:
    world = World()

    assert not world.limits.on
    assert all(world.passes(size=1 << 30) for _ in range(1_000))
    world.limits.check_watches(1_000)


def test_so_many_calls_pass_in_a_second_and_nobody_elses_are_fewer() -> None:
    world = World(calls_per_second_max=5)

    assert world.limits.on
    assert [world.passes() for _ in range(7)] == [True] * 5 + [False] * 2
    assert world.passes("other")
    world.now += 0.4
    assert [world.passes() for _ in range(3)] == [True, True, False]
    world.now += 60.0
    assert [world.passes() for _ in range(6)] == [True] * 5 + [False], "no pause saves up more"


def test_a_long_request_passes_and_is_owed() -> None:
    """Else one that is longer than a second's worth could never be sent."""
    world = World(bytes_per_second_max=1_000)

    assert world.passes(size=3_500)
    world.now += 2.0
    assert not world.passes(size=1)
    world.now += 0.6
    assert world.passes(size=1)


def test_what_is_refused_costs_nothing() -> None:
    world = World(calls_per_second_max=2)
    assert [world.passes() for _ in range(50)].count(True) == 2

    world.now += 0.5

    assert world.passes()


def test_a_setting_that_is_raised_counts_at_once() -> None:
    world = World(calls_per_second_max=1)
    assert [world.passes() for _ in range(2)] == [True, False]

    world.set()

    assert world.passes()


def test_calls_whose_answers_come_in_order_wait_each_behind_the_one_before() -> None:
    world = World(calls_per_second_max=2, bytes_per_second_max=100)

    async def story() -> None:
        for size in (10, 10, 10, 10, 260):
            await world.limits.turn("svc", size)

    asyncio.run(story())

    assert world.slept == [0.5, 1.0, 2.0], "the last one waits for its bytes"


def test_principals_without_number_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that owe something are kept: to be forgotten must not pay."""
    monkeypatch.setattr(principal_limits, "PRINCIPALS_MAX", 10)
    world = World(calls_per_second_max=1)
    assert world.passes("mallory")
    for number in range(100):
        assert world.passes(f"p{number}")
        world.now += 0.001
    assert not world.passes("mallory")

    for number in range(100):
        world.passes(f"q{number}")
        world.now += 2.0
    assert world.limits.remembered <= 10


async def limit(node: Served, name: str, value: int) -> None:
    change = SettingChange(f"principal.{name}", str(value))
    node.replica.slip_in("", SettingsChanged("", (change,)))


async def ended(call: grpc.aio.Call) -> tuple[grpc.StatusCode, dict[str, str]]:
    trailing = {str(key): str(value) for key, value in await call.trailing_metadata()}
    return await call.code(), trailing


def test_a_call_too_many_is_refused_and_a_heartbeat_never_is() -> None:
    """A session would end by it."""

    async def story() -> None:
        async with served() as node:
            member = await node.group.JoinGroup(join())
            await node.group.SyncGroup(sync(member))
            await limit(node, "calls_per_second_max", 1)
            await node.admin.ListGroups(a.ListGroupsRequest())

            refused = await ended(node.admin.ListGroups(a.ListGroupsRequest()))
            assert refused == (EXHAUSTED, {OUTCOME_KEY: "not-applied"})
            for _ in range(3):
                assert (await node.group.Heartbeat(beat(member))).error_code == 0

    asyncio.run(story())


RAISE = a.AlterSettingsRequest(
    settings=[a.SettingToAlter(name="principal.calls_per_second_max", value="0")]
)


def test_who_may_raise_a_limit_is_never_kept_from_it_by_the_limit() -> None:
    """Nor from what is needed to find the node and the setting. All other calls count."""

    async def story(*mode: Event) -> None:
        async with served() as node:
            await limit(node, "calls_per_second_max", 1)
            node.replica.slip_in("", *mode)
            await node.admin.ListGroups(a.ListGroupsRequest())
            for _ in range(3):
                await node.admin.DescribeCluster(a.DescribeClusterRequest())
                await node.group.FindCoordinator(g.FindCoordinatorRequest())
                await node.admin.DescribeSettings(a.DescribeSettingsRequest())
            assert (await ended(node.admin.ListGroups(a.ListGroupsRequest())))[0] is EXHAUSTED

            await node.admin.AlterSettings(RAISE)

            for _ in range(3):
                await node.admin.ListGroups(a.ListGroupsRequest())

    asyncio.run(story())
    deny = (LevelRaised(2), AclsChanged((administrator("anonymous"),), ()), AccessModeChanged(DENY))
    asyncio.run(story(*deny))


def test_who_may_not_raise_a_limit_is_kept_to_it_in_all_its_calls() -> None:
    async def story() -> None:
        async with served() as node:
            await limit(node, "calls_per_second_max", 1)
            reader = Acl("anonymous", READER, CLUSTER, "")
            granted = AclsChanged((administrator("root"), reader), ())
            node.replica.slip_in("", LevelRaised(2), granted, AccessModeChanged(DENY))
            await node.admin.DescribeSettings(a.DescribeSettingsRequest())

            refused = await ended(node.admin.DescribeSettings(a.DescribeSettingsRequest()))
            assert refused[0] is EXHAUSTED

    asyncio.run(story())


def test_calls_on_a_session_are_refused_one_by_one_and_its_heartbeats_are_not() -> None:
    async def story() -> None:
        async with served() as node:
            member = await node.group.JoinGroup(join())
            await node.group.SyncGroup(sync(member))
            await limit(node, "calls_per_second_max", 1)
            leave = g.LeaveGroupRequest(group_id="other")
            calls = [g.SessionCall(number=number, leave=leave) for number in (1, 2)]
            calls.append(g.SessionCall(number=3, heartbeat=beat(member)))
            stream = node.group.Session()
            await stream.write(g.SessionRequest(calls=calls))
            answers: dict[int, g.SessionAnswer] = {}
            while len(answers) < len(calls):
                got = await stream.read()
                assert isinstance(got, g.SessionResponse)
                answers |= {each.number: each for each in got.answers}
            stream.cancel()

        assert answers[1].WhichOneof("response") == "leave"
        assert answers[2].WhichOneof("response") == "status"
        assert answers[2].status.code == EXHAUSTED.value[0]
        assert answers[3].heartbeat.error_code == 0

    asyncio.run(story())


def test_a_watch_too_many_is_refused() -> None:
    async def story() -> None:
        async with served() as node:
            await limit(node, "watches_max", 1)
            first = node.log.Watch(lg.WatchRequest())
            await first.read()

            assert (await ended(node.log.Watch(lg.WatchRequest())))[0] is EXHAUSTED
            first.cancel()

    asyncio.run(story())


def test_a_stream_of_commits_is_slowed_down_and_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with served() as node:
            waited: list[float] = []

            async def sleep(seconds: float) -> None:
                waited.append(seconds)

            monkeypatch.setattr(node.node._limits, "_sleep", sleep)
            await limit(node, "calls_per_second_max", 1)
            stream = node.offset.OffsetCommitStream()
            for offset in range(3):
                await stream.write(commit(offset))
            for _ in range(3):
                await stream.read()
            stream.cancel()
            assert len(waited) == 2

    asyncio.run(story())
