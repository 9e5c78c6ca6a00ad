"""A real node on a fake replica, served on 127.0.0.1, and what tests say to it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import grpc
import pytest

from harness.no_copies import NoCopies
from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.server.config.address import Address
from holdfast.server.config.node_config import NodeConfig, Peer
from holdfast.server.process.node import Node
from holdfast.server.process.token_door import TokenDoor
from holdfast.server.rpc.grpc_options import server_options
from holdfast.server.security.client_port import ClientPort
from holdfast.server.security.credentials import read_credentials
from holdfast.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    extras_pb2,
    group_pb2,
    group_pb2_grpc,
    log_pb2_grpc,
    offset_pb2,
    offset_pb2_grpc,
)
from unit.runtime.fake_history import FakeHistory
from unit.runtime.fake_replica import FakeReplica
from unit.runtime.world import QUICK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from holdfast.server.config.node_config import Tls
    from holdfast.server.config.trace_settings import TraceSettings
    from holdfast.server.security.tokens import Tokens

TURNS_MAX = 1_000_000
HERE, OTHER = Address("127.0.0.1", 1), Address("127.0.0.1", 2)
"""Where clients are told that nodes are. Nobody listens there; at the usual ports somebody may."""
TOLD = {str(HERE): "127.0.0.1:11", str(OTHER): "127.0.0.1:12"}
"""Where clients with tokens are told that they are."""


def config(name: str = "node-1") -> NodeConfig:
    """A node of a cluster of two names; nothing of it is opened."""
    return NodeConfig(
        name=name,
        data_dir=Path("unused"),
        client_address=HERE,
        peer_address=HERE,
        cluster_id="c",
        peers=(Peer("node-1", HERE, HERE), Peer("node-2", OTHER, OTHER)),
        tls=None,
        election_min_ms=350,
        election_max_ms=700,
        heartbeat_ms=50,
        shutdown_ms=1_000,
        disk_reserve_bytes=None,
        logger_level="info",
        logger_format="text",
        settings=QUICK,
    )


class Served(NamedTuple):
    """A node and the ways to it."""

    node: Node
    replica: FakeReplica
    channel: grpc.aio.Channel
    group: group_pb2_grpc.GroupServiceAsyncStub
    offset: offset_pb2_grpc.OffsetServiceAsyncStub
    admin: admin_pb2_grpc.AdminServiceAsyncStub
    log: log_pb2_grpc.LogServiceAsyncStub
    address: str
    secure_address: str
    """The same node with TLS; "" if it was given none."""
    token_address: str
    """Its port for tokens; "" if it was given none."""
    door: TokenDoor | None


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop turn until something holds; a test that waits in vain fails."""
    for _ in range(TURNS_MAX):
        if holds():
            return
        await asyncio.sleep(0)
    pytest.fail(f"it did not come about within {TURNS_MAX} turns of the loop")


@asynccontextmanager
async def served(
    *,
    leading: bool = True,
    tls: Tls | None = None,
    tokens: Tokens | None = None,
    audit: Path | None = None,
    traces: TraceSettings | None = None,
) -> AsyncIterator[Served]:
    """A node that serves; it leads and its cluster is formed, unless told otherwise.

    `tokens`: have it take them at a port of their own, beside `tls`.
    `audit`: the data directory, if the node is to keep an audit. `traces`: which calls it follows;
    nothing is exported.
    """
    replica = FakeReplica()
    server = grpc.aio.server(options=server_options(REGISTRY["log.entry_bytes_max"].most))
    port = server.add_insecure_port("127.0.0.1:0")
    secure = (
        server.add_secure_port("127.0.0.1:0", ClientPort(read_credentials(tls)).credentials)
        if tls
        else None
    )
    door = TokenDoor(tokens, TOLD) if tokens else None
    second, token_port = _token_server(door, tls) if door and tls else (None, None)
    servers = [server, *([second] if second else [])]
    own = replace(config(), data_dir=audit, audit_bytes_max=1 << 20) if audit else config()
    own = replace(own, traces=traces)
    node = Node(own, replica, FakeHistory(replica), NoCopies(), servers)
    await node.start()
    if leading:
        replica.lead()
        await until(lambda: bool(replica.state.cluster_id))
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Served(
                node,
                replica,
                channel,
                group_pb2_grpc.GroupServiceStub(channel),
                offset_pb2_grpc.OffsetServiceStub(channel),
                admin_pb2_grpc.AdminServiceStub(channel),
                log_pb2_grpc.LogServiceStub(channel),
                f"127.0.0.1:{port}",
                f"127.0.0.1:{secure}" if secure else "",
                f"127.0.0.1:{token_port}" if token_port else "",
                door,
            )
    finally:
        replica.step_down()
        await node.stop()


def _token_server(door: TokenDoor, tls: Tls) -> tuple[grpc.aio.Server, int]:
    options = server_options(REGISTRY["log.entry_bytes_max"].most)
    server = grpc.aio.server(interceptors=[door], options=options)
    credentials = ClientPort(read_credentials(tls), by_certificate=False).credentials
    return server, server.add_secure_port("127.0.0.1:0", credentials)


def join(
    group_id: str = "g", member_id: str = "", instance_id: str | None = "i1", request_id: str = ""
) -> group_pb2.JoinGroupRequest:
    """A join of the type `test`, whose bytes the service does not read."""
    return group_pb2.JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="test",
        protocols=[group_pb2.JoinGroupRequestProtocol(name="p", metadata=b"m")],
        holdfast=extras_pb2.RequestExtras(request_id=request_id) if request_id else None,
    )


def sync(
    joined: group_pb2.JoinGroupResponse, instance_id: str = "i1"
) -> group_pb2.SyncGroupRequest:
    """A sync that gives every member the bytes `to <member id>`, if the member leads."""
    return group_pb2.SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance_id,
        protocol_type="test",
        protocol_name="p",
        assignments=[
            group_pb2.SyncGroupRequestAssignment(
                member_id=m.member_id, assignment=b"to " + m.member_id.encode()
            )
            for m in joined.members
        ],
    )


def beat(
    joined: group_pb2.JoinGroupResponse, instance_id: str = "i1"
) -> group_pb2.HeartbeatRequest:
    """A heartbeat of the member that was joined."""
    return group_pb2.HeartbeatRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance_id,
    )


def commit(
    offset: int, topic: str = "t", group_id: str = "simple"
) -> offset_pb2.OffsetCommitRequest:
    """A commit for partition 0 by somebody who is no member."""
    partition = offset_pb2.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    wanted = offset_pb2.OffsetCommitRequestTopic(name=topic, partitions=[partition])
    return offset_pb2.OffsetCommitRequest(group_id=group_id, topics=[wanted])


async def topic(node: Served) -> None:
    """Make the topic `t` of one partition."""
    wanted = admin_pb2.CreatableTopic(name="t", num_partitions=1)
    await node.admin.CreateTopics(admin_pb2.CreateTopicsRequest(topics=[wanted]))
