"""kill -9 of the leader under members with parked calls: what they are told, and what comes of it.

The many orders in which this can happen are gone through in memory (unit/runtime/test_failover.py);
here the same holds with real processes, sockets and disks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import pytest

from cluster.joins import static_join
from cluster.left import read_left
from cluster.processes import INSECURE, PATIENCE_SECONDS, RunningCluster, poll, running
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from holdfast.v1.admin_pb2 import DescribeGroupsRequest
from holdfast.v1.admin_pb2_grpc import AdminServiceStub
from holdfast.v1.group_pb2_grpc import GroupServiceStub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.coordinator.model.events import Record


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RunningCluster]:
    with running(tmp_path / "c", 3, *INSECURE) as started:
        yield started


class Group:
    """The calls of a group's members, at whoever leads."""

    def __init__(self, cluster: RunningCluster) -> None:
        self.cluster = cluster
        self.turn()

    def turn(self, *, away_from: str = "") -> None:
        """Find the node that leads."""
        self.leader = self.cluster.leader(other_than=away_from)
        channel = self.cluster.channel(self.leader)
        self._group, self._admin = GroupServiceStub(channel), AdminServiceStub(channel)

    def kill_leader(self) -> None:
        """Kill -9, turn to the heir, and have the dead node back as a follower."""
        dead = self.leader
        self.cluster.kill(dead)
        self.turn(away_from=dead)
        self.cluster.bring_back(dead)

    def request_id(self, number: int) -> str:
        """A UUIDv7 whose time is the cluster's log time (S15)."""
        log_time_ms = self._group.FindCoordinator(g.FindCoordinatorRequest()).holdfast.log_time_ms
        digits = f"{log_time_ms:012x}"
        return f"{digits[:8]}-{digits[8:]}-7000-8000-{number:012x}"

    def join(self, instance_id: str, member_id: str = "", request_id: str = "") -> grpc.Future[Any]:
        """A join on its way."""
        request = static_join(instance_id, member_id, request_id)
        return self._group.JoinGroup.future(request, timeout=PATIENCE_SECONDS)

    def sync(self, joined: g.JoinGroupResponse) -> grpc.Future[Any]:
        """A sync on its way; the group leader gives everybody its own member id as work."""
        request = g.SyncGroupRequest(
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="test",
            protocol_name="p",
            assignments=[
                g.SyncGroupRequestAssignment(member_id=m.member_id, assignment=m.member_id.encode())
                for m in joined.members
            ],
        )
        return self._group.SyncGroup.future(request, timeout=PATIENCE_SECONDS)

    def beat(self, joined: g.JoinGroupResponse) -> str:
        """What a heartbeat of this generation is answered."""
        request = g.HeartbeatRequest(
            group_id="g", generation_id=joined.generation_id, member_id=joined.member_id
        )
        answer = self._group.Heartbeat(request, timeout=PATIENCE_SECONDS)
        return name_of(answer)

    def until(self, state: str, members: int) -> None:
        """Wait until the group is in this state with so many members."""

        def reached() -> bool:
            [seen] = self._admin.DescribeGroups(DescribeGroupsRequest(groups=["g"])).groups
            return (seen.group_state, len(seen.members)) == (state, members)

        poll(reached, f"{state} with {members} members")


def name_of(answer: Any) -> str:  # noqa: ANN401 - any answer that has a code
    return e.ErrorCode.Name(answer.error_code).removeprefix("ERROR_CODE_")


def answered(call: grpc.Future[Any]) -> Any:  # noqa: ANN401 - its response
    """The answer of a call, which must be good."""
    answer = call.result(PATIENCE_SECONDS)
    assert name_of(answer) == "NONE"
    return answer


def lost(call: grpc.Future[Any]) -> bool:
    """Whether a call ended without an answer, as those of a dead node do (S5)."""
    return isinstance(call.exception(PATIENCE_SECONDS), grpc.RpcError)


def stable(group: Group) -> tuple[g.JoinGroupResponse, g.JoinGroupResponse]:
    """Two static members in generation 2 that have synced, the group leader first."""
    first = answered(group.join("i1"))
    answered(group.sync(first))
    waiting = group.join("i2")
    group.until("PreparingRebalance", 2)
    again = answered(group.join("i1", first.member_id))
    second = answered(waiting)
    followed = group.sync(second)
    answered(group.sync(again))
    assert answered(followed).assignment == second.member_id.encode()
    return again, second


def test_parked_calls_are_sent_again_and_nothing_is_done_twice(cluster: RunningCluster) -> None:
    """S14, S16: a join and a sync die with the leader; the same requests find what they made."""
    group = Group(cluster)
    first, second = stable(group)
    mine = group.request_id(3)
    parked = group.join("i3", request_id=mine)
    group.until("PreparingRebalance", 3)
    group.kill_leader()

    assert lost(parked)
    assert group.beat(first) == group.beat(second) == "REBALANCE_IN_PROGRESS"
    parked = group.join("i3", request_id=mine)
    others = [group.join("i1", first.member_id), group.join("i2", second.member_id)]
    third, first, second = (answered(each) for each in (parked, *others))
    assert {each.generation_id for each in (first, second, third)} == {3}

    silent = group.sync(third)
    group.until("CompletingRebalance", 3)
    group.kill_leader()
    assert lost(silent)
    waiting = [group.sync(each) for each in (third, second)]
    answered(group.sync(first))
    assert [answered(each).assignment for each in waiting] == [
        third.member_id.encode(),
        second.member_id.encode(),
    ]

    cluster.stop_at_one_index()
    logs = [read_left(cluster.data(name)).records for name in cluster.names]
    assert logs[0] == logs[1] == logs[2]
    assert told(logs[0]) == {
        "MemberJoined": 3,
        "RebalanceStarted": 3,
        "GenerationStarted": 3,
        "AssignmentStored": 3,
        "GroupCreated": 1,
    }


def told(records: tuple[Record, ...]) -> dict[str, int]:
    """How often each thing has happened to the group."""
    names = [type(record.event).__name__ for record in records if record.group_id == "g"]
    return {name: names.count(name) for name in names}


def test_a_failover_by_itself_moves_nobody(cluster: RunningCluster) -> None:
    """K-L3, K-L4: heartbeats go on at the same generation, and the share is the same."""
    group = Group(cluster)
    first, second = stable(group)
    group.kill_leader()
    assert group.beat(first) == group.beat(second) == "NONE"
    group.kill_leader()

    assert group.beat(first) == group.beat(second) == "NONE"
    assert answered(group.sync(second)).assignment == second.member_id.encode()
    cluster.stop_at_one_index()
    assert told(read_left(cluster.data(group.leader)).records)["RebalanceStarted"] == 2
