"""GroupService: join, sync, heartbeat, leave, find the leader. Translates and asks the actor."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, cast

from holdfast.coordinator.model import replies
from holdfast.coordinator.model.commands import Caller
from holdfast.server.config.address import parse_address
from holdfast.server.rpc.callers import Callers, Context, answered
from holdfast.server.rpc.errors import malformed
from holdfast.server.rpc.heartbeat_stream import answered_before
from holdfast.server.rpc.slices import chunks, collected
from holdfast.server.translate import requests, responses
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import group_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.runtime.groups.actors import Actors
    from holdfast.runtime.groups.pending_calls import Answered
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.rpc.heartbeat_stream import HeartbeatStreams
    from holdfast.server.rpc.takeovers import Takeovers

_GROUPS = 0
"""The key type of groups in FindCoordinator, the only one that is served."""


class GroupService(group_pb2_grpc.GroupServiceServicer):
    """The calls of a group's members."""

    def __init__(
        self,
        replica: ReplicaLike,
        actors: Actors,
        callers: Callers,
        streams: HeartbeatStreams,
        takeovers: Takeovers,
    ) -> None:
        self._replica, self._actors, self._takeovers = replica, actors, takeovers
        self._callers, self._streams = callers, streams

    @answered(g.JoinGroupResponse)
    async def JoinGroup(self, request: g.JoinGroupRequest, context: Context) -> g.JoinGroupResponse:
        """Join, or join again; the call is parked until the join phase closes."""
        with self._actors.open() as call:
            caller = self._callers.of(call.number, request, request.holdfast, context)
            fresh = f"{request.group_instance_id or caller.client_id}-{uuid.uuid4()}"
            got = await call.ask(requests.join_group(request, caller, fresh))
        reply = cast("replies.JoinReply", got.reply)
        response = responses.join_group(reply)
        self._takeovers.tell(response.holdfast, request.group_id, reply.error)
        self._stamp(response.holdfast, got)
        return response

    @answered(g.SyncGroupResponse)
    async def SyncGroup(self, request: g.SyncGroupRequest, context: Context) -> g.SyncGroupResponse:
        """Take the assignment from the group's leader; answer each member with its own part."""
        assigned = await collected(requests.assigned(request.assignments))
        with self._actors.open() as call:
            caller = self._callers.of(call.number, request, request.holdfast, context)
            got = await call.ask(requests.sync_group(request, caller, assigned))
        reply = cast("replies.SyncReply", got.reply)
        response = responses.sync_group(reply)
        self._takeovers.tell(response.holdfast, request.group_id, reply.error)
        self._stamp(response.holdfast, got)
        return response

    @answered(g.HeartbeatResponse)
    async def Heartbeat(self, request: g.HeartbeatRequest, context: Context) -> g.HeartbeatResponse:
        """Renew a member's session; answer from the cache if nothing has changed for it."""
        if (before := answered_before(self._actors, request)) is not None:
            return before
        got = await self._heartbeat(request, context)
        reply = cast("replies.HeartbeatReply", got.reply)
        response = responses.heartbeat(reply)
        self._takeovers.tell(response.holdfast, request.group_id, reply.error)
        if got.position is not None:
            self._stamp(response.holdfast, got)
        return response

    async def _heartbeat(self, request: g.HeartbeatRequest, context: Context) -> Answered:
        with self._actors.open() as call:
            caller = Caller(call.number)
            if request.HasField("holdfast"):
                caller = self._callers.of(call.number, request, request.holdfast, context)
            return await call.ask(requests.heartbeat(request, caller))

    async def HeartbeatStream(  # type: ignore[override]  # writes by itself
        self, requests: AsyncIterator[g.HeartbeatBatch], context: Context
    ) -> None:
        """Answer heartbeats of many members, and push news to them."""
        await self._streams.serve(requests, context)

    @answered(g.LeaveGroupResponse)
    async def LeaveGroup(
        self, request: g.LeaveGroupRequest, context: Context
    ) -> g.LeaveGroupResponse:
        """Remove members at once."""
        leaving = await collected(requests.leaving(request.members))
        with self._actors.open() as call:
            caller = self._callers.of(call.number, request, request.holdfast, context)
            got = await call.ask(requests.leave_group(request, caller, leaving))
        reply = cast("replies.LeaveReply", got.reply)
        response = responses.leave_group(reply, await collected(map(responses.left, reply.members)))
        self._stamp(response.holdfast, got)
        return response

    @answered(g.FindCoordinatorResponse)
    async def FindCoordinator(
        self, request: g.FindCoordinatorRequest, context: Context
    ) -> g.FindCoordinatorResponse:
        """Name the leader, and the log time once there is a cluster; any node answers."""
        del context
        if request.key_type != _GROUPS:
            raise malformed("key_type", f"{request.key_type} is not served; only 0, groups, is")
        leader = self._actors.leader_address
        extras = x.ResponseExtras()
        if self._replica.state.cluster_id:
            extras.log_time_ms = self._replica.log_time_ms()
        if leader:
            extras.leader_hint = leader
        response = g.FindCoordinatorResponse(holdfast=extras)
        async for keys in chunks(request.coordinator_keys):
            response.coordinators.extend([self._coordinator(key, leader) for key in keys])
        return response

    def _coordinator(self, key: str, leader: str) -> g.FindCoordinatorResponseCoordinator:
        if not leader:
            return g.FindCoordinatorResponseCoordinator(
                key=key,
                node_id=-1,
                port=-1,
                error_code=e.ERROR_CODE_COORDINATOR_NOT_AVAILABLE,
                error_message="no leader is known: an election is under way, or fewer than half of "
                "the nodes can reach each other. Try again shortly",
            )
        address = parse_address(leader)
        return g.FindCoordinatorResponseCoordinator(
            key=key,
            node_id=self._actors.number_of(self._replica.leader),
            host=address.host,
            port=address.port,
        )

    def _stamp(self, extras: x.ResponseExtras, got: Answered) -> None:
        """Set the position of the change, and the log time with which request ids begin (S15)."""
        if got.position is not None:
            extras.position.index, extras.position.ordinal = got.position
        extras.log_time_ms = self._replica.log_time_ms()
