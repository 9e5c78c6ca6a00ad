"""What a member calls: all kinds of calls, and the way of a unary one.

The unary methods and the Session stream both take a call from here, so that it means the same on
either. Knows no gRPC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.server.rpc.calls.classic import Heartbeat, Join, Leave, Sync
from holdfast.server.rpc.calls.commit import Commit
from holdfast.server.rpc.calls.consumer_heartbeat import ConsumerHeartbeat
from holdfast.server.rpc.errors import status_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.runtime.groups.actors import Actors
    from holdfast.runtime.groups.pending_calls import Answered
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.access.gate import Gate
    from holdfast.server.rpc.callers import Asker, Callers, Context
    from holdfast.server.rpc.calls.member_call import MemberCall, RequestT, ResponseT
    from holdfast.server.rpc.takeovers import Takeovers
    from holdfast.server.traces.traces import Traces


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
        self.consumer_heartbeat = ConsumerHeartbeat(*needs)

    @property
    def all(self) -> Sequence[MemberCall[Any, Any]]:
        """Every kind."""
        others = (self.leave, self.commit, self.consumer_heartbeat)
        return (self.join, self.sync, self.heartbeat, *others)

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
            got: Answered = await call.ask(kind.command(request, caller, parts))
        response = kind.response(request, got, await kind.results(got.reply))
        kind.name_caller(response, who.principal)
        return response
