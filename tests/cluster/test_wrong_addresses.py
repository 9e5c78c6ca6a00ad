"""A node that was added with a wrong address gets no vote, though it reaches the others (S25 c).

It knows the others by its own file and dials them; they would look for it where the log says, and
find nobody. As a voter it would be away after the next restart, and nobody could be elected any
more (etcd 6420).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from cluster import ports
from cluster.processes import RunningCluster, poll, running
from holdfast.v1.admin_pb2 import DescribeClusterRequest
from holdfast.v1.admin_pb2_grpc import AdminServiceStub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST, NEW = "node-1", "node-2"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RunningCluster]:
    """A cluster of one, and a new node beside it that runs and has greeted it."""
    with running(tmp_path / "c", 1) as cluster:
        cluster.leader()
        folder = ("--dir", str(cluster.directory), "--port-base", str(ports.reserve()))
        assert cluster.run("cluster", "add-node", *folder).returncode == 0
        cluster.start(NEW, ("--rebuild",))
        poll(lambda: is_connected(cluster, NEW, FIRST), f"{NEW} has greeted {FIRST}")
        yield cluster


def is_connected(cluster: RunningCluster, node: str, other: str) -> bool:
    """Whether a node, also one that is none of the cluster yet, says that it reaches another."""
    address, tls = cluster.configuration(node)["node"]["client_address"], cluster.tls
    assert tls is not None
    with grpc.secure_channel(address, tls.credentials()) as channel:
        try:
            seen = AdminServiceStub(channel).DescribeCluster(DescribeClusterRequest(), timeout=2.0)
        except grpc.RpcError:
            return False
    return any(each.name == other and each.connected for each in seen.nodes)


def add(cluster: RunningCluster, peer: str) -> tuple[int, str]:
    """Add the new node as one that is reached there; return how the command ended."""
    client = cluster.configuration(NEW)["node"]["client_address"]
    done = cluster.ask("node", "add", NEW, "--peer", peer, "--client", client)
    return done.returncode, done.stderr


def test_s25c_a_node_that_is_not_where_the_log_says_becomes_no_voter(
    cluster: RunningCluster,
) -> None:
    taken = cluster.configuration(FIRST)["node"]["peer_address"]
    nobody = f"127.0.0.1:{ports.reserve()}"

    code, told = add(cluster, taken)
    assert code == 1
    assert f"{taken} is the address of node '{FIRST}'" in told
    assert add(cluster, nobody) == (0, "")
    refused = cluster.ask("node", "promote", NEW, "--timeout", "2")
    assert refused.returncode == 1
    assert f"nobody of that name answers at {nobody}" in refused.stderr

    cluster.kill(FIRST)
    cluster.bring_back(FIRST)
    assert cluster.leader() == FIRST, "it is its own majority still"


def test_s25c_a_wrong_address_is_corrected_and_the_node_found_again_after_a_restart(
    cluster: RunningCluster,
) -> None:
    """It keeps name, certificate and disk; its vote is one that the other can get."""
    assert add(cluster, f"127.0.0.1:{ports.reserve()}") == (0, "")
    assert add(cluster, cluster.configuration(NEW)["node"]["peer_address"]) == (0, "")
    promoted = cluster.ask("node", "promote", NEW)
    assert promoted.returncode == 0, promoted.stderr

    poll(lambda: NEW in cluster.names, f"cluster.json has {NEW}")
    cluster.kill(FIRST, NEW)
    cluster.bring_back(FIRST, NEW)
    cluster.leader()
