"""What a member calls: how each request becomes a command, and each reply a response.

The unary methods and the Session stream both take a call from here, so that it means the same on
either. Long lists are translated in slices. Knows no gRPC.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, cast

from holdfast.coordinator.model.commands import Caller
from holdfast.coordinator.model.text import readable
from holdfast.server.access.table import SESSION
from holdfast.server.guard.item_bounds import Bounds
from holdfast.server.rpc.errors import Refused, status_named
from holdfast.server.rpc.slices import collected
from holdfast.server.translate import requests, responses
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import offset_pb2 as o

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.protobuf.message import Message

    from holdfast.coordinator.model import commands as c
    from holdfast.coordinator.model import replies
    from holdfast.coordinator.model.events import Assigned
    from holdfast.coordinator.model.ids import CallId
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.runtime.groups.actors import Actors
    from holdfast.runtime.groups.pending_calls import Answered
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.access.gate import Gate
    from holdfast.server.rpc.callers import Asker, Callers, Context, Identity
    from holdfast.server.rpc.takeovers import Takeovers
    from holdfast.server.traces.traces import Traces

    Asked = (
        g.JoinGroupRequest
        | g.SyncGroupRequest
        | g.HeartbeatRequest
        | g.LeaveGroupRequest
        | o.OffsetCommitRequest
    )
    Who = Callable[[], Identity]
    """Reads who calls, which takes longer than some calls do."""


RequestT = TypeVar("RequestT", bound="Asked")
ResponseT = TypeVar("ResponseT")
OfOneT = TypeVar("OfOneT", g.JoinGroupResponse, g.SyncGroupResponse, g.HeartbeatResponse)
_FIELDS: Final = {
    field.message_type.name: field.name
    for field in g.SessionCall.DESCRIPTOR.oneofs_by_name["request"].fields
    if field.message_type is not None
}
"""The field of a SessionCall, and of a SessionAnswer, by the name of a request's class."""


class MemberCall(ABC, Generic[RequestT, ResponseT]):
    """One kind of call."""

    asked: ClassVar[type[Message]]
    respond: ClassVar[Callable[..., Any]]
    """The classes of its request and its response."""
    parks: ClassVar[bool] = False
    """Whether a call of this kind may wait for other members."""

    def __init__(self, replica: ReplicaLike, takeovers: Takeovers, gate: Gate) -> None:
        self._replica, self._takeovers, self._gate = replica, takeovers, gate
        self.method = self.asked.DESCRIPTOR.name.removesuffix("Request")
        (service,) = self.asked.DESCRIPTOR.file.services_by_name.values()
        self.path = f"{service.full_name}/{self.method}"
        """Of the unary method, for traces."""
        self.field = _FIELDS[self.asked.DESCRIPTOR.name]
        self._line = SESSION[self.field]
        self.bounds = Bounds(self.asked.DESCRIPTOR)  # type: ignore[arg-type]  # stubs name two classes for one

    def refusal(self, request: RequestT, who: Callable[[], str]) -> ResponseT | None:
        """Return the refusal of a call that the caller may not make; None: it may.

        `who`: reads the principal, which takes longer than to see that everybody may everything.
        """
        need = self._line.need
        if self._gate.open or need is None:
            return None
        try:
            self._gate.check(who(), self.method, need, request.group_id, request)
        except Refused as error:
            return self._refused(request, error)
        return None

    def _refused(self, request: RequestT, error: Refused) -> ResponseT:
        """Make the response of a call that is refused whole."""
        del request
        extras = x.ResponseExtras(message=readable(error.sentence))
        return cast("ResponseT", self.respond(error_code=error.code, holdfast=extras))

    def items(self, request: RequestT) -> int:
        """Count what a request holds, at least 1: deciding it takes time for each."""
        del request
        return 1

    async def parts(self, request: RequestT) -> Sequence[Any]:
        """Translate the long list of a request, if this kind has one; raises CallFailed."""
        del request
        return ()

    @abstractmethod
    def command(self, request: RequestT, caller: Caller, parts: Sequence[Any]) -> c.Command:
        """Make the command, of a request and its parts; raises CallFailed."""

    def kept(self, request: RequestT) -> RequestT:
        """Copy of a parked call's request what `response` and the log need; its message can go."""
        extras = x.RequestExtras(request_id=request.holdfast.request_id)
        return cast("RequestT", self.asked(group_id=request.group_id, holdfast=extras))

    async def results(self, reply: Any) -> Sequence[Any]:  # noqa: ANN401 - a reply of this kind
        """Translate the long list of a reply, if this kind has one."""
        del reply
        return ()

    @abstractmethod
    def response(self, request: RequestT, got: Answered, results: Sequence[Any]) -> ResponseT:
        """Make the response, of the answer to a request and its results; raises CallFailed."""

    def caller(self, who: Who, call: CallId, request: RequestT) -> Caller:
        """Return the caller of a request; raises CallFailed for a malformed request id."""
        return who().caller(call, request, request.holdfast)

    def _of_one(
        self, response: OfOneT, request: Asked, error: Rejection | None, got: Answered
    ) -> OfOneT:
        """Complete the response to one member: how often its place was taken, if it is fenced."""
        self._takeovers.tell(response.holdfast, request.group_id, error)
        self._stamp(response.holdfast, got)
        return response

    def _stamp(self, extras: x.ResponseExtras, got: Answered) -> None:
        """Set the position of the change, and the log time with which request ids begin (S15)."""
        if got.position is not None:
            extras.position.index, extras.position.ordinal = got.position
        extras.log_time_ms = self._replica.log_time_ms()


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


class Heartbeat(MemberCall[g.HeartbeatRequest, g.HeartbeatResponse]):
    """A heartbeat that no cache has the answer to."""

    asked, respond = g.HeartbeatRequest, g.HeartbeatResponse

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


class Commit(MemberCall[o.OffsetCommitRequest, o.OffsetCommitResponse]):
    """A commit of offsets."""

    asked, respond = o.OffsetCommitRequest, o.OffsetCommitResponse

    def items(self, request: o.OffsetCommitRequest) -> int:
        """Count its topics, and their partitions beside the first."""
        return max(1, sum([len(topic.partitions) or 1 for topic in request.topics]))

    def command(
        self, request: o.OffsetCommitRequest, caller: Caller, parts: Sequence[object]
    ) -> c.CommitOffsets:
        """Make the command, with the topics that the caller may not touch."""
        del parts
        return requests.commit_offsets(request, caller, self._forbidden(request, caller))

    def _forbidden(self, request: o.OffsetCommitRequest, caller: Caller) -> frozenset[str]:
        if self._gate.open or self._line.topics is None:
            return frozenset()
        names = {topic.name for topic in request.topics}
        return self._gate.denied(caller.principal, self.method, self._line.topics, names, request)

    def _refused(self, request: o.OffsetCommitRequest, error: Refused) -> o.OffsetCommitResponse:
        """Refuse each partition: the response has no code of its own."""
        extras = x.ResponseExtras(message=readable(error.sentence))
        return responses.refused_commit(request, error.code, extras)

    def response(
        self, request: o.OffsetCommitRequest, got: Answered, results: Sequence[object]
    ) -> o.OffsetCommitResponse:
        """Make the response; it has no log time, since commits are many and ids few."""
        del results
        reply = cast("replies.OffsetsReply", got.reply)
        error = responses.first_error(reply)
        response = responses.commit_offsets(reply, request, error)
        if error is not None:
            self._takeovers.tell(response.holdfast, request.group_id, error)
        if got.position is not None:
            position = response.holdfast.position
            position.index, position.ordinal = got.position
        return response


class MemberCalls:
    """The kinds of calls, and the way of a unary one."""

    def __init__(
        self,
        replica: ReplicaLike,
        actors: Actors,
        callers: Callers,
        takeovers: Takeovers,
        gate: Gate,
        traces: Traces | None = None,
    ) -> None:
        self._actors, self._callers, self._traces = actors, callers, traces
        needs = (replica, takeovers, gate)
        self.join, self.sync, self.heartbeat = Join(*needs), Sync(*needs), Heartbeat(*needs)
        self.leave, self.commit = Leave(*needs), Commit(*needs)

    @property
    def all(self) -> Sequence[MemberCall[Any, Any]]:
        """Every kind."""
        return (self.join, self.sync, self.heartbeat, self.leave, self.commit)

    def asker(self, context: Context) -> Asker:
        """Return what reads who calls, once it is asked for."""
        return self._callers.asker(context)

    async def ask(
        self, kind: MemberCall[RequestT, ResponseT], request: RequestT, context: Context
    ) -> ResponseT:
        """Carry out a unary call and return its response; raises what ends it without one."""
        return await self.ask_as(kind, request, self._callers.asker(context))

    async def ask_on(
        self, stream: str, kind: MemberCall[RequestT, ResponseT], request: RequestT, who: Asker
    ) -> ResponseT:
        """Carry out a call of a stream in its own task; its caller cannot say that it is traced."""
        trace = self._traces.begin(kind.path, None, stream) if self._traces else None
        asked = self.ask_as(kind, request, who)
        return await (asked if trace is None else trace.follow(asked, status_named))

    async def ask_as(
        self, kind: MemberCall[RequestT, ResponseT], request: RequestT, who: Asker
    ) -> ResponseT:
        """Carry out a call of which it is known, or can be read, who makes it."""
        if (refused := kind.refusal(request, who.principal)) is not None:
            return refused
        parts = await kind.parts(request)
        with self._actors.open() as call:
            caller = kind.caller(who.identity, call.number, request)
            got = await call.ask(kind.command(request, caller, parts))
        return kind.response(request, got, await kind.results(got.reply))
