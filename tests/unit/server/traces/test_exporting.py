"""The export: what a collector gets, what is lost and counted, and that nobody waits for it."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent import futures
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as wire
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as services
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from harness.poll import until
from holdfast.server.config.address import Address
from holdfast.server.config.node_config import ConfigError
from holdfast.server.config.trace_settings import TraceSettings
from holdfast.server.security.certificates import issue, make_authority
from holdfast.server.traces import exporting
from holdfast.server.traces.exporting import BATCH, TraceExport, connected, resource_of
from holdfast.server.traces.traces import Traces
from unit.server.nodes import config

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

    from holdfast.server.config.node_config import Tls
    from holdfast.server.security.certificates import Authority

SETTINGS = TraceSettings(Address("127.0.0.1", 1), secure=False, sample_ratio=1)
RESOURCE = Resource({"service.name": "holdfast"})


class Kept(SpanExporter):
    """An exporter in this process; `fails`: it takes nothing, or breaks."""

    def __init__(self, fails: str = "") -> None:
        self.batches: list[Sequence[ReadableSpan]] = []
        self.threads: set[str] = set()
        self.fails, self.is_shut = fails, False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.threads.add(threading.current_thread().name)
        if self.fails == "breaks":
            raise RuntimeError("broken")
        self.batches.append(spans)
        return SpanExportResult.FAILURE if self.fails else SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.is_shut = True


class Collector(services.TraceServiceServicer):
    """A collector that keeps the names of what it gets, by the instance that sends it."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str]] = []

    def Export(  # noqa: N802 - gRPC's name
        self, request: wire.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> wire.ExportTraceServiceResponse:
        del context
        for one in request.resource_spans:
            told = {each.key: each.value.string_value for each in one.resource.attributes}
            spans = [span.name for scope in one.scope_spans for span in scope.spans]
            self.got += [(told["service.instance.id"], name) for name in spans]
        return wire.ExportTraceServiceResponse()


@contextmanager
def listening(
    credentials: grpc.ServerCredentials | None = None,
) -> Iterator[tuple[Collector, int]]:
    """A collector on 127.0.0.1, and its port."""
    collector, server = Collector(), grpc.server(futures.ThreadPoolExecutor(2))
    services.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]  # generated
    at = "127.0.0.1:0"
    port = server.add_secure_port(at, credentials) if credentials else server.add_insecure_port(at)
    server.start()
    try:
        yield collector, port
    finally:
        server.stop(None).wait()


def followed(count: int) -> Traces:
    """So many calls that have ended."""
    traces = Traces(1)
    for _ in range(count):
        another(traces)
    return traces


def another(traces: Traces) -> None:
    """One more call that has ended."""
    trace = traces.begin("s/m", None)
    assert trace is not None
    trace.end(0)


def _next(traces: Traces, collector: Collector) -> bool:
    """Have another call exported, unless the collector has one."""
    another(traces)
    return bool(collector.got)


def client(authority: Authority, place: Path) -> Tls:
    """A certificate for a node that calls a collector."""
    return issue(authority, place, "node-1", "holdfast://client/node-1", [])


def exported(traces: Traces, exporter: SpanExporter) -> None:
    """Export what is there and stop, as a node does."""
    export = TraceExport(SETTINGS, RESOURCE, lambda _: exporter)
    export.start(traces)
    asyncio.run(export.stop())


def test_a_node_that_stops_exports_what_is_left_in_batches() -> None:
    kept, traces = Kept(), followed(2 * BATCH + 1)
    exported(traces, kept)

    assert [len(batch) for batch in kept.batches] == [BATCH, BATCH, 1]
    assert (traces.exported, traces.failed) == (2 * BATCH + 1, 0)
    assert kept.is_shut


def test_spans_are_made_and_sent_in_a_thread_of_their_own() -> None:
    kept = Kept()
    exported(followed(1), kept)

    assert kept.threads == {"trace-export"}


def test_a_collector_that_is_away_is_told_once_and_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The exporter itself would write two lines for each batch, which comes every few seconds."""
    monkeypatch.setattr(exporting, "LOOK_S", 0.001)
    caplog.set_level("INFO")
    kept, traces = Kept("takes nothing"), followed(1)
    export = TraceExport(SETTINGS, RESOURCE, lambda _: kept)
    export.start(traces)
    until(lambda: traces.failed == 1, "a batch that is not taken")
    another(traces)
    until(lambda: traces.failed == 2, "a second one")
    kept.fails = ""
    another(traces)
    until(lambda: traces.exported == 1, "a batch that is taken")
    logging.getLogger("opentelemetry.exporter.otlp.proto.grpc.exporter").error("Failed to export")
    asyncio.run(export.stop())

    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    assert "takes no traces" in lines[1]
    assert lines[2].endswith("takes traces again; 2 were lost since the start")


@pytest.mark.parametrize("how", ["takes nothing", "breaks"])
def test_what_the_collector_does_not_take_is_lost_and_counted(how: str) -> None:
    """One that stops goes no further: a collector that is away must not hold it up."""
    traces = followed(BATCH + 1)
    exported(traces, Kept(how))

    assert (traces.exported, traces.failed) == (0, BATCH)


def test_the_thread_goes_on_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "LOOK_S", 0.001)
    kept, traces = Kept("breaks"), followed(1)
    export = TraceExport(SETTINGS, RESOURCE, lambda _: kept)
    export.start(traces)
    until(lambda: traces.failed == 1, "a batch that is not taken")
    kept.fails = ""
    another(traces)
    until(lambda: traces.exported == 1, "a batch that is taken")
    asyncio.run(export.stop())


def test_a_node_that_never_served_has_nothing_to_stop() -> None:
    asyncio.run(TraceExport(SETTINGS, RESOURCE, lambda _: Kept()).stop())


def test_a_collector_gets_spans_by_otlp_and_whose_they_are() -> None:
    with listening() as (collector, port):
        settings = replace(SETTINGS, address=Address("127.0.0.1", port))
        export = TraceExport(settings, resource_of(config("node-1"), "1.2.3"))
        traces = followed(2)
        export.start(traces)
        asyncio.run(export.stop())

    assert collector.got == [("node-1", "s/m"), ("node-1", "s/m")]
    assert traces.exported == 2


def test_files_that_are_replaced_count_for_the_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector asks for a certificate of its own authority; the node has another at first."""
    monkeypatch.setattr(exporting, "LOOK_S", 0.01)
    monkeypatch.setattr(exporting, "SEND_S", 1)
    theirs, strangers = make_authority("collector"), make_authority("strangers")
    tls = issue(theirs, tmp_path / "collector", "collector", "collector", ["127.0.0.1"])
    wrong = client(strangers, tmp_path / "wrong")
    right = client(theirs, tmp_path / "right")
    (tmp_path / "wrong" / "ca.pem").write_bytes(tls.ca.read_bytes())
    pair = [(tls.key.read_bytes(), tls.certificate.read_bytes())]
    asks = grpc.ssl_server_credentials(pair, tls.ca.read_bytes(), require_client_auth=True)
    with listening(asks) as (collector, port):
        files = (wrong.ca, wrong.certificate, wrong.key)
        settings = TraceSettings(Address("127.0.0.1", port), True, 1, *files)  # noqa: FBT003 - as the fields stand
        export, traces = TraceExport(settings, resource_of(config(), "1")), followed(1)
        export.start(traces)
        until(lambda: traces.failed == 1, "a batch that is not taken")
        wrong.key.write_bytes(right.key.read_bytes())
        wrong.certificate.write_bytes(right.certificate.read_bytes())
        until(lambda: _next(traces, collector), "a batch by the new certificate")
        asyncio.run(export.stop())


def test_files_that_cannot_be_used_are_told_at_the_start(tmp_path: Path) -> None:
    secure = TraceSettings(
        Address("127.0.0.1", 1), secure=True, sample_ratio=1, ca=tmp_path / "absent.pem"
    )
    with pytest.raises(ConfigError, match=r"cannot read .*absent\.pem.*\[traces\]"):
        connected(secure)
    one = client(make_authority("c"), tmp_path / "one")
    two = client(make_authority("c"), tmp_path / "two")
    with pytest.raises(ConfigError, match=r"traces\.key and traces\.certificate: "):
        connected(replace(secure, ca=one.ca, certificate=one.certificate, key=two.key))


@pytest.mark.parametrize("left", [0, 50])
@pytest.mark.parametrize("name", ["ca", "certificate", "key"])
def test_a_file_that_is_being_written_is_refused_and_not_given_to_grpc(
    tmp_path: Path, name: str, left: int
) -> None:
    """By itself gRPC ends the process for an empty certificate or key."""
    files = client(make_authority("c"), tmp_path)
    half: Path = getattr(files, name)
    half.write_bytes(half.read_bytes()[:left])
    at = Address("127.0.0.1", 1)

    with pytest.raises(ConfigError, match=r"traces\."):
        connected(TraceSettings(at, True, 1, files.ca, files.certificate, files.key))  # noqa: FBT003 - as the fields stand
