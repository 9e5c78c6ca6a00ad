"""One endpoint is enough while it answers: the other nodes are learned from the service."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from harness.poll import until_async
from holdfast.client import Admin, Member
from holdfast.client._rpc.clock import boot_ms
from holdfast.client._rpc.connectivity_log import QUIET_MS_MAX, ConnectivityLog
from holdfast.client._rpc.discovery import AGAIN_MS, Discovery
from holdfast.client._rpc.endpoints import Endpoints
from holdfast.client._rpc.token_source import Shown
from unit.client.fake_cluster import fake_cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

    from unit.client.fake_cluster import FakeGroup, FakeNode

WITHIN_S = 20


def walk(endpoints: Endpoints, steps: int) -> set[str]:
    seen = set()
    for _ in range(steps):
        endpoints.failed(endpoints.current)
        seen.add(endpoints.current)
    return seen


def test_the_walk_passes_learned_nodes_and_never_forgets_the_given_ones() -> None:
    endpoints = Endpoints(("given:1",))
    endpoints.learned(["b:2", "given:1", "c:3"])
    assert endpoints.addresses == ("given:1", "b:2", "c:3")
    assert walk(endpoints, 3) == {"given:1", "b:2", "c:3"}
    endpoints.learned(["d:4"])
    assert walk(endpoints, 4) == {"given:1", "d:4"}
    endpoints.learned([])
    assert walk(endpoints, 2) == {"given:1"}


def test_a_member_with_one_endpoint_outlives_that_node_and_the_leader() -> None:
    """The given node and the leading one die; only who has learned the third finds it."""

    async def scenario() -> None:
        async with fake_cluster(3) as (group, nodes), asyncio.timeout(WITHIN_S):
            settings = {"group": "g", "topics": ["t"], "heartbeat_interval_ms": 20}
            async with Member(nodes[0].address, **settings) as member:  # type: ignore[arg-type]  # Member's own
                await until_async(lambda: member.assignment, "the assignment")
                await until_async(lambda: group.requests["DescribeCluster"], "the question")
                endpoints = member._caller.endpoints
                await until_async(lambda: len(endpoints.addresses) == 3, "three nodes")
                group.leader = nodes[1].address
                await nodes[0].server.stop(0)
                await nodes[2].server.stop(0)
                beats = len(group.requests["HeartbeatStream"])
                await until_async(
                    lambda: len(group.requests["HeartbeatStream"]) > beats + 2, "heartbeats"
                )
                assert member.health().error is None

    asyncio.run(scenario())


def test_the_end_of_a_connection_waits_for_the_answer_on_its_way() -> None:
    """A call that is cancelled last stays open in gRPC, for which the process's end waits 2 s."""

    async def scenario() -> None:
        async with fake_cluster(2) as (group, (given, other)), asyncio.timeout(WITHIN_S):
            group.describe_gate.clear()
            admin = Admin(given.address)
            group.leader = given.address
            await admin.list_topics()
            await until_async(lambda: group.requests["DescribeCluster"], "the question")
            closing = asyncio.create_task(admin.close())
            await asyncio.sleep(0)
            group.describe_gate.set()
            await closing
            assert admin._caller.endpoints.addresses == (given.address, other.address)

    asyncio.run(scenario())


def test_a_node_that_does_not_answer_does_not_keep_a_connection_from_its_end() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (given,)), asyncio.timeout(WITHIN_S):
            group.describe_gate.clear()
            async with Admin(given.address) as admin:
                await admin.list_topics()
                await until_async(lambda: group.requests["DescribeCluster"], "the question")
            assert admin._caller.endpoints.addresses == (given.address,)

    asyncio.run(scenario())


class Asked:
    """Nodes that tell what a test wants, and a clock that it moves."""

    def __init__(self, group: FakeGroup, node: FakeNode) -> None:
        self.endpoints, self.now_ms = Endpoints((node.address,)), 1_000
        self._group, self._channel = group, grpc.aio.insecure_channel(node.address)
        self.discovery = Discovery(
            self.endpoints, lambda _: self._channel, Shown(()), lambda: self.now_ms
        )

    async def told(self, address: str) -> int:
        """Say that a call was answered at an address; return how often nodes were asked by now."""
        self.discovery.answered(address)
        if self.discovery._asking is not None:
            await self.discovery._asking
        return len(self._group.requests["DescribeCluster"])

    async def close(self) -> None:
        await self.discovery.close(0)
        await self._channel.close()


@asynccontextmanager
async def asking() -> AsyncIterator[tuple[FakeGroup, Asked, str]]:
    async with fake_cluster() as (group, (node,)), asyncio.timeout(WITHIN_S):
        asked = Asked(group, node)
        try:
            yield group, asked, node.address
        finally:
            await asked.close()


def test_the_node_that_answers_is_asked_again_now_and_then() -> None:
    """Nodes come and go while a leader stays: nobody would tell a client that runs for months."""

    async def scenario() -> None:
        async with asking() as (group, asked, address):
            assert await asked.told(address) == 1
            group.nodes = ["127.0.0.1:4"]
            asked.now_ms += AGAIN_MS - 1
            assert await asked.told(address) == 1
            asked.now_ms += 1
            assert await asked.told(address) == 2
            assert asked.endpoints.addresses == (address, "127.0.0.1:4")

    asyncio.run(scenario())


def test_a_node_is_asked_again_on_a_new_connection() -> None:
    """It was away, and so perhaps was this client: nodes may have changed meanwhile."""

    async def scenario() -> None:
        async with asking() as (_, asked, address):
            await asked.told(address)
            asked.discovery.reconnecting("127.0.0.1:5")  # not the one that was asked
            assert await asked.told(address) == 1
            asked.discovery.reconnecting(address)
            assert await asked.told(address) == 2

    asyncio.run(scenario())


def test_a_node_that_lags_behind_does_not_bring_removed_nodes_back() -> None:
    """S25: of two answers that with the higher entry is the newer, whoever is asked last."""

    async def scenario() -> None:
        async with asking() as (group, asked, address):
            newer, older = "127.0.0.1:4", "127.0.0.1:5"
            group.nodes, group.membership_index = [newer], 20
            await asked.told(address)
            group.nodes, group.membership_index = [older], 10
            await asked.told("another")
            assert asked.endpoints.addresses == (address, newer)
            # A restore begins with the nodes of the files: its log knows no change of nodes.
            group.membership_index, group.recovery_number = 0, 1
            await asked.told(address)
            assert asked.endpoints.addresses == (address, older)

    asyncio.run(scenario())


def test_a_member_outlives_the_replacement_of_all_nodes_that_it_was_given() -> None:
    """It learns the new ones while it runs: no address that it was given answers any more."""

    async def scenario() -> None:
        async with fake_cluster(2) as (group, (given, new)), asyncio.timeout(WITHIN_S):
            group.nodes, group.leader = [given.address], given.address
            settings = {"group": "g", "topics": ["t"], "heartbeat_interval_ms": 20}
            async with Member(given.address, **settings) as member:  # type: ignore[arg-type]  # Member's own
                await until_async(lambda: member.assignment, "the assignment")
                await until_async(lambda: group.requests["DescribeCluster"], "the question")
                group.nodes, group.leader, group.membership_index = [new.address], new.address, 9
                member._caller._discovery._now_ms = lambda: boot_ms() + AGAIN_MS
                learned = (given.address, new.address)
                await until_async(lambda: member._caller.endpoints.addresses == learned, "the news")
                await given.server.stop(0)
                beats = len(group.requests["HeartbeatStream"])
                await until_async(
                    lambda: len(group.requests["HeartbeatStream"]) > beats + 2, "heartbeats"
                )
                assert member.health().error is None

    asyncio.run(scenario())


def test_an_admin_learns_too_and_a_service_that_does_not_tell_stops_nothing() -> None:
    async def scenario() -> None:
        async with fake_cluster(2) as (group, nodes), asyncio.timeout(WITHIN_S):
            group.refuse["DescribeCluster"] = [(grpc.StatusCode.UNIMPLEMENTED, ())]
            async with Admin(nodes[0].address) as admin:
                await admin.list_topics()
                await until_async(lambda: group.requests["DescribeCluster"], "the question")
                assert await admin.list_topics() == {"t": 4}
                assert len(group.requests["DescribeCluster"]) == 1  # refused for good: once
            async with Admin(nodes[0].address) as admin:
                await admin.list_topics()
                endpoints = admin._caller.endpoints
                await until_async(lambda: len(endpoints.addresses) == 2, "two nodes")

    asyncio.run(scenario())


def test_silence_is_told_once_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    """People must hear it, but not at each attempt; a node that knows no leader does answer."""
    now = [0]
    reach = ConnectivityLog(lambda: now[0])
    reach.failed("refused", ("a:1", "b:2"))
    reach.answered("a:1")  # a failover: not worth a word
    reach.failed("refused", ("a:1", "b:2"))
    assert caplog.records == []
    for now[0] in (QUIET_MS_MAX - 1, QUIET_MS_MAX, QUIET_MS_MAX + 1):
        reach.failed("refused", ("a:1", "b:2"))
    (silence,) = caplog.records
    assert silence.levelno == logging.WARNING
    assert "No node has served a call for 3.0 s; tried a:1, b:2" in silence.getMessage()
    assert "refused" in silence.getMessage()
    reach.answered("b:2")
    reach.answered("b:2")
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert "b:2 serves again" in caplog.records[1].getMessage()
