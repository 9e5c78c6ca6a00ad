"""Speaking to the nodes with the generated stubs, over as many connections as a row asks for.

Each channel has a connection of its own (gRPC would share one). Every call goes to the leader that
was found last; an answer that is not the wanted one is an error that says what it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Final, NamedTuple, Protocol, TypeVar, cast

import grpc
import grpc.aio

from bench.nodes import Credentials, Node
from holdfast.v1 import admin_pb2, admin_pb2_grpc, errors_pb2, group_pb2_grpc, offset_pb2_grpc

OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 100),
    ("grpc.max_receive_message_length", 16 << 20),
    ("grpc.max_send_message_length", 16 << 20),
)
LEADER_S: Final = 30.0
Request = TypeVar("Request")
Response = TypeVar("Response")
OK: Final = errors_pb2.ERROR_CODE_NONE
REBALANCING: Final = errors_pb2.ERROR_CODE_REBALANCE_IN_PROGRESS


class Unexpected(Exception):
    """A node answered something else than what the row measures."""

    def __init__(self, what: str, code: int, said: str = "") -> None:
        name = errors_pb2.ErrorCode.Name(errors_pb2.ErrorCode.ValueType(code))
        super().__init__(f"{what} was answered {name}{': ' if said else ''}{said}")


class Line(NamedTuple):
    """One connection and the stubs on it."""

    channel: grpc.aio.Channel
    group: group_pb2_grpc.GroupServiceAsyncStub
    offset: offset_pb2_grpc.OffsetServiceAsyncStub
    admin: admin_pb2_grpc.AdminServiceAsyncStub


async def served(empty: grpc.aio.StreamStreamCall[Request, Response]) -> None:
    """Wait for the end of a stream without messages; raises AioRpcError if nodes do not have it.

    Asked before a stream is used: one that ends while it is written to tells INTERNAL instead.
    """
    code, details = await empty.code(), await empty.details()
    if code is not grpc.StatusCode.OK:
        sent, last = await empty.initial_metadata(), await empty.trailing_metadata()
        raise grpc.aio.AioRpcError(code, sent, last, details)


async def read(call: grpc.aio.StreamStreamCall[Request, Response]) -> Response:
    """The next message of a stream. Raises EOFError if the node has ended it."""
    message = await call.read()
    if message is grpc.aio.EOF:
        raise EOFError("a node has ended a stream that a row still uses")
    return cast("Response", message)


class Serving(Protocol):
    """Nodes that serve, and what their clients show."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Those that run."""

    def named(self, name: str) -> Node:
        """The node of this name."""

    def credentials(self) -> Credentials:
        """What a client shows."""


class Talk:
    """Lines to the nodes of a cluster."""

    def __init__(self, cluster: Serving) -> None:
        shown = cluster.credentials()
        self._cluster = cluster
        self._credentials = grpc.ssl_channel_credentials(shown.ca, shown.key, shown.certificate)
        self._asking: dict[str, Line] = {}
        self.leader: Node = cluster.nodes[0]

    def line(self, address: str) -> Line:
        """A new connection; it is made at the first call."""
        channel = grpc.aio.secure_channel(address, self._credentials, options=OPTIONS)
        return Line(
            channel,
            group_pb2_grpc.GroupServiceStub(channel),
            offset_pb2_grpc.OffsetServiceStub(channel),
            admin_pb2_grpc.AdminServiceStub(channel),
        )

    @contextlib.asynccontextmanager
    async def lines(self, count: int) -> AsyncIterator[list[Line]]:
        """So many open connections to the leader."""
        lines = [self.line(self.leader.address) for _ in range(count)]
        try:
            await asyncio.gather(*(line.channel.channel_ready() for line in lines))
            yield lines
        finally:
            await asyncio.gather(*(line.channel.close() for line in lines))

    async def find_leader(self) -> Node:
        """Ask every node until a majority names the same leader; Raises TimeoutError."""
        deadline = time.monotonic() + LEADER_S
        while time.monotonic() < deadline:
            named = [name for node in self._cluster.nodes if (name := await self._names(node))]
            for name in named:
                if named.count(name) > len(self._cluster.nodes) // 2:
                    self.leader = self._cluster.named(name)
                    return self.leader
            await asyncio.sleep(0.02)
        raise TimeoutError(f"no leader that a majority knows within {LEADER_S:.0f} s")

    async def _names(self, node: Node) -> str:
        described = await self.describe(node)
        return described.leader if described is not None else ""

    async def describe(self, node: Node) -> admin_pb2.DescribeClusterResponse | None:
        """What a node says of the cluster; None if it does not answer."""
        line = self._asking.get(node.address)
        if line is None:
            line = self._asking[node.address] = self.line(node.address)
        try:
            return await line.admin.DescribeCluster(admin_pb2.DescribeClusterRequest(), timeout=1)
        except grpc.RpcError:
            return None

    async def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic; one that is there already is fine."""
        line = self.line(self.leader.address)
        topic = admin_pb2.CreatableTopic(name=name, num_partitions=partitions)
        await line.admin.CreateTopics(admin_pb2.CreateTopicsRequest(topics=[topic]))
        await line.channel.close()

    async def close(self) -> None:
        """Close the lines that ask who leads."""
        for line in self._asking.values():
            await line.channel.close()
