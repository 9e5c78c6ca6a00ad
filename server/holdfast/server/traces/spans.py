"""A call that was traced, as a span of OpenTelemetry: its moments are the span's events.

Events, since a child for each moment takes three times as long to make and to send (ADR 37). What
a span tells of a call is listed here, and it is all: no group, member, principal or address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.sdk.resources import Resource

    from holdfast.server.traces.traces import CallTrace

FAULTS: Final = frozenset(
    {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
    | {"UNKNOWN_SERVER_ERROR"}
)
"""Codes that are a server's failure, after OpenTelemetry's conventions for gRPC; others are answers
that a caller has to expect."""
_FLAGS: Final = TraceFlags(TraceFlags.SAMPLED)
_SCOPE: Final = InstrumentationScope("holdfast.server")


def span_of(call: CallTrace, resource: Resource, at: Callable[[float], int]) -> ReadableSpan:
    """Make the span. `at`: converts seconds of the boot clock to Unix time in nanoseconds."""
    code = StatusCode.ERROR if call.code in FAULTS else StatusCode.UNSET
    return ReadableSpan(
        call.method,
        SpanContext(call.trace_id, call.span_id, is_remote=False, trace_flags=_FLAGS),
        _parent(call),
        resource,
        attributes=_attributes(call),
        events=[Event(name, None, at(moment)) for name, moment in call.seen],
        kind=SpanKind.SERVER,
        status=Status(code),
        start_time=at(call.began),
        end_time=at(call.ended),
        instrumentation_scope=_SCOPE,
    )


def _parent(call: CallTrace) -> SpanContext | None:
    if call.parent is None:
        return None
    trace_id, span_id, _ = call.parent
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=_FLAGS)


def _attributes(call: CallTrace) -> dict[str, str | int]:
    service, _, method = call.method.rpartition("/")
    told: dict[str, str | int] = {
        "rpc.system": "grpc",
        "rpc.service": service,
        "rpc.method": method,
        "holdfast.code": call.code,
    }
    if call.stream:
        told["holdfast.stream"] = call.stream
    if call.request_id:
        told["holdfast.request_id"] = call.request_id
    if call.index:
        told["holdfast.index"] = call.index
    return told
