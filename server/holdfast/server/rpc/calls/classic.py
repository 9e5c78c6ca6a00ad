"""The calls of members of the classic protocol; long lists are translated in slices."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final, cast

from holdfast.coordinator.model.commands import Caller
from holdfast.server.rpc.calls.member_call import MemberCall
from holdfast.server.rpc.slices import collected
from holdfast.server.translate import requests, responses
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.coordinator.model import commands as c
    from holdfast.coordinator.model import replies
    from holdfast.coordinator.model.events import Assigned
    from holdfast.coordinator.model.ids import CallId
    from holdfast.runtime.groups.hearing import Hearing
    from holdfast.runtime.groups.pending_calls import Answered
    from holdfast.server.rpc.calls.member_call import Who
    from holdfast.v1 import extras_pb2 as x


class Join(MemberCall[g.JoinGroupRequest, g.JoinGroupResponse]):
    """A join, which is parked until the join phase closes."""

    asked, respond = g.JoinGroupRequest, g.JoinGroupResponse
    parks = True

    def items(self, request: g.JoinGroupRequest) -> int:
        """Count its protocols."""
        return max(1, len(request.protocols))

    def command(
        self, request: g.JoinGroupRequest, caller: Caller, parts: Sequence[object]
    ) -> c.JoinGroup:
        """Make the command, with a member id that was never used before."""
        del parts
        fresh = f"{request.group_instance_id or caller.client_id}-{uuid.uuid4()}"
        return requests.join_group(request, caller, fresh)

    def response(
        self, request: g.JoinGroupRequest, got: Answered, results: Sequence[object]
    ) -> g.JoinGroupResponse:
        """Make the response."""
        del results
        reply = cast("replies.JoinReply", got.reply)
        return self._of_one(responses.join_group(reply), request, reply.error, got)


class Sync(MemberCall[g.SyncGroupRequest, g.SyncGroupResponse]):
    """A sync, which is parked until the group's leader has handed in the assignment."""

    asked, respond = g.SyncGroupRequest, g.SyncGroupResponse
    parks = True

    def items(self, request: g.SyncGroupRequest) -> int:
        """Count its assignments."""
        return max(1, len(request.assignments))

    async def parts(self, request: g.SyncGroupRequest) -> Sequence[Assigned]:
        """Translate its assignments."""
        if not request.assignments:
            return ()
        return await collected(requests.assigned(request.assignments))

    def command(
        self, request: g.SyncGroupRequest, caller: Caller, parts: Sequence[Assigned]
    ) -> c.SyncGroup:
        """Make the command."""
        return requests.sync_group(request, caller, tuple(parts))

    def response(
        self, request: g.SyncGroupRequest, got: Answered, results: Sequence[object]
    ) -> g.SyncGroupResponse:
        """Make the response."""
        del results
        reply = cast("replies.SyncReply", got.reply)
        return self._of_one(responses.sync_group(reply), request, reply.error, got)


_OF_MEMBERS: Final = frozenset(
    {e.ERROR_CODE_NONE, e.ERROR_CODE_REBALANCE_IN_PROGRESS, e.ERROR_CODE_ILLEGAL_GENERATION}
)
"""Answers to heartbeats of members; others are to strangers, or of a node that leads no more."""


def answered_before(hearing: Hearing, request: g.HeartbeatRequest) -> g.HeartbeatResponse | None:
    """Return the cached answer to a heartbeat; None if the heartbeat has to be decided.

    `hearing`: from `Actors.hearing`, asked in this turn of the loop.
    """
    if request.HasField("holdfast"):
        return None
    instance = request.group_instance_id if request.HasField("group_instance_id") else None
    key = (request.generation_id, request.member_id, instance)
    cached = hearing.classic(request.group_id, key)
    return None if cached is None else responses.cached(cached)


class Heartbeat(MemberCall[g.HeartbeatRequest, g.HeartbeatResponse]):
    """A heartbeat of the classic protocol."""

    asked, respond = g.HeartbeatRequest, g.HeartbeatResponse

    def cached(
        self, hearing: Hearing, request: g.HeartbeatRequest, who: Callable[[], str]
    ) -> g.HeartbeatResponse | None:
        """Return the cached answer; None: it has to be decided."""
        del who
        return answered_before(hearing, request)

    def carries(self, request: g.HeartbeatRequest) -> bool:
        """Return True, but for the last one, with which a process says that it stops."""
        return not request.holdfast.release

    def ends(self, code: int | str) -> bool:
        """Return whether it was no member's here."""
        return code not in _OF_MEMBERS

    def limited(self, request: g.HeartbeatRequest) -> bool:
        """Return False: a refused heartbeat would end a session."""
        del request
        return False

    def caller(self, who: Who, call: CallId, request: g.HeartbeatRequest) -> Caller:
        """Return who calls, unless the heartbeat asks for nothing that needs to know it."""
        if not request.HasField("holdfast"):
            return Caller(call)
        return super().caller(who, call, request)

    def command(
        self, request: g.HeartbeatRequest, caller: Caller, parts: Sequence[object]
    ) -> c.Heartbeat:
        """Make the command."""
        del parts
        return requests.heartbeat(request, caller)

    def response(
        self, request: g.HeartbeatRequest, got: Answered, results: Sequence[object]
    ) -> g.HeartbeatResponse:
        """Make the response."""
        del results
        reply = cast("replies.HeartbeatReply", got.reply)
        return self._of_one(responses.heartbeat(reply), request, reply.error, got)

    def _stamp(self, extras: x.ResponseExtras, got: Answered) -> None:
        """Stamp a release only: nothing else that a heartbeat does has a position."""
        if got.position is not None:
            super()._stamp(extras, got)


class Leave(MemberCall[g.LeaveGroupRequest, g.LeaveGroupResponse]):
    """A leave, of one member or of many."""

    asked, respond = g.LeaveGroupRequest, g.LeaveGroupResponse

    def items(self, request: g.LeaveGroupRequest) -> int:
        """Count the members that leave."""
        return max(1, len(request.members))

    async def parts(self, request: g.LeaveGroupRequest) -> Sequence[c.LeavingMember]:
        """Translate the members that leave."""
        return await collected(requests.leaving(request.members))

    def command(
        self, request: g.LeaveGroupRequest, caller: Caller, parts: Sequence[c.LeavingMember]
    ) -> c.LeaveGroup:
        """Make the command."""
        return requests.leave_group(request, caller, tuple(parts))

    async def results(self, reply: replies.LeaveReply) -> Sequence[g.LeaveGroupResponseMember]:
        """Translate what became of each member."""
        return await collected(map(responses.left, reply.members))

    def response(
        self,
        request: g.LeaveGroupRequest,
        got: Answered,
        results: Sequence[g.LeaveGroupResponseMember],
    ) -> g.LeaveGroupResponse:
        """Make the response, with the members in the order of the request."""
        del request
        response = responses.leave_group(cast("replies.LeaveReply", got.reply), results)
        self._stamp(response.holdfast, got)
        return response
