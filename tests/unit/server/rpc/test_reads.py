"""Reads need the lease or a majority; one that may be stale says how old it is (S10)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import grpc
import pytest

from holdfast.raft.api import Status
from holdfast.runtime.replica.catch_up import CatchUp
from holdfast.server.rpc.errors import OUTCOME_KEY
from holdfast.server.rpc.reads import Reads
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import log_pb2 as lg
from holdfast.v1 import offset_pb2 as o
from unit.runtime.fake_replica import FakeReplica
from unit.runtime.world import World
from unit.server.nodes import served

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from unit.server.nodes import Served

STALE = x.RequestExtras(stale_ok=True)


class Follower(FakeReplica):
    """A node that does not lead; `heard`: (seconds, index) of its leader's last word."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = (float("-inf"), 0)

    def status(self) -> Status:
        return Status("follower", 1, "node-2", "member", 5, 5, 5, 1, 5, (), *self.heard, 0)


def age_ms(heard: tuple[float, int], applied_index: int, now_ms: int) -> int:
    """The age that is told at `now_ms`, of a state that was applied at 1,000 ms."""

    async def story() -> int:
        replica, clock = Follower(), [1_000]
        reads = Reads(replica, World().actors, CatchUp(replica), lambda: clock[0])
        replica.state = replica.state._replace(applied_index=applied_index)
        reads.on_applied([], applied_index)
        clock[0], replica.heard = now_ms, heard
        return (await reads.state(STALE))[1].age_ms

    return asyncio.run(story())


def test_on_an_idle_cluster_the_age_counts_from_the_leaders_last_word() -> None:
    """The leader said 40 ms ago that nothing is newer: an hour without changes is no age."""
    assert age_ms((3_600.0, 5), applied_index=5, now_ms=3_600_040) == 40


def test_what_the_leader_said_of_a_newer_state_makes_this_one_no_younger() -> None:
    """Entry 6 is committed and not applied here yet."""
    assert age_ms((3_600.0, 6), applied_index=5, now_ms=3_600_040) == 3_599_040


def test_before_any_leader_was_heard_the_age_counts_from_what_was_applied() -> None:
    assert age_ms((float("-inf"), 0), applied_index=5, now_ms=4_000) == 3_000


def test_reads_need_the_lease_or_a_barrier() -> None:
    """S10 c: no lease, then a majority is asked first; stale_ok says how old the answer is."""

    async def story() -> None:
        async with served() as node:
            node.replica.lease = False
            fresh = await node.admin.ListTopics(a.ListTopicsRequest())
            asked = node.replica.barriers
            stale = await node.admin.ListTopics(
                a.ListTopicsRequest(holdfast=x.RequestExtras(stale_ok=True))
            )

            assert asked == 1
            assert node.replica.barriers == 1
            assert fresh.holdfast.applied_index == node.replica.state.applied_index
            assert stale.holdfast.HasField("age_ms")

    asyncio.run(story())


READS: dict[str, Callable[[Served], Awaitable[object]]] = {
    "groups": lambda node: node.admin.ListGroups(a.ListGroupsRequest(holdfast=STALE)),
    "group": lambda node: node.admin.DescribeGroups(a.DescribeGroupsRequest(holdfast=STALE)),
    "topics": lambda node: node.admin.ListTopics(a.ListTopicsRequest(holdfast=STALE)),
    "settings": lambda node: node.admin.DescribeSettings(a.DescribeSettingsRequest(holdfast=STALE)),
    "acls": lambda node: node.admin.DescribeAcls(a.DescribeAclsRequest(holdfast=STALE)),
    "revocations": lambda node: node.admin.DescribeRevocations(
        a.DescribeRevocationsRequest(holdfast=STALE)
    ),
    "offsets": lambda node: node.offset.OffsetFetch(o.OffsetFetchRequest(holdfast=STALE)),
    "events": lambda node: node.log.ReadEvents(lg.ReadEventsRequest()),
    "watch": lambda node: node.log.Watch(lg.WatchRequest()).read(),
}
"""All that a node answers from its own state, whether it leads or not."""


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_s4_a_node_that_was_started_answers_no_read_before_it_has_caught_up(
    read: Callable[[Served], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk may lag behind what it told before: the same reader would see time run back."""
    status = FakeReplica.status
    goal: list[int | None] = [None]
    monkeypatch.setattr(
        FakeReplica, "status", lambda self: replace(status(self), catch_up_index=goal[0])
    )

    async def refused(node: Served) -> grpc.aio.AioRpcError:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await read(node)
        return caught.value

    async def story() -> None:
        async with served(leading=False) as node:
            node.replica.state = node.replica.state._replace(applied_index=5, cluster_id="c")
            for goal[0] in (None, 6):
                error = await refused(node)
                assert error.code() is grpc.StatusCode.UNAVAILABLE
                assert "Ask another node" in (error.details() or "")
                assert (OUTCOME_KEY, "not-applied") in list(error.trailing_metadata() or ())
            goal[0] = 5
            await read(node)

    asyncio.run(story())
