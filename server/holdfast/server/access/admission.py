"""Admits calls to the services: every method is registered behind this check.

A node's certificate is no client's, whatever it asks for. A call about one thing is refused here;
one about several, and the calls on streams, are checked by the service that takes them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.server.access.table import SHOWN, WHOLE, line_of
from holdfast.server.rpc.callers import end, has_code, refusal
from holdfast.server.rpc.errors import CallFailed, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

    from holdfast.server.access.gate import Gate
    from holdfast.server.access.table import Line, Need
    from holdfast.server.rpc.callers import Callers, Context

    Serve = Callable[[Any, Context], Any]

OURS: Final = "holdfast.v1."
"""The services that have lines in the table; health and reflection tell nothing of the cluster."""


class Admission:
    """Wraps the methods of services."""

    def __init__(self, gate: Gate, callers: Callers) -> None:
        self._gate, self._callers = gate, callers

    def unary(self, method: str, serve: Serve, respond: Callable[..., Message]) -> Serve:
        """Wrap a method that takes one request and gives one response, made by `respond`."""
        line, call, coded = line_of(method), method.partition(".")[2], has_code(respond)

        async def run(request: Any, context: Context) -> Any:  # noqa: ANN401 - of any method
            try:
                self._check(line, call, request, context)
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
        line, call = line_of(method), method.partition(".")[2]

        async def run(asked: Any, context: Context) -> None:  # noqa: ANN401 - of any method
            try:
                self._check(line, call, asked, context)
            except (Refused, CallFailed) as error:
                await end(context, error)
            await serve(asked, context)

        return run

    def _check(self, line: Line, call: str, request: Any, context: Context) -> None:  # noqa: ANN401 - as above
        """Raise CallFailed for a node's certificate, Refused for what the caller may not do."""
        self._callers.refuse_nodes(context)
        if line.how not in {WHOLE, SHOWN} or self._gate.open:
            return
        need = _need(line, request)
        if need is not None:
            name = getattr(request, need.field) if need.field else ""
            self._gate.check(self._callers.principal(context), call, need, name)


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
