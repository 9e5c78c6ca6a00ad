"""GroupService: join, sync, heartbeat, leave, find the leader; one by one, or on streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.server.config.address import parse_address
from holdfast.server.rpc.callers import Context, answered
from holdfast.server.rpc.errors import malformed
from holdfast.server.rpc.slices import chunks
from holdfast.server.security.seen_addresses import for_caller
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import group_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.runtime.groups.actors import Actors
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.rpc.calls.assignments import Assignments
    from holdfast.server.rpc.calls.member_call import MemberCall, RequestT, ResponseT
    from holdfast.server.rpc.calls.member_calls import MemberCalls
    from holdfast.server.rpc.heartbeat_stream import HeartbeatStreams
    from holdfast.server.rpc.session.sessions import Sessions

_GROUPS = 0
"""The key type of groups in FindCoordinator, the only one that is served."""


class GroupService(group_pb2_grpc.GroupServiceServicer):
    """The calls of a group's members."""

    def __init__(
        self,
        replica: ReplicaLike,
        actors: Actors,
        calls: MemberCalls,
        streams: HeartbeatStreams,
        sessions: Sessions,
        assignments: Assignments,
    ) -> None:
        self._replica, self._actors, self._calls = replica, actors, calls
        self._streams, self._sessions, self._assignments = streams, sessions, assignments

    @answered(g.JoinGroupResponse)
    async def JoinGroup(self, request: g.JoinGroupRequest, context: Context) -> g.JoinGroupResponse:
        """Join, or join again; the call is parked until the join phase closes."""
        return await self._calls.ask(self._calls.join, request, context)

    @answered(g.SyncGroupResponse)
    async def SyncGroup(self, request: g.SyncGroupRequest, context: Context) -> g.SyncGroupResponse:
        """Take the assignment from the group's leader; answer each member with its own part."""
        return await self._calls.ask(self._calls.sync, request, context)

    @answered(g.HeartbeatResponse)
    async def Heartbeat(self, request: g.HeartbeatRequest, context: Context) -> g.HeartbeatResponse:
        """Renew a member's session; answer from the cache if nothing has changed for it."""
        return await self._beat(self._calls.heartbeat, request, context)

    async def HeartbeatStream(  # type: ignore[override]  # writes by itself
        self, requests: AsyncIterator[g.HeartbeatBatch], context: Context
    ) -> None:
        """Answer heartbeats of many members, and push news to them."""
        await self._streams.serve(requests, context)

    @answered(g.ConsumerGroupHeartbeatResponse)
    async def ConsumerGroupHeartbeat(
        self, request: g.ConsumerGroupHeartbeatRequest, context: Context
    ) -> g.ConsumerGroupHeartbeatResponse:
        """Hear a member of the heartbeat protocol, and tell it what it is to own."""
        return await self._beat(self._calls.consumer_heartbeat, request, context)

    async def _beat(
        self, kind: MemberCall[RequestT, ResponseT], request: RequestT, context: Context
    ) -> ResponseT:
        """Answer a heartbeat from the cache, or have it decided."""
        who = self._calls.asker(context)
        if (refused := kind.refusal(request, who.principal)) is not None:
            return refused
        if (before := kind.cached(self._actors.hearing(), request, who.principal)) is not None:
            return before
        return await self._calls.ask_as(kind, request, who)

    async def Session(  # type: ignore[override]  # writes by itself
        self, requests: AsyncIterator[g.SessionRequest], context: Context
    ) -> None:
        """Carry out calls of many members, and answer each when it is done."""
        await self._sessions.serve(requests, context)

    @answered(g.PrepareAssignmentResponse)
    async def PrepareAssignment(
        self, request: g.PrepareAssignmentRequest, context: Context
    ) -> g.PrepareAssignmentResponse:
        """Give the chosen member of a group what its assignor needs."""
        return await self._assignments.prepare(request, context)

    @answered(g.InstallAssignmentResponse)
    async def InstallAssignment(
        self, request: g.InstallAssignmentRequest, context: Context
    ) -> g.InstallAssignmentResponse:
        """Take the target that the chosen member's assignor has computed."""
        return await self._assignments.install(request, context)

    @answered(g.LeaveGroupResponse)
    async def LeaveGroup(
        self, request: g.LeaveGroupRequest, context: Context
    ) -> g.LeaveGroupResponse:
        """Remove members at once."""
        return await self._calls.ask(self._calls.leave, request, context)

    @answered(g.FindCoordinatorResponse)
    async def FindCoordinator(
        self, request: g.FindCoordinatorRequest, context: Context
    ) -> g.FindCoordinatorResponse:
        """Name the leader, and the log time once there is a cluster; any node answers."""
        del context
        if request.key_type != _GROUPS:
            raise malformed("key_type", f"{request.key_type} is not served; only 0, groups, is")
        leader = for_caller(self._actors.leader_address)
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
