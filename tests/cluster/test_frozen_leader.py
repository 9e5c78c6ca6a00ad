"""SIGSTOP of the leader past an election: it wakes up deposed, and must know it (S10).

Which of its threads wakes first is the kernel's affair; every order of them is gone through on the
virtual clock in tests/raft.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from cluster.left import read_left
from cluster.load import TOPIC, Place, commit_of
from cluster.processes import INSECURE, PATIENCE_SECONDS, RunningCluster, poll, running
from cluster.statuses import failed, status_of
from holdfast.coordinator.model.events import OffsetsCommitted
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import offset_pb2 as o
from holdfast.v1.errors_pb2 import ERROR_CODE_NONE
from holdfast.v1.group_pb2_grpc import GroupServiceStub
from holdfast.v1.offset_pb2_grpc import OffsetServiceStub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.coordinator.model.events import Record

PLACE = Place("g", 0)
QUEUED = 50
"""Calls that wait in the frozen node's sockets: it reads them the moment it wakes up."""
OLD, NEW = 1, 2


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RunningCluster]:
    with running(tmp_path / "c", 3, *INSECURE) as started:
        started.create_topic(TOPIC, 1)
        yield started


def commit(cluster: RunningCluster, name: str, offset: int, request_id: str = "") -> None:
    """Commit at a node that leads, acknowledged."""
    stub = OffsetServiceStub(cluster.channel(name))
    request = commit_of(PLACE, offset, request_id)
    answer = stub.OffsetCommit(request, timeout=PATIENCE_SECONDS)
    assert answer.topics[0].partitions[0].error_code == ERROR_CODE_NONE


def fetch_request() -> o.OffsetFetchRequest:
    return o.OffsetFetchRequest(groups=[o.OffsetFetchRequestGroup(group_id=PLACE.group)])


def offset_in(answer: o.OffsetFetchResponse) -> int:
    return int(answer.groups[0].topics[0].partitions[0].committed_offset)


def told(call: grpc.Future[o.OffsetFetchResponse]) -> int | grpc.StatusCode:
    """What a read came to: the offset, or the status that refused it."""
    try:
        return offset_in(call.result(PATIENCE_SECONDS))
    except grpc.RpcError as error:
        return status_of(error).code


def test_a_thawed_leader_answers_no_stale_read(cluster: RunningCluster) -> None:
    """S10: neither what waited in its sockets nor what comes after is answered from old state."""
    frozen = cluster.leader()
    commit(cluster, frozen, OLD)
    stub = OffsetServiceStub(cluster.channel(frozen))
    with cluster.frozen(frozen):
        waiting = [stub.OffsetFetch.future(fetch_request()) for _ in range(QUEUED)]
        heir = cluster.leader(other_than=frozen)
        commit(cluster, heir, NEW)
    answers = {told(call) for call in waiting}
    poll(lambda: follows(cluster, frozen, heir), "the thawed node follows")
    later = told(stub.OffsetFetch.future(fetch_request()))

    assert answers <= {NEW, grpc.StatusCode.UNAVAILABLE}
    assert later is grpc.StatusCode.UNAVAILABLE
    assert offset_at(cluster, cluster.leader()) == NEW


def follows(cluster: RunningCluster, name: str, leader: str) -> bool:
    seen = cluster.describe(name)
    return seen is not None and seen.leader == leader


def offset_at(cluster: RunningCluster, name: str) -> int:
    return offset_in(OffsetServiceStub(cluster.channel(name)).OffsetFetch(fetch_request()))


def test_what_was_proposed_into_the_void_is_done_once(cluster: RunningCluster) -> None:
    """S5, S15: unknown after the freeze of all followers; repeated, it stands in the log once."""
    leader = cluster.leader()
    first, second = (name for name in cluster.names if name != leader)
    request_id = fresh_request_id(cluster, leader)
    request = commit_of(PLACE, NEW, request_id)
    commit(cluster, leader, OLD)
    with cluster.frozen(first), cluster.frozen(second):
        stub = OffsetServiceStub(cluster.channel(leader))
        unknown = failed(lambda: stub.OffsetCommit(request, timeout=PATIENCE_SECONDS))
    commit(cluster, cluster.leader(), NEW, request_id)
    cluster.stop_at_one_index()
    counts = [times(read_left(cluster.data(name)).records, request_id) for name in cluster.names]

    assert unknown.code is grpc.StatusCode.UNAVAILABLE
    assert unknown.trailing["holdfast-outcome"] == "unknown"
    assert counts == [1, 1, 1]


def fresh_request_id(cluster: RunningCluster, name: str) -> str:
    """A UUIDv7 whose time is the cluster's log time (S15)."""
    stub = GroupServiceStub(cluster.channel(name))
    log_time_ms = stub.FindCoordinator(g.FindCoordinatorRequest()).holdfast.log_time_ms
    digits = f"{log_time_ms:012x}"
    return f"{digits[:8]}-{digits[8:]}-7000-8000-000000000001"


def times(records: tuple[Record, ...], request_id: str) -> int:
    """How often the log has a commit under this request id."""
    commits = (r for r in records if isinstance(r.event, OffsetsCommitted))
    return sum(record.request_id == request_id for record in commits)
