"""S4 on real nodes: one that was started tells nothing that it keeps before it has caught up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from cluster.processes import PATIENCE_SECONDS, RunningCluster, poll, running
from holdfast.v1.admin_pb2 import ListTopicsRequest
from holdfast.v1.admin_pb2_grpc import AdminServiceStub
from holdfast.v1.extras_pb2 import RequestExtras
from holdfast.v1.log_pb2 import ReadEventsRequest
from holdfast.v1.log_pb2_grpc import LogServiceStub

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STALE = ListTopicsRequest(holdfast=RequestExtras(stale_ok=True))


def topics(cluster: RunningCluster, name: str) -> list[str]:
    """The topics as one node has them; what it says may be old."""
    stub = AdminServiceStub(cluster.channel(name))
    answer = stub.ListTopics(STALE, timeout=PATIENCE_SECONDS, wait_for_ready=True)
    return [topic.name for topic in answer.topics]


def read(cluster: RunningCluster, name: str) -> bool:
    """Whether a node shows its log."""
    stub = LogServiceStub(cluster.channel(name))
    page = stub.ReadEvents(ReadEventsRequest(), timeout=PATIENCE_SECONDS, wait_for_ready=True)
    return len(page.records) > 0


def refusal(
    ask: Callable[[RunningCluster, str], object], cluster: RunningCluster, name: str
) -> str:
    """The sentence with which a node refuses a read."""
    with pytest.raises(grpc.RpcError) as caught:
        ask(cluster, name)
    error = caught.value
    assert isinstance(error, grpc.Call)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    return error.details() or ""


def test_s4_a_node_that_is_started_alone_tells_nothing_before_it_has_heard_a_leader(
    tmp_path: Path,
) -> None:
    """Its own view is shown to operators meanwhile, or nobody could see what is wrong."""
    with running(tmp_path / "c", 3) as cluster:
        cluster.create_topic("t", 1)
        cluster.settled()
        leader = cluster.leader()
        first, second = (name for name in cluster.names if name != leader)
        cluster.kill(leader, second)
        assert topics(cluster, first) == ["t"], "it runs, so it goes on, and says how old that is"
        cluster.kill(first)
        cluster.bring_back(first)

        for ask in (topics, read):
            assert "this node was started, and has not" in refusal(ask, cluster, first)
        seen = cluster.describe(first)
        assert seen is not None
        assert (seen.node, seen.leader) == (first, "")

        cluster.bring_back(second)
        poll(lambda: caught_up(cluster, first) and caught_up(cluster, second), "both tell again")


def caught_up(cluster: RunningCluster, name: str) -> bool:
    """Whether a node tells what it keeps, which is all there is."""
    try:
        return topics(cluster, name) == ["t"]
    except grpc.RpcError:
        return False
