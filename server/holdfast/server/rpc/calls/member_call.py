"""One kind of call of members: how its request becomes a command, and its reply a response.

Knows no gRPC and no kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, cast

from holdfast.coordinator.model.text import readable
from holdfast.server.access.table import SESSION
from holdfast.server.guard.item_bounds import Bounds
from holdfast.server.rpc.errors import Refused
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.protobuf.message import Message

    from holdfast.coordinator.model import commands as c
    from holdfast.coordinator.model.commands import Caller
    from holdfast.coordinator.model.ids import CallId
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.runtime.groups.hearing import Hearing
    from holdfast.runtime.groups.pending_calls import Answered
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.access.gate import Gate
    from holdfast.server.rpc.callers import Identity
    from holdfast.server.rpc.takeovers import Takeovers
    from holdfast.v1 import offset_pb2 as o

    Asked = (
        g.JoinGroupRequest
        | g.SyncGroupRequest
        | g.HeartbeatRequest
        | g.ConsumerGroupHeartbeatRequest
        | g.LeaveGroupRequest
        | o.OffsetCommitRequest
    )
    Who = Callable[[], Identity]
    """Reads who calls, which takes longer than some calls do."""


RequestT = TypeVar("RequestT", bound="Asked")
ResponseT = TypeVar("ResponseT")
OfOneT = TypeVar(
    "OfOneT",
    g.JoinGroupResponse,
    g.SyncGroupResponse,
    g.HeartbeatResponse,
    g.ConsumerGroupHeartbeatResponse,
)
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
    brings_target: ClassVar[bool] = False
    """Whether what a group waits for is computed by a call of this kind of any member."""

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

    def limited(self, request: RequestT) -> bool:
        """Return whether limits of principals count this call."""
        del request
        return True

    def cached(
        self, hearing: Hearing, request: RequestT, who: Callable[[], str]
    ) -> ResponseT | None:
        """Return the cached answer to a heartbeat; None: this call has to be decided.

        `hearing`: from `Actors.hearing`, asked in this turn of the loop. `who`: as of `refusal`.
        """
        del hearing, request, who
        return None

    def carries(self, request: RequestT) -> bool:
        """Return whether pushes to the member go to the stream of this call from now on."""
        del request
        return False

    def ends(self, code: int | str) -> bool:
        """Return whether a call that ended so is of no member who can be pushed to."""
        del code
        return False

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

    def name_caller(self, response: ResponseT, who: Callable[[], str]) -> None:
        """Have the response say to whom a part of the call was refused, if any was.

        `who`: reads the principal, as of `refusal`.
        """

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
