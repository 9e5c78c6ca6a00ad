"""Nodes that serve real gRPC on 127.0.0.1 from memory: enough of a service for the shells' tests.

One `FakeGroup` is the truth of one group with one member at a time; `FakeNode`s serve it, the one
that leads; the others redirect. What a test wants to go wrong it puts into `refuse`.
"""

# ruff: noqa: ANN401, N802 - the generated interface sets the names; its contexts are untyped

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from holdfast.client._rpc.clock import boot_ms
from holdfast.v1 import admin_pb2, extras_pb2, group_pb2, offset_pb2
from holdfast.v1.admin_pb2_grpc import AdminServiceServicer, add_AdminServiceServicer_to_server
from holdfast.v1.errors_pb2 import ErrorCode
from holdfast.v1.group_pb2_grpc import GroupServiceServicer, add_GroupServiceServicer_to_server
from holdfast.v1.offset_pb2_grpc import OffsetServiceServicer, add_OffsetServiceServicer_to_server
from unit.client._session.consumer.coordinator import Coordinator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

LOG_TIME_MS = 1_700_000_000_000
NONE = ErrorCode.ERROR_CODE_NONE


class FakeGroup:
    """Shared by all nodes of one test."""

    def __init__(self) -> None:
        self.leader = ""
        self.nodes: list[str] = []  # the addresses that DescribeCluster tells
        self.membership_index = 0  # of the entry that says so
        self.recovery_number = 0
        self.partitions = 4
        self.generation = 0
        self.assignment = b""
        self.heartbeat_code: ErrorCode.ValueType = NONE
        self.heartbeat_extras = extras_pb2.ResponseExtras()
        self.heartbeat_codes: dict[str, ErrorCode.ValueType] = {}  # of single members
        self.streams = 0
        self.batches = 0
        self.mute = False  # heartbeats on the stream are heard and not answered
        self.refuse_stream: list[tuple[grpc.StatusCode, tuple[tuple[str, str], ...]]] = []
        self.commit_code: ErrorCode.ValueType = NONE
        self.commits_taken: int | None = None  # so many, and then no commit is answered any more
        self.commits_end_as: tuple[tuple[str, str], ...] = ()
        self.commit_codes: list[ErrorCode.ValueType] = []  # of the next commits
        self.consumers = Coordinator(in_place=True, interval_ms=20)  # the heartbeat protocol
        self.offsets: dict[tuple[str, int], tuple[int, str]] = {}
        self.requests: dict[str, list[Any]] = defaultdict(list)
        self.client_ids: set[str] = set()
        # Statuses to end the next calls of a method with: (code, trailing metadata).
        self.refuse: dict[str, list[tuple[grpc.StatusCode, tuple[tuple[str, str], ...]]]] = (
            defaultdict(list)
        )
        self.join_gate = asyncio.Event()
        self.join_gate.set()
        self.describe_gate = asyncio.Event()
        self.describe_gate.set()
        self.pushes: asyncio.Queue[group_pb2.HeartbeatPush] = asyncio.Queue()
        self.has_stream = True
        self.classic_only = False  # batches as before there were two protocols on the stream
        self.session_pushes: list[group_pb2.HeartbeatPush] = []  # with the next answer
        self.has_session = True
        self.sessions = 0
        self.messages: list[list[int]] = []  # the numbers of the calls in each Session message
        self.given_up: list[int] = []
        # Statuses to end the next Session streams with, when their first message is there.
        self.break_session: list[tuple[grpc.StatusCode, tuple[tuple[str, str], ...]]] = []
        self.refuse_session: list[tuple[grpc.StatusCode, tuple[tuple[str, str], ...]]] = []

    async def enter(self, method: str, request: Any, context: Any) -> None:
        self.requests[method].append(request)
        named = dict(context.invocation_metadata()).get("holdfast-client-id")
        if named is not None:
            self.client_ids.add(str(named))
        if self.refuse[method]:
            code, trailing = self.refuse[method].pop(0)
            await context.abort(code, "as the test wants", trailing)


def extras() -> extras_pb2.ResponseExtras:
    return extras_pb2.ResponseExtras(log_time_ms=LOG_TIME_MS, fencing_token=77)


class _CallContext:
    """What a unary method is given when its call came on a Session stream."""

    def __init__(self, of_stream: Any) -> None:
        self.invocation_metadata = of_stream.invocation_metadata
        self.trailing: dict[str, str] = {}
        self.status = group_pb2.SessionStatus()

    def set_trailing_metadata(self, trailing: tuple[tuple[str, str], ...]) -> None:
        self.trailing = dict(trailing)

    async def abort(
        self, code: grpc.StatusCode, details: str, trailing: tuple[tuple[str, str], ...] = ()
    ) -> None:
        told = dict(trailing)
        self.status = group_pb2.SessionStatus(
            code=code.value[0],
            message=details,
            not_applied=told.get("holdfast-outcome") == "not-applied",
            leader=told.get("holdfast-leader", ""),
            permanent=told.get("holdfast-retry") == "no",
        )
        raise grpc.aio.AbortError("as the test wants")


class FakeNode(GroupServiceServicer, OffsetServiceServicer, AdminServiceServicer):
    """One node; it serves when its address is the group's leader."""

    def __init__(self, group: FakeGroup) -> None:
        self.group = group
        self.address = ""
        self.server: Any = None

    async def _elsewhere(self, context: Any) -> bool:
        if self.group.leader == self.address:
            return False
        context.set_trailing_metadata((("holdfast-leader", self.group.leader),))
        return True

    async def Session(  # type: ignore[override]  # writes by itself
        self, requests: Any, context: Any
    ) -> None:
        group = self.group
        for refused in (
            [(grpc.StatusCode.UNIMPLEMENTED, ())] if not group.has_session else [],
            group.refuse_session,
        ):
            if refused:
                await context.abort(*_in_words(refused.pop(0)))
        group.sessions += 1
        await context.send_initial_metadata(())
        tasks: dict[int, asyncio.Task[None]] = {}
        writing = asyncio.Lock()
        try:
            async for message in requests:
                group.messages.append([one.number for one in message.calls])
                group.given_up.extend(message.given_up)
                for number in message.given_up:
                    tasks[number].cancel()
                for one in message.calls:
                    tasks[one.number] = asyncio.create_task(self._one_call(one, context, writing))
                if message.calls and group.break_session:
                    await context.abort(*_in_words(group.break_session.pop(0)))
        finally:
            for task in tasks.values():
                task.cancel()

    async def _one_call(
        self, call: group_pb2.SessionCall, context: Any, writing: asyncio.Lock
    ) -> None:
        kind = call.WhichOneof("request") or ""
        method = {
            "join": self.JoinGroup,
            "sync": self.SyncGroup,
            "heartbeat": self.Heartbeat,
            "leave": self.LeaveGroup,
            "commit": self.OffsetCommit,
            "consumer_heartbeat": self.ConsumerGroupHeartbeat,
        }[kind]
        own, answer = _CallContext(context), group_pb2.SessionAnswer(number=call.number)
        try:
            response = await method(getattr(call, kind), own)
            response.holdfast.leader_hint = own.trailing.get("holdfast-leader", "")
            getattr(answer, kind).CopyFrom(response)
        except grpc.aio.AbortError:
            answer.status.CopyFrom(own.status)
        async with writing:  # gRPC takes one message at a time
            await context.write(group_pb2.SessionResponse(answers=[answer]))
            if pushes := self.group.session_pushes:
                self.group.session_pushes = []
                await context.write(group_pb2.SessionResponse(pushes=pushes))

    async def FindCoordinator(self, request: Any, context: Any) -> Any:
        await self.group.enter("FindCoordinator", request, context)
        return group_pb2.FindCoordinatorResponse(holdfast=extras())

    async def JoinGroup(self, request: Any, context: Any) -> Any:
        await self.group.enter("JoinGroup", request, context)
        if await self._elsewhere(context):
            return group_pb2.JoinGroupResponse(error_code=ErrorCode.ERROR_CODE_NOT_COORDINATOR)
        await self.group.join_gate.wait()
        self.group.generation += 1
        member_id = request.member_id or f"member-{self.group.generation}"
        member = group_pb2.JoinGroupResponseMember(
            member_id=member_id, metadata=request.protocols[0].metadata
        )
        return group_pb2.JoinGroupResponse(
            generation_id=self.group.generation,
            protocol_type="consumer",
            protocol_name=request.protocols[0].name,
            leader=member_id,
            member_id=member_id,
            members=[member],
            holdfast=extras(),
        )

    async def SyncGroup(self, request: Any, context: Any) -> Any:
        await self.group.enter("SyncGroup", request, context)
        if await self._elsewhere(context):
            return group_pb2.SyncGroupResponse(error_code=ErrorCode.ERROR_CODE_NOT_COORDINATOR)
        self.group.assignment = request.assignments[0].assignment
        return group_pb2.SyncGroupResponse(assignment=self.group.assignment, holdfast=extras())

    async def Heartbeat(self, request: Any, context: Any) -> Any:
        await self.group.enter("Heartbeat", request, context)
        if await self._elsewhere(context):
            return group_pb2.HeartbeatResponse(error_code=ErrorCode.ERROR_CODE_NOT_COORDINATOR)
        return self._heartbeat(request.member_id)

    async def ConsumerGroupHeartbeat(self, request: Any, context: Any) -> Any:
        await self.group.enter("ConsumerGroupHeartbeat", request, context)
        if await self._elsewhere(context):
            code = ErrorCode.ERROR_CODE_NOT_COORDINATOR
            return group_pb2.ConsumerGroupHeartbeatResponse(error_code=code)
        return self.group.consumers.answer(request, boot_ms())

    async def HeartbeatStream(self, requests: Any, context: Any) -> AsyncIterator[Any]:
        if not self.group.has_stream:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no stream here")
        if self.group.refuse_stream:
            code, trailing = self.group.refuse_stream.pop(0)
            await context.abort(code, "as the test wants", trailing)
        self.group.streams += 1
        answers: asyncio.Queue[Any] = asyncio.Queue()
        readers = [
            asyncio.create_task(self._read(requests, answers)),
            asyncio.create_task(self._push(answers)),
        ]
        try:
            while True:
                yield await answers.get()
        finally:
            for reader in readers:
                reader.cancel()

    async def _read(self, requests: Any, answers: asyncio.Queue[Any]) -> None:
        async for batch in requests:
            self.group.requests["HeartbeatStream"].extend(batch.requests)
            self.group.requests["HeartbeatStream"].extend(batch.consumer_requests)
            self.group.batches += 1
            if self.group.mute:
                continue
            made = group_pb2.HeartbeatBatchResponse(batch=batch.batch)
            made.responses.extend([self._heartbeat(one.member_id) for one in batch.requests])
            if not self.group.classic_only:
                consumers = self.group.consumers
                heard = [consumers.answer(one, boot_ms()) for one in batch.consumer_requests]
                made.consumer_responses.extend(heard)
            await answers.put(made)

    def _heartbeat(self, member_id: str) -> group_pb2.HeartbeatResponse:
        group = self.group
        return group_pb2.HeartbeatResponse(
            error_code=group.heartbeat_codes.get(member_id, group.heartbeat_code),
            holdfast=group.heartbeat_extras,
        )

    async def _push(self, answers: asyncio.Queue[Any]) -> None:
        while True:
            push = await self.group.pushes.get()
            await answers.put(group_pb2.HeartbeatBatchResponse(pushes=[push]))

    async def LeaveGroup(self, request: Any, context: Any) -> Any:
        await self.group.enter("LeaveGroup", request, context)
        return group_pb2.LeaveGroupResponse()

    async def ListTopics(self, request: Any, context: Any) -> Any:
        await self.group.enter("ListTopics", request, context)
        topic = admin_pb2.ListedTopic(name="t", num_partitions=self.group.partitions)
        return admin_pb2.ListTopicsResponse(topics=[topic])

    async def DescribeCluster(self, request: Any, context: Any) -> Any:
        await self.group.enter("DescribeCluster", request, context)
        await self.group.describe_gate.wait()
        told = [
            admin_pb2.DescribedNode(name=address, client_address=address)
            for address in self.group.nodes
        ]
        return admin_pb2.DescribeClusterResponse(
            node=self.address,
            nodes=told,
            membership_index=self.group.membership_index,
            recovery_number=self.group.recovery_number,
        )

    async def TransferLeadership(self, request: Any, context: Any) -> Any:
        await self.group.enter("TransferLeadership", request, context)
        return admin_pb2.TransferLeadershipResponse(node=request.node)

    async def RemoveMembers(self, request: Any, context: Any) -> Any:
        await self.group.enter("RemoveMembers", request, context)
        unknown = ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID
        removed = [
            admin_pb2.RemovedMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id or None,
                error_code=unknown if "ghost" in str(member) else NONE,
            )
            for member in request.members
        ]
        return admin_pb2.RemoveMembersResponse(members=removed)

    async def OffsetCommit(self, request: Any, context: Any) -> Any:
        await self.group.enter("OffsetCommit", request, context)
        if self.group.commits_taken is not None:
            self.group.commits_taken -= 1
            if self.group.commits_taken < 0:
                await context.abort(
                    grpc.StatusCode.UNAVAILABLE, "no answer", self.group.commits_end_as
                )
        codes = self.group.commit_codes
        code = codes.pop(0) if codes else self.group.commit_code
        topics = []
        for topic in request.topics:
            for partition in topic.partitions:
                value = (partition.committed_offset, partition.committed_metadata)
                if code == NONE:
                    self.group.offsets[topic.name, partition.partition_index] = value
            answers = [
                offset_pb2.OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=code
                )
                for partition in topic.partitions
            ]
            topics.append(offset_pb2.OffsetCommitResponseTopic(name=topic.name, partitions=answers))
        return offset_pb2.OffsetCommitResponse(topics=topics)

    async def OffsetFetch(self, request: Any, context: Any) -> Any:
        await self.group.enter("OffsetFetch", request, context)
        topics = [
            offset_pb2.OffsetFetchResponseTopic(
                name=topic,
                partitions=[
                    offset_pb2.OffsetFetchResponsePartition(
                        partition_index=number, committed_offset=offset, metadata=words
                    )
                ],
            )
            for (topic, number), (offset, words) in self.group.offsets.items()
        ]
        group = offset_pb2.OffsetFetchResponseGroup(group_id="g", topics=topics)
        return offset_pb2.OffsetFetchResponse(groups=[group])


def _in_words(
    ended: tuple[grpc.StatusCode, tuple[tuple[str, str], ...]],
) -> tuple[grpc.StatusCode, str, tuple[tuple[str, str], ...]]:
    return ended[0], "as the test wants", ended[1]


@asynccontextmanager
async def fake_cluster(nodes: int = 1) -> AsyncIterator[tuple[FakeGroup, list[FakeNode]]]:
    """Nodes on free ports; the last one leads."""
    group = FakeGroup()
    servers, served = [], []
    for _ in range(nodes):
        node = FakeNode(group)  # type: ignore[abstract]  # serves only what the tests call
        server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
        add_GroupServiceServicer_to_server(node, server)
        add_OffsetServiceServicer_to_server(node, server)
        add_AdminServiceServicer_to_server(node, server)
        node.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        node.server = server
        group.nodes.append(node.address)
        servers.append(server)
        served.append(node)
    group.leader = served[-1].address
    try:
        yield group, served
    finally:
        for server in servers:
            await server.stop(0)


def said(caplog: pytest.LogCaptureFixture, least: int = logging.INFO) -> list[logging.LogRecord]:
    """What the client logged. gRPC has a logger too, and a fake node that ends may speak by it."""
    ours = [record for record in caplog.records if record.name == "holdfast.client"]
    return [record for record in ours if record.levelno >= least]
