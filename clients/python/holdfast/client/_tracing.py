"""The place of a call in a trace, for programs that use OpenTelemetry; others pay a look-up.

A call that the program makes itself has a span of its own, in which its tries lie, and tells nodes
of it. What a member does by itself (joins, heartbeats) belongs to no call of the program, and tells
nothing: the span in which a member was started may be over for days. OpenTelemetry is never loaded
here: in a program that has not loaded it nobody is in a trace. Knows no node and sends nothing.
"""

from __future__ import annotations

import functools
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from google.protobuf.message import Message

    Metadata = tuple[tuple[str, str], ...]

CallT = TypeVar("CallT", bound="Callable[..., Awaitable[Any]]")
KEY: Final = "traceparent"
_API: Final = "opentelemetry.trace"
_PLACE: ContextVar[str] = ContextVar("traceparent", default="")


def place() -> str:
    """Return the `traceparent` of the call that is made now; "": it is in no trace."""
    return _PLACE.get()


def placed(metadata: Metadata) -> Metadata:
    """Add the place of the call that is made now to its metadata."""
    where = place()
    return (*metadata, (KEY, where)) if where else metadata


def traced(call: CallT) -> CallT:
    """Wrap what makes a program's call, whose first argument is the request."""

    @functools.wraps(call)
    async def run(self: object, request: Message, *rest: object, **named: object) -> Any:  # noqa: ANN401 - as the call
        api: Any = sys.modules.get(_API)
        if api is None:
            return await call(self, request, *rest, **named)
        service, method = _names(request)
        with api.get_tracer("holdfast.client").start_as_current_span(
            f"{service}/{method}",
            kind=api.SpanKind.CLIENT,
            attributes={"rpc.system": "grpc", "rpc.service": service, "rpc.method": method},
        ) as span:
            before = _PLACE.set(_written(span.get_span_context()))
            try:
                return await call(self, request, *rest, **named)
            finally:
                _PLACE.reset(before)

    return cast("CallT", run)


def _names(request: Message) -> tuple[str, str]:
    """Return service and method; each file of the contract has one service."""
    (service,) = request.DESCRIPTOR.file.services_by_name.values()
    return service.full_name, request.DESCRIPTOR.name.removesuffix("Request")


def _written(span: Any) -> str:  # noqa: ANN401 - OpenTelemetry's SpanContext
    """Write a span as W3C's Trace Context does; "" if nobody records or follows it."""
    if not span.is_valid:
        return ""
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}"
