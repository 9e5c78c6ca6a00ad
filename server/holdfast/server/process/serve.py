"""Run a node in this process, from its configuration to a graceful end.

A start that fails ends here as `CannotStart` with one sentence.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
from typing import TYPE_CHECKING

from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.raft.api import EngineStopped, NodeRemoved, RaftError, Settings
from holdfast.raft.open import LogConfig
from holdfast.raft.transport.listening import TransportFailed
from holdfast.runtime.background.history_retention import HistoryRetention
from holdfast.runtime.replica.open import ReplicaConfig, open_replica
from holdfast.server.config import cluster_file
from holdfast.server.config.node_config import CannotStart, ExtraMissing
from holdfast.server.http.serving import Http
from holdfast.server.metrics.gathering import Sources, taken
from holdfast.server.metrics.history_outlook import HistoryOutlook
from holdfast.server.metrics.metrics import Metrics
from holdfast.server.metrics.pulse import Pulse
from holdfast.server.process import gc_tuning
from holdfast.server.process.node import Node
from holdfast.server.process.open_files import peer_connections_max
from holdfast.server.process.ports import bind
from holdfast.server.process.supervisor import Supervisor
from holdfast.server.rpc.nodes import BUILD, VERSION
from holdfast.server.security.certificate_watch import CertificateWatch
from holdfast.storage.errors import (
    DirectoryRefused,
    Refusal,
    StateBusy,
    StateContradicted,
    StorageError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from pathlib import Path

    import grpc

    from holdfast.raft.transport.tls import PeerTls
    from holdfast.runtime.replica.open import OpenReplica
    from holdfast.server.config.node_config import NodeConfig
    from holdfast.server.process.token_port import TokenPort
    from holdfast.server.traces.exporting import TraceExport
    from holdfast.storage.directory.data_directory import DataDirectory

logger = logging.getLogger(__name__)


async def serve(
    config: NodeConfig,
    shared: Path,
    opening: Future[DataDirectory],
    failpoints: Path | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; `shared`: path of cluster.json, if a local cluster runs.

    `opening`: has the node's data directory when it is checked. `failpoints`: for tests only.
    Raises CannotStart; EngineStopped if the log ends, or if the last snapshot contradicts the state
    on disk; NodeRemoved if this node was removed from the cluster (S25 e).
    """
    watch = CertificateWatch(config, config.tls) if config.tls else None
    server = bind(config, watch.client_port.credentials if watch else None)
    tokens, traces = _token_port(config, watch), _trace_export(config)
    log = _log_config(config, watch.peer_tls if watch else None, failpoints)
    async with Http(config) as http:
        opened = await _open(config, ReplicaConfig(log, config.disk_reserve_bytes), opening)
        await _serve(config, shared, opened, server, http, watch, tokens, traces)


async def _serve(
    config: NodeConfig,
    shared: Path,
    opened: OpenReplica,
    server: grpc.aio.Server,
    http: Http,
    watch: CertificateWatch | None,
    tokens: TokenPort | None,
    traces: TraceExport | None,
) -> None:
    """Serve with what is open, until the end."""
    servers = [server, *([tokens.server] if tokens else [])]
    node = Node(
        *(config, opened.replica, opened.history, opened.backups, servers),
        *(opened.peer_troubles, opened.peer_builds, opened.recovering),
    )
    node.facts.syncs = opened.log.syncs
    supervisor = Supervisor(os.environ, lambda: opened.replica.status().ticks)
    supervisor.listen(opened.replica)
    asked = _until_signal()
    retention = HistoryRetention(opened.replica, node.actors, opened.cutting)
    retention.listen()
    outlook = _outlook(config, opened, retention)
    node.facts.outlook = outlook
    sampling = asyncio.create_task(outlook.run())
    try:
        node.revocations.start(opened.log.refuse_certificates)
        http.opened(
            opened.replica,
            _metrics(config, opened, node, outlook),
            must_recover=lambda: node.actors.must_recover,
            caught_up=node.catch_up.is_done,
            refusal=node.metrics_refusal,
            revoked=node.revocations.problem,
        )
        await node.start()
        http.serving()
        if watch:
            watch.start(opened.log.replace_tls, http.renew, node.open_streams.certificates)
        if tokens:
            tokens.start()
        if traces and node.traces:
            traces.start(node.traces)
        gc_tuning.settle()
        await asyncio.to_thread(_enter, shared, config)
        supervisor.serving()
        await asyncio.wait((asked, node.stopped_because), return_when=asyncio.FIRST_COMPLETED)
        broken = node.stopped_because.done()  # read now, since our own close ends the log, too
        supervisor.stopping()
        http.stopping()
        await node.stop()
    finally:
        retention.on_not_leading()
        sampling.cancel()
        if watch:
            watch.stop()
        if tokens:
            tokens.stop()
        if traces:
            await traces.stop()
        contradicted = await _close(opened)
    if broken and opened.log.was_removed:
        await asyncio.to_thread(cluster_file.leave_out, shared, {config.name})
        raise NodeRemoved(node.stopped_because.result())
    if broken:
        raise EngineStopped(node.stopped_because.result())
    if contradicted:
        raise EngineStopped(contradicted)
    logger.info("stopped")


def _enter(shared: Path, config: NodeConfig) -> None:
    """Enter this node into the file of a local cluster, if one runs here."""
    node = cluster_file.NodeEntry(
        config.name,
        str(config.client_address),
        str(config.peer_address),
        os.getpid(),
        str(shared.parent / config.name),
    )
    http = str(config.http_address) if config.http_address else ""
    cluster_file.enter(shared, config.cluster_id, node, http)


def _token_port(config: NodeConfig, watch: CertificateWatch | None) -> TokenPort | None:
    """Bind the port for tokens, if there is to be one; raises ConfigError or CannotStart."""
    if watch is None or config.tokens is None:
        return None
    try:
        from holdfast.server.process.token_port import TokenPort  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            f"[tokens] is given, and {error.name} is not installed, which checks tokens: "
            "install it with `pip install 'holdfast[tokens]'`, or take [tokens] out"
        ) from error
    return TokenPort(config, config.tokens, watch.token_port.credentials)


def _trace_export(config: NodeConfig) -> TraceExport | None:
    """Make what exports traces, if any are to be; raises ConfigError or ExtraMissing."""
    if config.traces is None:
        return None
    try:
        from holdfast.server.traces.exporting import TraceExport, resource_of  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            f"traces.endpoint is given, and {error.name} is not installed, which exports traces: "
            "install it with `pip install 'holdfast[traces]'`, or take [traces] out"
        ) from error
    return TraceExport(config.traces, resource_of(config, VERSION))


def _outlook(
    config: NodeConfig, opened: OpenReplica, retention: HistoryRetention
) -> HistoryOutlook:
    directory = opened.directory
    return HistoryOutlook(
        *(opened.replica, opened.cutting, retention, directory.path, config.disk_reserve_bytes),
        lambda: taken(directory.journal_path) + taken(directory.state_path),
        lambda: opened.fetching.known_gaps,
        lambda: opened.fetching.problem or opened.sealing.problem,
    )


def _metrics(
    config: NodeConfig, opened: OpenReplica, node: Node, outlook: HistoryOutlook
) -> Metrics:
    replica, directory = opened.replica, opened.directory
    return Metrics(
        Sources(
            replica,
            node.catch_up.is_done,
            node.call_counts,
            node.applied_counts,
            Pulse(replica.status, opened.log.tick_lag_s),
            replica.commits,
            opened.log.syncs,
            opened.log.waiting_for_peers,
            {
                **node.gauges(),
                "holdfast_changes_waiting": lambda: replica.waiting()[0],
                "holdfast_entries_under_way": lambda: replica.waiting()[1],
            },
            directory.path,
            {
                "journal": directory.journal_path,
                "state": directory.state_path,
                "segments": directory.segments_path,
            },
            config.tls,
            outlook,
        )
    )


async def _close(opened: OpenReplica) -> str | None:
    """Close log and directory; return how the last snapshot contradicts the state on disk, if so.

    A snapshot that just could not be written costs time at the next start. One that no course of
    the log leads to is an alarm: the state forked, or went back in time (S3, S8).
    """
    try:
        await opened.close()
    except StateContradicted as error:
        logger.critical("alarm: %s", error)
        return str(error)
    except StateBusy as error:
        logger.error("%s", error)  # noqa: TRY400 - the sentence says it all
    except StorageError as error:
        logger.error("%s The next start takes what this snapshot lacks from the journal", error)  # noqa: TRY400 - the sentence says it all
    return None


async def _open(
    config: NodeConfig, replica: ReplicaConfig, opening: Future[DataDirectory]
) -> OpenReplica:
    try:
        return await open_replica(replica, await asyncio.wrap_future(opening))
    except DirectoryRefused as error:
        empty = error.refusal is Refusal.EMPTY
        hint = (_EMPTY if replica.log.peers else _EMPTY_ALONE) if empty else ""
        raise CannotStart(f"{error}{hint}") from error
    except (StorageError, TransportFailed, RaftError) as error:
        raise CannotStart(str(error)) from error
    except OSError as error:
        raise CannotStart(
            f"cannot use the data directory {config.data_dir}: {error.strerror or error}. Correct "
            "node.data_dir, its permissions, or the disk"
        ) from error


_EMPTY = (
    " If this node's disk was lost or replaced, `--rebuild` lets it fetch everything from its "
    "peers, a majority of which must have kept their data. So does the first start of a node that "
    "is added to a cluster. Only a cluster that is new begins with `--bootstrap`, on every node "
    "alike"
)
_EMPTY_ALONE = (
    " A cluster of one has no peer to fetch anything from: put its data back. Only a cluster that "
    "is new begins with `--bootstrap`"
)


def _log_config(config: NodeConfig, tls: PeerTls | None, failpoints: Path | None) -> LogConfig:
    own = config.peer(config.name)
    return LogConfig(
        cluster_id=config.cluster_id,
        node_id=config.name,
        listen=str(config.peer_address),
        peers={p.name: str(p.peer_address) for p in config.peers if p.name != config.name},
        tls=tls,
        settings=Settings(
            heartbeat=config.heartbeat_ms / 1000,
            election_min=config.election_min_ms / 1000,
            election_max=config.election_max_ms / 1000,
            # The largest value allowed; the replica keeps to the setting in force, which is logged.
            entry_bytes_max=REGISTRY["log.entry_bytes_max"].most,
        ),
        connections_max=peer_connections_max(len(config.peers)),
        connection_seconds=config.tls.connection_age_ms / 1000 if config.tls else math.inf,
        reached_at=str(own.peer_address) if own else "",
        clients_at=str(own.client_address) if own else "",
        build=BUILD,
        failpoints=failpoints,
    )


def _until_signal() -> asyncio.Future[None]:
    """Return a future that the first SIGTERM or SIGINT sets; a second ends the process at once."""
    loop = asyncio.get_running_loop()
    asked: asyncio.Future[None] = loop.create_future()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _asked, loop, number, asked)
    return asked


def _asked(
    loop: asyncio.AbstractEventLoop, number: signal.Signals, asked: asyncio.Future[None]
) -> None:
    remove: Callable[[int], bool] = loop.remove_signal_handler
    remove(number)
    if not asked.done():
        asked.set_result(None)
