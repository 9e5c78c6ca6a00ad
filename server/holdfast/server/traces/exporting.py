"""The thread that exports traces: it makes spans of calls that have ended and sends them by OTLP.

It looks for calls twice a second, so the loop never wakes it, and rests after each batch, so that
it takes a tenth of a core at most, however many calls are traced: what finds no room meanwhile is
left out. A batch that the collector does not take is lost, after a few tries within seconds. Needs
OpenTelemetry, which only a node with [traces] loads.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Final

import grpc
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SpanExportResult

from holdfast.server.config.node_config import ConfigError
from holdfast.server.security.certificate_facts import certificates_in, pair_problem
from holdfast.server.traces.spans import span_of
from holdfast.server.traces.traces import wall_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from opentelemetry.sdk.trace.export import SpanExporter

    from holdfast.server.config.node_config import NodeConfig
    from holdfast.server.config.trace_settings import TraceSettings
    from holdfast.server.traces.traces import CallTrace, Traces

logger = logging.getLogger(__name__)

LOOK_S: Final = 0.5
"""How often the thread looks for calls that have ended, and at the files."""
BATCH: Final = 256
"""Calls in one message to the collector."""
REST: Final = 9
"""After each batch it rests so many times the processor time that the batch took."""
SEND_S: Final = 5
"""How long a batch may take with all its tries."""
_EXPORTERS: Final = "opentelemetry.exporter.otlp.proto.grpc.exporter"
"""The logger of the exporter."""
STOP_S: Final = 2.0
"""How long a node that stops waits for the calls that are left."""


class TraceExport:
    """Sends what `Traces` keeps to one collector."""

    def __init__(
        self,
        settings: TraceSettings,
        resource: Resource,
        connect: Callable[[TraceSettings], SpanExporter] | None = None,
    ) -> None:
        """Read the files of [traces]; raises ConfigError. `resource`: says which node this is."""
        self._settings, self._resource = settings, resource
        self._connect = connect or connected
        self._seen = _looks_of(settings.files)
        self._exporter = self._connect(settings)
        self._stopping, self._takes = threading.Event(), True
        self._words = _Words()
        self._thread: threading.Thread | None = None

    def start(self, traces: Traces) -> None:
        """Begin to export what is kept there."""
        logger.info(
            "exporting traces to %s: %g of the calls, and those whose callers say so",
            *(self._settings.endpoint, self._settings.sample_ratio),
        )
        run = partial(self._run, traces)
        self._thread = threading.Thread(target=run, name="trace-export", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Export what is left, for STOP_S at most."""
        self._stopping.set()
        if self._thread is None:
            return  # the node never served
        await asyncio.to_thread(self._thread.join, STOP_S)
        if self._thread.is_alive():  # it waits for a collector that does not answer
            await asyncio.to_thread(self._exporter.shutdown)

    # --- in the thread ---

    def _run(self, traces: Traces) -> None:
        rest = LOOK_S
        while not self._stopping.wait(rest):
            self._renew()
            began, calls = time.thread_time(), traces.take(BATCH)
            self._send(traces, calls)
            full = len(calls) == BATCH
            rest = (time.thread_time() - began) * REST if full else LOOK_S
        while (calls := traces.take(BATCH)) and self._send(traces, calls):
            pass
        self._exporter.shutdown()

    def _send(self, traces: Traces, calls: Sequence[CallTrace]) -> bool:
        """Send a batch and count it; return whether the collector took it."""
        if not calls:
            return True
        result = SpanExportResult.FAILURE
        try:
            at = wall_ns(traces.now)
            result = self._exporter.export([span_of(call, self._resource, at) for call in calls])
        except Exception:
            logger.exception("a defect: traces could not be exported; it goes on")
        taken = result is SpanExportResult.SUCCESS
        if taken:
            traces.exported += len(calls)
        else:
            traces.failed += len(calls)
        self._tell(taken, traces.failed)
        return taken

    def _tell(self, taken: bool, failed: int) -> None:  # noqa: FBT001 - the last outcome
        """Log when the collector begins to take nothing, and when it takes spans again."""
        if taken != self._takes:
            self._takes = taken
            where = self._settings.endpoint
            if taken:
                logger.info("%s takes traces again; %d were lost since the start", where, failed)
            else:
                logger.warning(
                    "%s takes no traces; they are lost until it does: %s", where, self._words.last
                )

    def _renew(self) -> None:
        """Connect anew if a file of [traces] is another; unusable ones change nothing."""
        looks = _looks_of(self._settings.files)
        if looks == self._seen:
            return
        self._seen = looks
        try:
            new = self._connect(self._settings)
        except ConfigError as error:
            logger.error("the files of [traces] stay as they were: %s", error)  # noqa: TRY400 - the sentence says it all
            return
        except Exception:
            logger.exception("a defect: the files of [traces] could not be read again; it goes on")
            return
        self._exporter.shutdown()
        self._exporter = new
        logger.info("the files of [traces] were read again")


class _Words(logging.Filter):
    """Keeps what the exporter says of its last failure, out of the log: it says so each time."""

    def __init__(self) -> None:
        super().__init__()
        self.last = "it gives no reason"
        logging.getLogger(_EXPORTERS).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Let nothing pass."""
        self.last = record.getMessage()
        return False


def resource_of(config: NodeConfig, version: str) -> Resource:
    """Say which node this is; OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME may say more."""
    return Resource.create(
        {
            "service.name": "holdfast",
            "service.namespace": config.cluster_id,
            "service.instance.id": config.name,
            "service.version": version,
        }
    )


def connected(settings: TraceSettings) -> SpanExporter:
    """Return what sends spans to the collector; it connects when it is first used.

    Raises ConfigError for files that cannot be used. Headers come from OTEL_EXPORTER_OTLP_HEADERS,
    since they may hold a secret.
    """
    return OTLPSpanExporter(
        endpoint=settings.endpoint,
        insecure=not settings.secure,
        credentials=_credentials(settings) if settings.secure else None,
        timeout=SEND_S,
    )


def _credentials(settings: TraceSettings) -> grpc.ChannelCredentials:
    """Read the files; raises ConfigError for any that gRPC would not take.

    It ends the process for an empty certificate or key, as a file is that is being replaced.
    """
    ca, certificate, key = (
        _read(path) if path else None for path in (settings.ca, settings.certificate, settings.key)
    )
    try:
        if ca is not None:
            certificates_in(ca)
    except ValueError as error:
        raise ConfigError(f"traces.ca: {error}. Correct {settings.ca}") from error
    if certificate is None or key is None:
        return grpc.ssl_channel_credentials(ca)
    if problem := pair_problem(certificate, key):
        raise ConfigError(f"traces.key and traces.certificate: {problem}. Correct the files")
    return grpc.ssl_channel_credentials(ca, key, certificate)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}. Correct the path in [traces], or its "
            "permissions"
        ) from error


def _looks_of(files: Sequence[Path]) -> list[tuple[int, int, int] | None]:
    """Return what changes with the content of each file; None for one that is not there."""
    return [_look_of(path) for path in files]


def _look_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
