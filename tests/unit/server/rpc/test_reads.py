"""Reads need the lease or a majority; one that may be stale says how old it is (S10)."""

from __future__ import annotations

import asyncio

from holdfast.raft.api import Status
from holdfast.server.rpc.reads import Reads
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x
from unit.runtime.fake_replica import FakeReplica
from unit.runtime.world import World
from unit.server.nodes import served

STALE = x.RequestExtras(stale_ok=True)


class Follower(FakeReplica):
    """A node that does not lead; `heard`: (seconds, index) of its leader's last word."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = (float("-inf"), 0)

    def status(self) -> Status:
        return Status("follower", 1, "node-2", "member", 5, 5, 5, 1, 5, (), *self.heard)


def age_ms(heard: tuple[float, int], applied_index: int, now_ms: int) -> int:
    """The age that is told at `now_ms`, of a state that was applied at 1,000 ms."""

    async def story() -> int:
        replica, clock = Follower(), [1_000]
        reads = Reads(replica, World().actors, lambda: clock[0])
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
