"""A real cluster of three with mutual TLS: who is let in, and what garbage does to others."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from cluster.processes import poll, running
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import admin_pb2_grpc, group_pb2_grpc
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from cluster.processes import RunningCluster

QUICK = ("--set", "group.initial_rebalance_delay_ms=0")


def credentials(tls: dict[str, str], *, anonymous: bool = False) -> grpc.ChannelCredentials:
    """The client's certificate of the local cluster, or only its authority."""
    authority = Path(tls["ca"]).read_bytes()
    if anonymous:
        return grpc.ssl_channel_credentials(authority)
    key, certificate = (Path(tls[name]).read_bytes() for name in ("key", "certificate"))
    return grpc.ssl_channel_credentials(authority, key, certificate)


def channel(cluster: RunningCluster, name: str, *, anonymous: bool = False) -> grpc.Channel:
    content: dict[str, Any] = cluster.content
    address = cluster.node(name)["client_address"]
    return grpc.secure_channel(address, credentials(content["tls"], anonymous=anonymous))


def joining(instance: str) -> g.JoinGroupRequest:
    return g.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        group_instance_id=instance,
        protocol_type="test",
        protocols=[g.JoinGroupRequestProtocol(name="p", metadata=b"m")],
    )


def join_and_sync(open_channel: grpc.Channel, instance: str = "i1") -> g.SyncGroupResponse:
    stub = group_pb2_grpc.GroupServiceStub(open_channel)
    joined = stub.JoinGroup(joining(instance), timeout=20)
    given = [
        g.SyncGroupRequestAssignment(member_id=m.member_id, assignment=b"a") for m in joined.members
    ]
    return stub.SyncGroup(
        g.SyncGroupRequest(
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance,
            protocol_type="test",
            protocol_name="p",
            assignments=given,
        ),
        timeout=20,
    )


def test_a_cluster_serves_and_keeps_what_it_granted_through_a_kill(tmp_path: Path) -> None:
    """Design §3: the assignment is state in the log; kill -9 of the leader moves nothing."""
    with running(tmp_path / "c", 3, *QUICK) as cluster:
        leader = cluster.leader()
        with channel(cluster, leader) as open_channel:
            granted = join_and_sync(open_channel)
        os.kill(cluster.node(leader)["pid"], signal.SIGKILL)
        poll(lambda: cluster.leader() != leader, "another leader")
        successor = cluster.leader()
        with channel(cluster, successor) as open_channel:
            admin = admin_pb2_grpc.AdminServiceStub(open_channel)
            found = admin.DescribeGroups(a.DescribeGroupsRequest(groups=["g"]), timeout=20)

        member = found.groups[0].members[0]
        assert found.groups[0].group_state == "Stable"
        assert member.member_assignment == b"a"
        assert member.holdfast.fencing_token == granted.holdfast.fencing_token
        assert member.client_id == "holdfast://client/local"


def test_strangers_are_not_let_in_and_garbage_disturbs_nobody(tmp_path: Path) -> None:
    """Mutual TLS; a client that sends garbage or half a frame is its own problem."""
    with running(tmp_path / "c", 1, *QUICK) as cluster:
        name = cluster.leader()
        with channel(cluster, name, anonymous=True) as stranger:
            admin = admin_pb2_grpc.AdminServiceStub(stranger)
            with pytest.raises(grpc.RpcError) as refused:
                admin.ListGroups(a.ListGroupsRequest(), timeout=5)
        host, _, port = cluster.node(name)["client_address"].rpartition(":")
        with socket.create_connection((host, int(port))) as garbage:
            garbage.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xff" * 500)
            with channel(cluster, name) as open_channel:
                served = join_and_sync(open_channel)

        assert isinstance(refused.value, grpc.Call)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert served.assignment == b"a"


def test_a_graceful_stop_of_the_leader_hands_the_lead_over(tmp_path: Path) -> None:
    """Issue A, 6: SIGTERM to the leader; the others go on, and the log says that it was asked."""
    with running(tmp_path / "c", 3, *QUICK) as cluster:
        leader = cluster.leader()
        os.kill(cluster.node(leader)["pid"], signal.SIGTERM)
        poll(lambda: cluster.leader() != leader, "another leader")
        log = (tmp_path / "c" / leader / "node.log").read_text()
        poll(lambda: "message=stopped" in (tmp_path / "c" / leader / "node.log").read_text(), "end")

        assert "handing the leadership to" in log
        assert "Traceback" not in log
