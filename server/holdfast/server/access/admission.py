"""Admits calls to the services: every method is registered behind this check.

A node's certificate is no client's, whatever it asks for. A call about one thing is refused here;
one about several, and the calls on streams, are checked by the service that takes them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.coordinator.model.access import ADMIN, CLUSTER, RANKS
from holdfast.server.access.table import READS, SHOWN, WHOLE, line_of
from holdfast.server.audit.trail import NO_TRAIL
from holdfast.server.rpc.callers import end, has_code, refusal
from holdfast.server.rpc.errors import CallFailed, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

    from holdfast.server.access.gate import Gate
    from holdfast.server.access.principal_limits import PrincipalLimits
    from holdfast.server.access.table import Line, Need
    from holdfast.server.audit.trail import Trail
    from holdfast.server.rpc.callers import Callers, Context
    from holdfast.v1.group_pb2 import ConsumerGroupHeartbeatRequest

    Serve = Callable[[Any, Context], Any]

UNLIMITED: Final = frozenset(
    {"GroupService.Heartbeat"}
    | {"GroupService.HeartbeatStream", "GroupService.Session", "OffsetService.OffsetCommitStream"}
)
"""Calls that limits of principals do not count here: a refused heartbeat would end a session, and
the calls on streams are counted one by one, where they are taken apart."""
RAISING: Final = frozenset(
    {"GroupService.FindCoordinator", "AdminService.DescribeCluster"}
    | {"AdminService.DescribeSettings", "AdminService.AlterSettings"}
)
"""Calls by which a limit is found and raised; who may raise one is never kept from them by it."""
_BEAT: Final = "GroupService.ConsumerGroupHeartbeat"
NAMED_MAX: Final = 3
"""Things that a record of the audit names."""
OURS: Final = "holdfast.v1."
"""The services that have lines in the table; health and reflection tell nothing of the cluster."""


class Admission:
    """Wraps the methods of services."""

    def __init__(
        self,
        gate: Gate,
        callers: Callers,
        check_certificate: Callable[[Context], None],
        limits: PrincipalLimits,
        trail: Trail = NO_TRAIL,
    ) -> None:
        """`check_certificate`: raises CallFailed for a certificate that is revoked."""
        self._gate, self._callers, self._limits, self._trail = gate, callers, limits, trail
        self._check_certificate = check_certificate

    def unary(self, method: str, serve: Serve, respond: Callable[..., Message]) -> Serve:
        """Wrap a method that takes one request and gives one response, made by `respond`."""
        coded = has_code(respond)

        async def run(request: Any, context: Context) -> Any:  # noqa: ANN401 - of any method
            try:
                self._check(method, request, context)
            except Refused as error:
                if coded:
                    return refusal(respond, error)
                await end(context, error)
            except CallFailed as error:
                await end(context, error)
            return await serve(request, context)

        return run

    def stream(self, method: str, serve: Serve) -> Serve:
        """Wrap a method that answers with a stream; the requests of one are no request."""

        async def run(asked: Any, context: Context) -> None:  # noqa: ANN401 - of any method
            try:
                self._check(method, asked, context)
            except (Refused, CallFailed) as error:
                await end(context, error)
            await serve(asked, context)

        return run

    def _check(self, method: str, request: Any, context: Context) -> None:  # noqa: ANN401 - as above
        """Raise CallFailed for a certificate that is no client's, Refused for want of a role."""
        try:
            self._callers.refuse_nodes(context)
            self._check_certificate(context)
        except CallFailed as error:
            principal = self._callers.principal(context)
            self._trail.denied(principal, _call(method), "", error.sentence)
            raise
        if self._limits.on and _counts(method, request):
            self._count(method, self._callers.principal(context), request.ByteSize())
        if self._gate.open:
            return
        line, call = line_of(method), _call(method)
        need = _need(line, request) if line.how in {WHOLE, SHOWN} else None
        if need is not None:
            name = getattr(request, need.field) if need.field else ""
            self._gate.check(self._callers.principal(context), call, need, name, request)
        if method in READS:
            self._note(call, request, context)

    def _count(self, method: str, principal: str, size: int) -> None:
        """Raise CallFailed for a call that is one too many of its principal."""
        if method not in RAISING or not self._gate.rules(principal):
            self._limits.take(principal, size)

    def _note(self, call: str, request: Any, context: Context) -> None:  # noqa: ANN401 - as above
        """Note what an administrator reads: it leaves nothing on the log."""
        principal = self._callers.principal(context)
        if self._gate.granted(principal, CLUSTER) == RANKS[ADMIN]:
            self._trail.read(principal, call, _named(request))


def is_limited(beat: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether a heartbeat counts: as a join or a leave. Else a refusal would end a session.

    A positive epoch is that of a member.
    """
    return beat.member_epoch <= 0


def _counts(method: str, request: Any) -> bool:  # noqa: ANN401 - as above
    if method == _BEAT:
        return is_limited(request)
    return method not in UNLIMITED


def _call(method: str) -> str:
    return method.partition(".")[2]


def _named(request: Any) -> str:  # noqa: ANN401 - as above
    """Return what a request names, for people; of several the first ones."""
    for field in ("group_id", "principal", "groups", "group_ids", "names"):
        if field in request.DESCRIPTOR.fields_by_name and (found := getattr(request, field)):
            if isinstance(found, str):
                return found
            few = ", ".join(getattr(each, "group_id", each) for each in found[:NAMED_MAX])
            return f"{few} and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else few
    return ""


def _need(line: Line, request: Any) -> Need | None:  # noqa: ANN401 - as above
    """Return what a request needs as a whole; None: its answer is only filtered."""
    need = line.need
    if need is None or not need.field:
        return None if line.how == SHOWN else need
    if line.how == WHOLE and line.unnamed is None:
        return need
    if need.field in request.DESCRIPTOR.fields_by_name and request.HasField(need.field):
        return need
    return line.unnamed
