"""Opens a replica: directory, journal, state, engine, transport and thread, in the right order.

What cannot be trusted is set aside and rebuilt from the peers without a vote (S19, S21); what
belongs to another node or cluster is refused. The only file that knows all parts of this layer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import TypeVar

from holdfast.raft.api import Settings
from holdfast.raft.disk_guard import DiskGuard
from holdfast.raft.engine.engine import Engine
from holdfast.raft.fetching import Fetching, FetchingPlace
from holdfast.raft.history import History
from holdfast.raft.peer_options import CONNECTIONS_MAX
from holdfast.raft.replica import Clocks, Replica
from holdfast.raft.sealing import Sealing, SealingPlace
from holdfast.raft.segment_calls import METHOD as SEGMENTS
from holdfast.raft.segment_calls import SegmentSource
from holdfast.raft.snapshots import StateSnapshots
from holdfast.raft.thread import EngineThread
from holdfast.raft.transport.streams import GrpcTransport, PeerTls
from holdfast.storage.directory import DataDirectory
from holdfast.storage.errors import DirectoryRefused, Refusal
from holdfast.storage.failpoints import FailpointJournal
from holdfast.storage.journal import Journal
from holdfast.storage.lmdb_journal import LmdbJournal
from holdfast.storage.notes_file import NotesFile
from holdfast.storage.state_store import StateStore

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """What a replica needs to know. `peers`: the other nodes' peer addresses by node id.

    `bootstrap`: the operator says that this cluster is new. `rebuild`: he says that this disk is,
    and that its peers have the data (S19). `tls` None: loopback only. `disk_reserve_bytes` None:
    the reserve of S20. `peer_connections_max`: how many connections the peer port takes.
    `clients_at`: where this node serves clients, for those who call the peer port by mistake.
    `failpoints`: for tests only, see `storage.failpoints`.
    """

    cluster_id: str
    node_id: str
    directory: Path
    listen: str
    peers: dict[str, str]
    tls: PeerTls | None
    settings: Settings
    bootstrap: bool = False
    rebuild: bool = False
    disk_reserve_bytes: int | None = None
    failpoints: Path | None = None
    peer_connections_max: int = CONNECTIONS_MAX
    clients_at: str = ""


@dataclass(frozen=True, slots=True)
class OpenReplica:
    """A running replica and how to end it.

    `peer_troubles`: sentences about peers that are refused, or refuse this node, at the moment.
    """

    replica: Replica
    history: History
    snapshots: StateSnapshots
    sealing: Sealing
    fetching: Fetching
    store: StateStore
    directory: DataDirectory
    peer_troubles: Callable[[], Sequence[str]]
    _thread: EngineThread

    async def close(self) -> None:
        """Stop the engine, make what is evolved durable, release the directory.

        Raises StorageError if the last snapshot was not written; the journal has what it lacks.
        Raises StateBusy if somebody goes on reading: then the directory stays locked.
        """
        await self.fetching.close()
        await self.sealing.idle()
        if not await _in_own_thread(self._thread.stop, "engine-stop"):
            logger.critical("the engine's thread hangs; its directory stays locked until the end")
            return
        try:
            await self.replica.close()
        finally:
            await _in_own_thread(self.store.close, "state-close")
            self.directory.close()


async def _in_own_thread(call: Callable[[], T], name: str) -> T:
    """Reads of the history that hang may fill the loop's own threads; an end does not queue."""
    executor = ThreadPoolExecutor(1, thread_name_prefix=name)
    try:
        return await asyncio.get_running_loop().run_in_executor(executor, call)
    finally:
        executor.shutdown(wait=False)


def boot_seconds() -> float:
    """CLOCK_BOOTTIME: it also counts the time that a machine was suspended (S10 c)."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


async def open_replica(config: ReplicaConfig) -> OpenReplica:
    """Check, load and start. Raises `DirectoryRefused`, `TransportFailed`, `EngineStopped`."""
    directory = await asyncio.to_thread(_open_directory, config)
    transport, store = _transport(config, directory), None
    try:
        store = StateStore(directory.state_path)
        snapshots = StateSnapshots(store, directory.copy_path)
        fold = await asyncio.to_thread(snapshots.load)
        engine = _engine(config, directory, snapshots, transport)
    except BaseException:
        if store is not None:
            store.close()
        directory.close()
        raise
    snapshots.on_durable = engine.cut
    clocks = Clocks(boot=boot_seconds, wall=time.time)
    guard = DiskGuard(config.directory, boot_seconds, config.disk_reserve_bytes)
    replica = Replica(config.node_id, engine, fold, snapshots, clocks, guard.low)
    place = SealingPlace(
        directory.state_path, directory.segments_path, config.cluster_id, config.node_id
    )
    sealing = Sealing(place, store, replica.snapshot)
    replica.subscribe(sealing)
    history = History(
        snapshots.tail, store, directory.segments_path, lambda: replica.state.applied_index
    )
    fetching = _fetching(config, directory, history, transport)
    snapshots.on_installed = fetching.look
    replica.start()
    sealing.start(fold.state.sealed)
    fetching.start()
    thread = EngineThread(engine, config.node_id)
    thread.start()
    return OpenReplica(
        replica,
        history,
        snapshots,
        sealing,
        fetching,
        store,
        directory,
        transport.troubles,
        thread,
    )


def _open_directory(config: ReplicaConfig) -> DataDirectory:
    directory = DataDirectory(
        config.directory,
        cluster_id=config.cluster_id,
        node_id=config.node_id,
        bootstrap=config.bootstrap,
        rebuild=config.rebuild,
        disk_reserve_bytes=config.disk_reserve_bytes,
    )
    if directory.verdict.sound:
        if config.rebuild and not directory.verdict.blank:
            logger.warning(_NOT_EMPTIED, config.directory, config.directory)
        return directory
    reason = directory.verdict.reason
    if not config.peers:
        directory.close()
        raise DirectoryRefused(config.directory, Refusal.UNUSABLE, _ALONE.format(reason=reason))
    logger.critical(
        "the data directory is damaged (%s); it is set aside, and this node rebuilds from its "
        "peers without a vote",
        reason,
    )
    directory.set_aside()
    return directory


_NOT_EMPTIED = (
    "--rebuild touches no data: %s is not empty, so the node goes on with what it holds. Leave the "
    "option out; if that data must not be used, stop the node, move %s away and start with "
    "--rebuild again"
)
_ALONE = (
    "it is damaged ({reason}), and a cluster of one has no peer to rebuild from. Restore a backup "
    "into an empty directory, or keep this one for a repair by hand."
)


def _journal(config: ReplicaConfig, directory: DataDirectory) -> Journal:
    journal = LmdbJournal(directory.journal_path)
    if config.failpoints is None:
        return journal
    logger.critical(
        "started with --test-failpoints: %s can make this node's disk slow or fail. Never do this "
        "where data matters",
        config.failpoints,
    )
    return FailpointJournal(directory.journal_path, journal, config.failpoints)


def _transport(config: ReplicaConfig, directory: DataDirectory) -> GrpcTransport:
    transport = GrpcTransport(
        config.cluster_id,
        config.node_id,
        config.listen,
        config.peers,
        config.tls,
        config.peer_connections_max,
    )
    transport.send_clients_to(config.clients_at)
    transport.offer(SEGMENTS, SegmentSource(directory.segments_path).answer)
    return transport


def _fetching(
    config: ReplicaConfig, directory: DataDirectory, history: History, transport: GrpcTransport
) -> Fetching:
    place = FetchingPlace(
        directory.segments_path, config.cluster_id, config.node_id, config.disk_reserve_bytes
    )
    call = partial(_call_for_segments, transport)
    return Fetching(place, history, sorted(config.peers), call)


def _call_for_segments(transport: GrpcTransport, peer: str, request: bytes) -> Iterator[bytes]:
    return transport.call(peer, SEGMENTS, request)


def _engine(
    config: ReplicaConfig,
    directory: DataDirectory,
    snapshots: StateSnapshots,
    transport: GrpcTransport,
) -> Engine:
    clock: Callable[[], float] = boot_seconds
    return Engine(
        node_id=config.node_id,
        peers=tuple(sorted(config.peers)),
        cluster_id=config.cluster_id,
        settings=config.settings,
        journal=_journal(config, directory),
        transport=transport,
        clock=clock,
        random=SystemRandom(),
        snapshots=snapshots,
        notes=NotesFile(directory.journal_path),
        bootstrap=directory.bootstrapping,
    )
