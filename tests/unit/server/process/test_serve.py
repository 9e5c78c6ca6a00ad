"""How a node ends: what it logs, and whether its exit code says that it must not go on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys
from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from holdfast.raft.api import EngineStopped
from holdfast.server.config.node_config import ExtraMissing
from holdfast.server.http.serving import Http
from holdfast.server.process import serve as served
from holdfast.storage.errors import StateContradicted, StateFailed

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.storage.errors import StorageError


REFUSE_PEERS = object()
"""What has the peer port refuse certificates."""


class NodeThatIsAsked:
    """A node that serves, and stops when it is asked to."""

    happened: ClassVar[list[object]] = []

    def __init__(self, *_arguments: object) -> None:
        self.stopped_because: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.actors = None
        self.facts = SimpleNamespace()
        self.catch_up = SimpleNamespace(is_done=None)
        self.happened.clear()
        self.revocations = SimpleNamespace(
            start=self.happened.append, problem=lambda shown: f"{shown} is revoked"
        )

    def metrics_refusal(self, principal: str) -> str:
        """Refuse nobody."""
        return principal[:0]

    async def start(self) -> None:
        """Note when clients begin to be served."""
        self.happened.append("serves")

    async def stop(self) -> None: ...


class HttpThatIsAsked(Http):
    """The HTTP port of such a node, which shows nothing."""

    def opened(self, *_arguments: object, **told: object) -> None:
        """Note what it asks about the certificates that it is shown."""
        NodeThatIsAsked.happened.append(told["revoked"])


def serve_until_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at_close: StorageError
) -> None:
    """Run a process to its graceful end; its last snapshot fails with this error."""

    async def close() -> None:
        raise at_close

    async def opened(*_arguments: object) -> Any:  # noqa: ANN401 - what the process holds open
        replica = SimpleNamespace(subscribe=lambda **_: None)
        told = ("peer_troubles", "peer_builds", "backups", "recovering", "cutting", "history")
        log = SimpleNamespace(syncs=None, refuse_certificates=REFUSE_PEERS)
        return SimpleNamespace(close=close, replica=replica, log=log, **dict.fromkeys(told))

    def asked() -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    nothing = SimpleNamespace(settle=lambda: None)
    stands_in = {
        "bind": lambda *_: None,
        "_log_config": lambda *_: None,
        "_open": opened,
        "Node": NodeThatIsAsked,
        "Http": HttpThatIsAsked,
        "_metrics": lambda *_: None,
        "_outlook": lambda *_: SimpleNamespace(run=lambda: asyncio.sleep(0)),
        "_until_signal": asked,
        "gc_tuning": nothing,
        "_enter": lambda *_: None,
    }
    for name, instead in stands_in.items():
        monkeypatch.setattr(served, name, instead)
    config: Any = SimpleNamespace(
        data_dir=tmp_path,
        disk_reserve_bytes=None,
        name="a",
        cluster_id="c",
        http_address=None,
        tls=None,
        tokens=None,
        traces=None,
    )
    asyncio.run(served.serve(config, tmp_path, Future()))


def test_s3_a_contradicted_snapshot_at_the_end_is_an_alarm_and_no_graceful_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The state forked: a start after it would go on with what contradicts the log."""
    with pytest.raises(EngineStopped, match="the term went back"):
        serve_until_asked(monkeypatch, tmp_path, StateContradicted("the term went back"))

    (alarm,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert alarm.levelno == logging.CRITICAL
    assert "the term went back" in alarm.getMessage()
    assert "The next start" not in alarm.getMessage()


def test_a_last_snapshot_that_fails_is_taken_up_by_the_next_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    serve_until_asked(monkeypatch, tmp_path, StateFailed(tmp_path, "snapshot", "an error"))

    (told,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert told.levelno == logging.ERROR
    assert "The next start takes what this snapshot lacks" in told.getMessage()


def test_every_port_asks_for_revoked_certificates_before_a_node_serves_with_tokens_or_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """ADR 31: the client port asks by itself, the peer port and the HTTP port have to be told."""
    with contextlib.suppress(EngineStopped):
        serve_until_asked(monkeypatch, tmp_path, StateFailed(tmp_path, "snapshot", "an error"))

    peers, http, last = NodeThatIsAsked.happened
    assert peers is REFUSE_PEERS
    assert callable(http)
    assert http("this one") == "this one is revoked"
    assert last == "serves"


HEAVY = ("pyarrow", "numpy", "pyspark", "pandas", "aiohttp")
"""Modules of Parquet, Spark and HTTP: slow to load, for work that a start never does."""
LOADED_MEANWHILE = (
    *("asyncio", "ssl", "cryptography", "google", "grpc", "pysyncobj", "holdfast.raft"),
    *("holdfast.server.rpc", "holdfast.runtime.groups"),
)
"""What a node loads while its directory is checked, so nothing before the check may load it."""


def loaded_of(names: tuple[str, ...], module: str) -> str:
    """Which of these modules a process has that imported a module of ours."""
    told = f"import sys, {module}; print({{*sys.modules}} & {{*{names!r}}})"
    run = subprocess.run(
        [sys.executable, "-P", "-c", told], capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def test_what_a_node_needs_to_start_loads_no_heavy_module() -> None:
    """Segments are sealed in a child process and read in threads; these load what they need."""
    assert loaded_of(HEAVY, "holdfast.server.process.serve") == "set()"


def test_the_check_of_a_directory_begins_before_most_of_a_node_is_loaded() -> None:
    """The child process that checks and the loading take about equally long: they run together."""
    for module in ("node", "node_process"):
        assert loaded_of(LOADED_MEANWHILE, f"holdfast.cli.commands.{module}") == "set()"


@pytest.mark.parametrize(
    ("table", "package", "extra"),
    [
        ("traces", "opentelemetry.exporter.otlp.proto.grpc.trace_exporter", "holdfast[traces]"),
        ("tokens", "jwt", "holdfast[tokens]"),
    ],
)
def test_a_table_that_needs_an_extra_names_it(
    monkeypatch: pytest.MonkeyPatch, table: str, package: str, extra: str
) -> None:
    """The node does not start without what its file asks for, and says which command helps."""
    for name in [each for each in sys.modules if each.startswith(("holdfast.server.", "jwt"))]:
        if name.endswith(("exporting", "token_port", "token_keys", "tokens", "token_door")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    config: Any = SimpleNamespace(**{"traces": None, "tokens": None, table: SimpleNamespace()})
    begin: Any = {
        "traces": lambda: served._trace_export(config),
        "tokens": lambda: served._token_port(config, SimpleNamespace()),  # type: ignore[arg-type]  # unread
    }[table]

    with pytest.raises(ExtraMissing) as error:
        begin()
    assert f"pip install '{extra}'" in str(error.value)
    assert f"[{table}]" in str(error.value)
