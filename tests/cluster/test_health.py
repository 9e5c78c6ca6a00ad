"""How real nodes show who serves: health, reflection, redirects, and a stop that hands over."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from cluster.load import TOPIC, Place, commit_of
from cluster.processes import (
    PATIENCE_SECONDS,
    RunningCluster,
    poll,
    running,
)
from cluster.statuses import failed
from harness.children import environment
from holdfast.cli.local_cluster import layout
from holdfast.server.config.node_config import load
from holdfast.storage.directory.data_directory import DataDirectory
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import offset_pb2 as o
from holdfast.v1.admin_pb2 import ListGroupsRequest
from holdfast.v1.admin_pb2_grpc import AdminServiceStub
from holdfast.v1.group_pb2_grpc import GroupServiceStub
from holdfast.v1.offset_pb2_grpc import OffsetServiceStub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVICES = {
    "holdfast.v1.GroupService",
    "holdfast.v1.OffsetService",
    "holdfast.v1.AdminService",
    "grpc.health.v1.Health",
}
LONG_DELAY_MS = 600_000
"""Joins of a new group stay parked for longer than any test runs."""
MORE_THAN_ANY_DISK = 1 << 62


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    delay = f"group.initial_rebalance_delay_ms={LONG_DELAY_MS}"
    directory = tmp_path_factory.mktemp("three") / "c"
    with running(directory, 3, "--insecure-loopback", "--set", delay) as cluster:
        cluster.create_topic(TOPIC, 1)
        yield cluster


def serving(channel: grpc.Channel, service: str) -> bool:
    """Whether a node says that a service of it serves."""
    stub = health_pb2_grpc.HealthStub(channel)
    answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE_SECONDS)
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def static_join() -> g.JoinGroupRequest:
    """A join that is parked until the initial delay is over."""
    return g.JoinGroupRequest(
        group_id="parked",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        group_instance_id="i",
        protocol_type="t",
        protocols=[g.JoinGroupRequestProtocol(name="p", metadata=b"m")],
    )


def test_every_node_is_healthy_and_the_leader_alone_is_ready(three: RunningCluster) -> None:
    """grpc.health.v1: "" for a process that serves, the services' names for the one that leads."""
    leader = three.leader()
    alive = {name for name in three.names if serving(three.channel(name), "")}
    ready = {
        name for name in three.names if serving(three.channel(name), "holdfast.v1.GroupService")
    }

    assert alive == set(three.names)
    assert ready == {leader}


def test_reflection_lists_the_services(three: RunningCluster) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(three.channel(three.follower()))
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    (answer,) = stub.ServerReflectionInfo(iter([asked]), timeout=PATIENCE_SECONDS)
    names = {service.name for service in answer.list_services_response.service}

    assert names >= SERVICES


def test_another_node_redirects_to_the_leader(three: RunningCluster) -> None:
    """NOT_COORDINATOR where there is an error_code, else UNAVAILABLE; both say where."""
    leader = three.node(three.leader())["client_address"]
    channel = three.channel(three.follower())
    join, call = GroupServiceStub(channel).JoinGroup.with_call(static_join(), timeout=5.0)
    offsets = OffsetServiceStub(channel)
    status = failed(lambda: offsets.OffsetCommit(commit_of(Place("x", 0), 1, ""), timeout=5.0))

    assert join.error_code == e.ERROR_CODE_NOT_COORDINATOR
    assert join.holdfast.leader_hint == leader
    assert dict(call.trailing_metadata())["holdfast-leader"] == leader
    assert status.code is grpc.StatusCode.UNAVAILABLE
    assert status.trailing["holdfast-leader"] == leader
    assert status.trailing["holdfast-outcome"] == "not-applied"


def test_any_node_finds_the_coordinator(three: RunningCluster) -> None:
    """Kafka's FindCoordinator: host and port of the leader, from whichever node is asked."""
    leader = three.node(three.leader())["client_address"]
    request = g.FindCoordinatorRequest(coordinator_keys=["some-group"])
    for name in three.names:
        answer = GroupServiceStub(three.channel(name)).FindCoordinator(request)
        (found,) = answer.coordinators
        assert f"{found.host}:{found.port}" == leader


def test_a_graceful_stop_hands_over_and_answers_what_is_parked(three: RunningCluster) -> None:
    """S5, S10 d: NOT_COORDINATOR for the parked join, and another node leads."""
    leader = three.leader()
    before = three.describe(leader)
    parked = GroupServiceStub(three.channel(leader)).JoinGroup.future(static_join())
    poll(lambda: has_group(three, leader, "parked"), "the join is parked")
    three.stop_gracefully(leader)
    answer = parked.result(PATIENCE_SECONDS)
    heir = three.leader(other_than=leader)
    after = three.describe(heir)
    words = three.words(leader)
    three.bring_back(leader)

    assert before is not None
    assert after is not None
    assert answer.error_code == e.ERROR_CODE_NOT_COORDINATOR
    assert after.term == before.term + 1  # a transfer, not an election that several stood in
    assert "handing the leadership to" in words
    assert "Traceback" not in words


def has_group(cluster: RunningCluster, name: str, group_id: str) -> bool:
    """Whether the leading node has the group."""
    stub = AdminServiceStub(cluster.channel(name))
    listed = stub.ListGroups(ListGroupsRequest(), timeout=PATIENCE_SECONDS)
    return group_id in {group.group_id for group in listed.groups}


def test_a_leader_without_a_cluster_is_loading(tmp_path: Path) -> None:
    """S10 d: it leads, but what it needs is not applied yet: COORDINATOR_LOAD_IN_PROGRESS.

    A disk below its reserve (S20) holds it in that moment for as long as the test looks.
    """
    (file,) = layout.lay_out(tmp_path / "c", layout.plan(1, None, (), insecure=True))
    config = load(file, {}, ())
    address, data = str(config.client_address), config.data_dir
    # Laid out while there is room: a reserve that is not there refuses that as well.
    DataDirectory(data, cluster_id=config.cluster_id, node_id=config.name, bootstrap=True).close()
    command = [sys.executable, "-m", "holdfast.cli", "node", "--config", str(file)]
    reserve = f"node.disk_reserve_bytes={MORE_THAN_ANY_DISK}"
    process = subprocess.Popen(
        [*command, "--bootstrap", "--set", reserve], env=environment(), stderr=subprocess.DEVNULL
    )
    codes: list[int] = []
    try:
        with grpc.insecure_channel(address) as channel:
            stub = GroupServiceStub(channel)

            def loading() -> bool:
                answer = stub.JoinGroup(
                    static_join(), timeout=PATIENCE_SECONDS, wait_for_ready=True
                )
                codes.append(answer.error_code)
                return codes[-1] != e.ERROR_CODE_NOT_COORDINATOR

            poll(loading, "the node leads")
            ready = serving(channel, "holdfast.v1.GroupService")
    finally:
        process.terminate()
        code = process.wait(PATIENCE_SECONDS)

    assert codes[-1] == e.ERROR_CODE_COORDINATOR_LOAD_IN_PROGRESS
    assert not ready
    assert code == 0


def test_a_fetch_at_a_follower_may_be_stale_if_asked_so(three: RunningCluster) -> None:
    """Such a read says index and age; without the wish it is refused."""
    stub = OffsetServiceStub(three.channel(three.follower()))
    request = o.OffsetFetchRequest(groups=[o.OffsetFetchRequestGroup(group_id="x")])
    status = failed(lambda: stub.OffsetFetch(request, timeout=5.0))
    request.holdfast.stale_ok = True
    answer = stub.OffsetFetch(request, timeout=5.0)

    assert status.code is grpc.StatusCode.UNAVAILABLE
    assert answer.holdfast.applied_index > 0
    assert answer.holdfast.HasField("age_ms")
