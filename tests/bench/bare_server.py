"""The empty gRPC server of the row `bare`, a process of its own: `bare_server CA CERT KEY`.

It has the options of a node's client port and its certificates, and answers with messages of the
size that a node answers with; it keeps nothing and decides nothing. Prints its port, and ends with
its standard input.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import grpc.aio
import uvloop

from bench.group import PARTITIONS_EACH, PROTOCOL, REBALANCE_MS, SESSION_MS, assignment_of
from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.server.config.node_config import Tls
from holdfast.server.rpc.grpc_options import server_options
from holdfast.server.security.client_port import ClientPort
from holdfast.server.security.credentials import read_credentials
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import group_pb2_grpc, offset_pb2_grpc
from holdfast.v1 import offset_pb2 as o

Context = grpc.aio.ServicerContext[Any, Any]
GENERATION: Final = 1
MEMBER: Final = "m-00000-00000000-0000-0000-0000-000000000000"
_LOG_TIME_MS: Final = 1_700_000_000_000
_TOKEN: Final = (1 << 48) + 1_000
_ASSIGNMENT: Final = assignment_of(PARTITIONS_EACH)


class Groups(group_pb2_grpc.GroupServiceServicer):
    """What a member calls: everybody is in generation 1 of a quiet group."""

    async def JoinGroup(self, request: g.JoinGroupRequest, context: Context) -> g.JoinGroupResponse:  # noqa: N802 - the contract's name
        """As a node answers a static member that takes its place again."""
        del context
        return g.JoinGroupResponse(
            generation_id=GENERATION,
            protocol_type=request.protocol_type,
            protocol_name=PROTOCOL,
            leader=MEMBER,
            skip_assignment=True,
            member_id=MEMBER,
            holdfast=_granted(),
        )

    async def SyncGroup(self, request: g.SyncGroupRequest, context: Context) -> g.SyncGroupResponse:  # noqa: N802 - the contract's name
        """An assignment of ten partitions."""
        del context
        return g.SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=_ASSIGNMENT,
            holdfast=_granted(),
        )

    async def Heartbeat(self, request: g.HeartbeatRequest, context: Context) -> g.HeartbeatResponse:  # noqa: N802 - the contract's name
        """All as before."""
        del request, context
        return _beat()

    async def HeartbeatStream(  # noqa: N802 - the contract's name
        self, requests: AsyncIterator[g.HeartbeatBatch], context: Context
    ) -> AsyncIterator[g.HeartbeatBatchResponse]:
        """All as before, for each."""
        del context
        async for batch in requests:
            answers = [_beat() for _ in batch.requests]
            yield g.HeartbeatBatchResponse(batch=batch.batch, responses=answers)

    async def Session(  # noqa: N802 - the contract's name
        self, requests: AsyncIterator[g.SessionRequest], context: Context
    ) -> AsyncIterator[g.SessionResponse]:
        """All calls of a message, in one message."""
        async for request in requests:
            yield g.SessionResponse(
                answers=[await self._answer(call, context) for call in request.calls]
            )

    async def _answer(self, call: g.SessionCall, context: Context) -> g.SessionAnswer:
        """As the unary calls."""
        match call.WhichOneof("request"):
            case "join":
                joined = await self.JoinGroup(call.join, context)
                return g.SessionAnswer(number=call.number, join=joined)
            case "sync":
                synced = await self.SyncGroup(call.sync, context)
                return g.SessionAnswer(number=call.number, sync=synced)
            case _:
                return g.SessionAnswer(number=call.number, commit=_committed(call.commit))


class Offsets(offset_pb2_grpc.OffsetServiceServicer):
    """What commits offsets calls: all are taken, and none is kept."""

    async def OffsetCommit(  # noqa: N802 - the contract's name
        self, request: o.OffsetCommitRequest, context: Context
    ) -> o.OffsetCommitResponse:
        """Every partition is committed."""
        del context
        return _committed(request)

    async def OffsetCommitStream(  # noqa: N802 - the contract's name
        self, requests: AsyncIterator[o.OffsetCommitRequest], context: Context
    ) -> AsyncIterator[o.OffsetCommitResponse]:
        """The same, for each."""
        del context
        async for request in requests:
            yield _committed(request)


def _granted() -> x.ResponseExtras:
    return x.ResponseExtras(
        fencing_token=_TOKEN,
        position=_position(),
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        predecessor_ms=SESSION_MS,
        log_time_ms=_LOG_TIME_MS,
    )


def _beat() -> g.HeartbeatResponse:
    return g.HeartbeatResponse(holdfast=x.ResponseExtras(log_time_ms=_LOG_TIME_MS))


def _committed(request: o.OffsetCommitRequest) -> o.OffsetCommitResponse:
    answered = [
        o.OffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                o.OffsetCommitResponsePartition(partition_index=partition.partition_index)
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    extras = x.ResponseExtras(position=_position(), log_time_ms=_LOG_TIME_MS)
    return o.OffsetCommitResponse(topics=answered, holdfast=extras)


def _position() -> x.Position:
    return x.Position(index=1_000, ordinal=1)


def add_services(server: grpc.aio.Server) -> None:
    """Both services; a call that no row makes is answered UNIMPLEMENTED."""
    group_pb2_grpc.add_GroupServiceServicer_to_server(Groups(), server)  # type: ignore[abstract]  # on purpose: no row makes the other calls
    offset_pb2_grpc.add_OffsetServiceServicer_to_server(Offsets(), server)  # type: ignore[abstract]  # as above


async def serve(tls: Tls) -> None:
    """Serve until standard input ends."""
    server = grpc.aio.server(options=server_options(REGISTRY["log.entry_bytes_max"].most))
    add_services(server)
    port = server.add_secure_port("127.0.0.1:0", ClientPort(read_credentials(tls)).credentials)
    await server.start()
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(0)


if __name__ == "__main__":
    ca, certificate, key = map(Path, sys.argv[1:])
    uvloop.run(serve(Tls(ca, certificate, key)))
