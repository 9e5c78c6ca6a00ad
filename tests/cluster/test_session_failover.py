"""Session streams of a real cluster whose leader goes: every open call is answered or sent again.

The orders in which this can happen are gone through in memory (`tests/fuzz/test_session.py`).
"""

from __future__ import annotations

import asyncio
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from cluster.joins import static_join
from cluster.processes import INSECURE, PATIENCE_SECONDS, RunningCluster, poll, running
from holdfast.client._rpc.caller import Caller
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from holdfast.v1.admin_pb2 import DescribeGroupsRequest, TransferLeadershipRequest
from holdfast.v1.admin_pb2_grpc import AdminServiceStub
from holdfast.v1.group_pb2_grpc import GroupServiceStub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RunningCluster]:
    with running(tmp_path / "c", 3, *INSECURE) as started:
        yield started


def until_parked(cluster: RunningCluster, leader: str, members: int) -> None:
    """Wait until a join phase is open in which so many members have a place."""
    admin = AdminServiceStub(cluster.channel(leader))

    def reached() -> bool:
        [seen] = admin.DescribeGroups(DescribeGroupsRequest(groups=["g"])).groups
        return (seen.group_state, len(seen.members)) == ("PreparingRebalance", members)

    poll(reached, f"a join phase with {members} members")


def hand_over(cluster: RunningCluster, leader: str) -> str:
    """Have another node lead; its address."""
    AdminServiceStub(cluster.channel(leader)).TransferLeadership(TransferLeadershipRequest())
    heir = cluster.leader(other_than=leader)
    return str(cluster.node(heir)["client_address"])


def test_a_leader_that_hands_over_answers_what_is_open_and_ends_the_stream(
    cluster: RunningCluster,
) -> None:
    """Each open call is told NOT_COORDINATOR; what has no answer was not begun (S5)."""
    leader = cluster.leader()
    group = GroupServiceStub(cluster.channel(leader))
    group.JoinGroup(static_join("i1"), timeout=PATIENCE_SECONDS)
    asked: SimpleQueue[g.SessionRequest | None] = SimpleQueue()
    stream: Any = group.Session(iter(asked.get, None), timeout=PATIENCE_SECONDS)
    calls = [g.SessionCall(number=n, join=static_join(f"i{n}")) for n in (2, 3)]
    asked.put(g.SessionRequest(calls=calls))
    until_parked(cluster, leader, 3)
    heir = hand_over(cluster, leader)
    answers = {one.number: one.join for message in stream for one in message.answers}
    asked.put(None)
    trailing = dict(stream.trailing_metadata())

    assert answers.keys() == {2, 3}
    assert {one.error_code for one in answers.values()} == {e.ERROR_CODE_NOT_COORDINATOR}
    assert {one.holdfast.leader_hint for one in answers.values()} <= {"", heir}
    assert stream.code() is grpc.StatusCode.OK
    assert trailing["holdfast-outcome"] == "not-applied"
    assert trailing.get("holdfast-leader", heir) == heir


@pytest.mark.parametrize("how", ["handed over", "killed"])
def test_the_client_follows_the_leader_with_its_parked_joins(
    how: str, cluster: RunningCluster
) -> None:
    """They are sent again to the heir, as the same members, and are answered when all are there."""
    leader = cluster.leader()
    addresses = cluster.addresses

    async def story() -> list[g.JoinGroupResponse]:
        caller = Caller(addresses, on_streams=True)

        async def ask(instance_id: str, member_id: str = "") -> g.JoinGroupResponse:
            request = static_join(instance_id, member_id)
            request.holdfast.request_id = await caller.new_request_id()
            timeout_ms = round(PATIENCE_SECONDS * 1_000)
            return await caller.call(request, g.JoinGroupResponse, timeout_ms=timeout_ms)

        try:
            first = await ask("i1")
            parked = [asyncio.create_task(ask(f"i{n}")) for n in (2, 3)]
            await asyncio.to_thread(until_parked, cluster, leader, 3)
            if how == "killed":
                await asyncio.to_thread(cluster.kill, leader)
            else:
                await asyncio.to_thread(hand_over, cluster, leader)
            heir = await asyncio.to_thread(lambda: cluster.leader(other_than=leader))
            again = asyncio.create_task(ask("i1", first.member_id))
            answers = await asyncio.gather(again, *parked)
            assert caller.endpoints.current == cluster.node(heir)["client_address"]
            return answers
        finally:
            await caller.close()

    answers = asyncio.run(story())

    assert {one.error_code for one in answers} == {e.ERROR_CODE_NONE}
    assert len({one.generation_id for one in answers}) == 1
    assert len({one.member_id for one in answers}) == 3
