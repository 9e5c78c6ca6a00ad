"""Real nodes know each other by their certificates, and strangers at the peer port harm nobody."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest

from cluster.processes import PATIENCE_SECONDS, RunningCluster, poll, refused, running
from harness.strangers import strangers
from holdfast.raft.transport.peer_names import node_uri
from holdfast.server.config.node_config import load
from holdfast.server.security.certificates import Authority, issue, make_authority
from holdfast.v1.admin_pb2 import DescribeClusterRequest
from holdfast.v1.admin_pb2_grpc import AdminServiceStub

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = 500
STRANGERS = 472
METHOD = "/holdfast.raft.Peer/Messages"
"""By which nodes of peer protocols 1 to 3 dialled each other, with gRPC."""
HOSTS = ["127.0.0.1", "localhost"]


def answers_a_new_client(cluster: RunningCluster, name: str) -> bool:
    """Whether a node answers on a connection of its own."""
    tls = cluster.tls
    assert tls is not None
    alone = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.secure_channel(
        cluster.node(name)["client_address"], tls.credentials(), alone
    ) as channel:
        ask = AdminServiceStub(channel).DescribeCluster
        seen = ask(DescribeClusterRequest(), timeout=PATIENCE_SECONDS, wait_for_ready=True)
    return bool(seen.node == name)


def heard_of(cluster: RunningCluster, name: str) -> bool:
    """Whether the leader, node-1, has all acknowledged: that comes on a stream dialled to it."""
    seen = cluster.describe("node-1")
    nodes = seen.nodes if seen else ()
    return any(n.name == name and seen and n.match_index >= seen.commit_index for n in nodes)


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """Three nodes; node-1 may open few files, and leads."""
    with running(tmp_path_factory.mktemp("port") / "c", 3) as cluster:
        cluster.settled()
        cluster.stop_gracefully("node-1")
        cluster.bring_back("node-1", files_max=FILES)
        cluster.settled()
        if cluster.leader() != "node-1":
            moved = cluster.ask("cluster", "transfer-leadership", "--to", "node-1")
            assert moved.returncode == 0, moved.stderr
        poll(lambda: cluster.ready("node-1"), "node-1 leads")
        yield cluster


@pytest.mark.parametrize("certified", [True, False])
def test_strangers_take_neither_files_nor_peers(
    limited: RunningCluster, tmp_path: Path, *, certified: bool
) -> None:
    """472 who dial again as soon as they are put out; with a client's certificate, or silent."""
    tls = limited.content["tls"]
    pair = tmp_path / "pair.pem"
    pair.write_text(Path(tls["certificate"]).read_text() + Path(tls["key"]).read_text())
    files = (tls["ca"], str(pair)) if certified else ()
    node = limited.node("node-1")
    with strangers(node["peer_address"], STRANGERS, *files) as once_more:
        assert answers_a_new_client(limited, "node-1")
        limited.create_topic(f"under-attack-{certified}", 3)
        limited.kill("node-3")
        limited.create_topic(f"without-node-3-{certified}", 3)
        limited.bring_back("node-3")
        poll(lambda: heard_of(limited, "node-3"), "node-3 is let in by node-1")
        once_more()
        assert answers_a_new_client(limited, "node-1")

    assert "Too many open files" not in limited.words("node-1")


def test_a_node_of_another_version_is_shown_by_cluster_status(limited: RunningCluster) -> None:
    """What 0.1.0 would do on node-3: dial by gRPC with its certificate."""
    config = load(limited.file("node-3"), {}, ())
    assert config.tls is not None
    tls = [file.read_bytes() for file in (config.tls.ca, config.tls.key, config.tls.certificate)]
    credentials = grpc.ssl_channel_credentials(*tls)
    with grpc.secure_channel(limited.node("node-1")["peer_address"], credentials) as channel:
        dial: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(METHOD)
        with pytest.raises(grpc.RpcError, match="stop all nodes, install one version"):
            next(dial(iter([b""]), timeout=PATIENCE_SECONDS))

    said = "node 'node-3' speaks peer protocols 1 to 3; node 'node-1' speaks peer protocol 4"
    shown = limited.ask("cluster", "status").stdout
    assert f"NOTE: node-1: {said}" in shown
    assert limited.words("node-1").count(said) == 1


def certify(cluster: Path, authority: Authority, *names: str) -> None:
    """Give nodes and the client of a stopped cluster certificates as 0.1.0 made them."""
    for name in names:
        issue(authority, cluster / name, name, f"holdfast://node/{name}", [*HOSTS, name])
    issue(authority, cluster / "client", "local", "holdfast://client/local", [])


def test_clients_and_nodes_may_have_authorities_of_their_own(tmp_path: Path) -> None:
    """`tls.peer_ca`: each port takes certificates of its own authority, and no others."""
    with running(tmp_path / "c", 3) as cluster:
        names, client = cluster.names, cluster.directory / "client"
    nodes_authority = (client / "ca.pem").read_bytes()
    issue(make_authority("clients"), client, "local", "holdfast://client/local", [])
    for name in names:
        file = cluster.file(name)
        (file.parent / "clients.pem").write_bytes((client / "ca.pem").read_bytes())
        both = 'ca = "clients.pem"\npeer_ca = "ca.pem"'
        file.write_text(file.read_text().replace('ca = "ca.pem"', both))
    (client / "ca.pem").write_bytes(nodes_authority)

    with running(tmp_path / "c", 3) as cluster:
        cluster.settled()
        cluster.create_topic("t", 3)
        assert cluster.tls is not None
        credentials = cluster.tls.credentials()
        with grpc.secure_channel(cluster.node("node-1")["peer_address"], credentials) as channel:
            dial: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(METHOD)
            with pytest.raises(grpc.RpcError) as refused:
                next(dial(iter([b""]), timeout=PATIENCE_SECONDS))
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_a_cluster_with_the_certificates_of_0_1_starts_and_moves_over(tmp_path: Path) -> None:
    """Node by node: while all accept old names, both kinds run together; then old ones are out."""
    with running(tmp_path / "c", 3) as cluster:
        names = cluster.names
    authority = make_authority("again")
    certify(cluster.directory, authority, *names)
    for name in names:  # 0.1.0 wrote no such line
        file = cluster.file(name)
        file.write_text(file.read_text().replace("accept_old_node_names = false\n", ""))

    with running(tmp_path / "c", 3) as cluster:
        cluster.settled()
        assert all("only the name of Holdfast 0.1" in cluster.words(name) for name in names)
        for name in names:
            cluster.stop_gracefully(name)
            cluster_id = load(cluster.file(name), {}, ()).cluster_id
            issue(authority, cluster.file(name).parent, name, node_uri(cluster_id, name), HOSTS)
            cluster.bring_back(name)
            cluster.settled()
        for name in names:
            cluster.stop_gracefully(name)
            cluster.bring_back(name, options=("--set", "tls.accept_old_node_names=false"))
            cluster.settled()
        cluster.stop_gracefully("node-1")
        certify(cluster.directory, authority, "node-1")
        said = refused(
            *("node", "--config", str(cluster.file("node-1"))),
            *("--set", "tls.accept_old_node_names=false"),
        )

    assert re.search(r"certificate\.pem lacks URI:holdfast://local-\w+/node/node-1, by", said)
