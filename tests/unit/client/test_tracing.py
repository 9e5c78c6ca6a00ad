"""A program's own calls tell nodes of its trace; what a member does by itself does not."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from opentelemetry import trace as api
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from holdfast.client import _tracing as tracing
from holdfast.client._rpc.caller import Caller
from holdfast.client.errors import HoldfastError
from holdfast.server.config.address import Address
from holdfast.server.config.trace_settings import TraceSettings
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import offset_pb2 as o
from unit.server.nodes import commit, join, served, topic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from opentelemetry.trace import Tracer

    from holdfast.server.traces.traces import CallTrace
    from unit.server.nodes import Served

NEVER = TraceSettings(Address("127.0.0.1", 4317), secure=False, sample_ratio=0)
ALWAYS = TraceSettings(Address("127.0.0.1", 4317), secure=False, sample_ratio=1)


class Program:
    """A program that uses OpenTelemetry: its tracer, and its spans that have ended."""

    def __init__(self) -> None:
        self.spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.spans))
        self.tracer: Tracer = provider.get_tracer("the program")

    def named(self, name: str) -> list[tuple[int, int]]:
        """Trace and span of each span of this name."""
        found = (span for span in self.spans.get_finished_spans() if span.name == name)
        return [(span.context.trace_id, span.context.span_id) for span in found]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    made = Program()
    monkeypatch.setattr(api, "get_tracer", lambda _: made.tracer)
    return made


@asynccontextmanager
async def called(
    traces: TraceSettings = NEVER, *, on_streams: bool = False
) -> AsyncIterator[tuple[Served, Caller]]:
    """A node that follows calls, and a client of it."""
    async with served(traces=traces) as node:
        await topic(node)
        caller = Caller(node.address, on_streams=on_streams)
        try:
            yield node, caller
        finally:
            await caller.close()


def followed(node: Served) -> list[CallTrace]:
    assert node.node.traces is not None
    return node.node.traces.take(100)


@pytest.mark.parametrize("on_streams", [False, True])
def test_a_call_is_one_trace_from_the_programs_span_to_the_nodes(
    program: Program, *, on_streams: bool
) -> None:
    """By metadata, and on a Session stream in the call itself."""

    async def story() -> list[CallTrace]:
        async with called(on_streams=on_streams) as (node, caller):
            with program.tracer.start_as_current_span("work"):
                await caller.call(commit(7), o.OffsetCommitResponse)
            await caller.call(commit(8), o.OffsetCommitResponse)
            return followed(node)

    first, second = asyncio.run(story())
    ((trace_id, _),) = program.named("work")
    calls = program.named("holdfast.v1.OffsetService/OffsetCommit")
    assert first.parent is not None
    assert second.parent is not None
    assert (first.trace_id, first.parent.span_id) == calls[0]
    assert calls[0][0] == trace_id
    assert (second.trace_id, second.parent.span_id) == calls[1]
    assert calls[1][0] != trace_id
    assert {first.stream, second.stream} == {"Session" if on_streams else ""}


def test_the_calls_span_tells_what_was_called_and_that_it_failed(program: Program) -> None:
    async def story() -> None:
        caller = Caller("127.0.0.1:1")
        with pytest.raises(HoldfastError):
            await caller.call(commit(7), o.OffsetCommitResponse, timeout_ms=10)
        await caller.close()

    asyncio.run(story())
    (span,) = program.spans.get_finished_spans()
    assert (span.kind, span.status.status_code) == (SpanKind.CLIENT, StatusCode.ERROR)
    assert dict(span.attributes or {}) == {
        "rpc.system": "grpc",
        "rpc.service": "holdfast.v1.OffsetService",
        "rpc.method": "OffsetCommit",
    }


def test_an_attempt_of_a_member_tells_nothing_of_the_span_it_was_started_in(
    program: Program,
) -> None:
    """Else the trace of a program's start would get a span for each heartbeat, for ever."""

    async def story() -> list[CallTrace]:
        async with called(ALWAYS) as (node, caller):
            followed(node)
            with program.tracer.start_as_current_span("start"):
                await caller.attempt(join(), 10_000)
            return followed(node)

    (trace,) = asyncio.run(story())
    assert trace.parent is None
    assert [span.name for span in program.spans.get_finished_spans()] == ["start"]


def test_a_program_that_has_not_loaded_opentelemetry_says_nothing(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not loaded for it either."""
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")

    async def story() -> list[CallTrace]:
        async with called(ALWAYS) as (node, caller):
            followed(node)
            await caller.call(a.ListTopicsRequest(), a.ListTopicsResponse)
            return followed(node)

    (trace,) = asyncio.run(story())
    assert trace.parent is None
    assert program.spans.get_finished_spans() == ()
    assert "opentelemetry.trace" not in sys.modules


def test_without_a_provider_there_is_no_place_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of the program has loaded the API, and nobody records spans."""
    nobody = api.NoOpTracerProvider().get_tracer("x")
    monkeypatch.setattr(api, "get_tracer", lambda _: nobody)
    seen: list[str] = []

    class Calls:
        @tracing.traced
        async def call(self, request: a.ListTopicsRequest) -> None:
            del request
            seen.append(tracing.place())

    asyncio.run(Calls().call(a.ListTopicsRequest()))
    assert seen == [""]
    assert tracing.placed((("a", "b"),)) == (("a", "b"),)
