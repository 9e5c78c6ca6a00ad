"""What a span tells of a call: times, code, request id, and no name that not everybody may read."""

from __future__ import annotations

from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import SpanKind, StatusCode

from holdfast.server.traces.spans import span_of
from holdfast.server.traces.traceparent import Parent
from holdfast.server.traces.traces import CallTrace, Traces

RESOURCE = Resource({"service.name": "holdfast"})


def ended(code: int | str, parent: Parent | None = None, stream: str = "") -> CallTrace:
    """A call from second 10 to 12 that was decided at 11."""
    now = iter((10.0, 11.0, 12.0))
    traces = Traces(1, now=lambda: next(now))
    trace = CallTrace(traces, "holdfast.v1.GroupService/JoinGroup", parent, stream)
    trace.note("decided")
    trace.end(code)
    return trace


def ns(at: float) -> int:
    return int(at * 1e9)


def test_its_moments_are_events_between_its_begin_and_its_end() -> None:
    span = span_of(ended(0), RESOURCE, ns)

    assert span.name == "holdfast.v1.GroupService/JoinGroup"
    assert (span.start_time, span.end_time) == (10 * 10**9, 12 * 10**9)
    assert [(each.name, each.timestamp) for each in span.events] == [("decided", 11 * 10**9)]
    assert span.kind is SpanKind.SERVER


def test_it_is_a_child_of_the_callers_span_in_the_same_trace() -> None:
    span = span_of(ended(0, Parent(7, 8, sampled=True)), RESOURCE, ns)

    assert span.context.trace_id == 7
    assert span.parent is not None
    assert (span.parent.trace_id, span.parent.span_id, span.parent.is_remote) == (7, 8, True)


def test_without_a_caller_that_says_so_it_begins_a_trace() -> None:
    assert span_of(ended(0), RESOURCE, ns).parent is None


def test_it_tells_these_facts_and_no_others() -> None:
    """A group's, a member's or a principal's name may not be for those who read traces."""
    trace = ended(27, stream="Session")
    trace.request_id, trace.index = "0193", 5

    assert dict(span_of(trace, RESOURCE, ns).attributes or {}) == {
        "rpc.system": "grpc",
        "rpc.service": "holdfast.v1.GroupService",
        "rpc.method": "JoinGroup",
        "holdfast.code": "REBALANCE_IN_PROGRESS",
        "holdfast.stream": "Session",
        "holdfast.request_id": "0193",
        "holdfast.index": 5,
    }


def test_only_the_servers_own_failures_are_errors() -> None:
    """An expected answer such as REBALANCE_IN_PROGRESS would drown them."""
    codes = (0, 27, -1, "INVALID_ARGUMENT", "UNAVAILABLE")
    status = [span_of(ended(code), RESOURCE, ns).status.status_code for code in codes]

    error, unset = StatusCode.ERROR, StatusCode.UNSET
    assert status == [unset, unset, error, unset, error]
