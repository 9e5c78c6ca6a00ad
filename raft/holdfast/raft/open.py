"""Opens one node's part of the replicated log: transport, journal, engine and its thread.

The only file that knows all parts of this layer. What the entries mean, and what is made of them,
it does not know: snapshots are handed in.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from holdfast.raft.api import Settings, SnapshotSource
from holdfast.raft.pysyncobj.engine import Engine
from holdfast.raft.thread import EngineThread
from holdfast.raft.transport.peer_options import CONNECTIONS_MAX
from holdfast.raft.transport.streams import GrpcTransport, PeerTls
from holdfast.storage.directory.data_directory import DataDirectory
from holdfast.storage.journal.failpoints import FailpointJournal
from holdfast.storage.journal.journal import Journal
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.journal.notes_file import NotesFile

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogConfig:
    """What a node needs to know to take part. `peers`: the others' peer addresses by node id.

    `tls` None: loopback only. `connections_max`: how many connections the peer port takes.
    `clients_at`: where this node serves clients, for those who call the peer port by mistake.
    `failpoints`: for tests only, see `journal.failpoints`.
    """

    cluster_id: str
    node_id: str
    listen: str
    peers: dict[str, str]
    tls: PeerTls | None
    settings: Settings
    connections_max: int = CONNECTIONS_MAX
    clients_at: str = ""
    failpoints: Path | None = None


def boot_seconds() -> float:
    """CLOCK_BOOTTIME: it also counts the time that a machine was suspended (S10 c)."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class PeerCalls:
    """Calls between nodes beside the log, on connections of their own."""

    def __init__(self, config: LogConfig) -> None:
        """Nothing listens yet: the engine binds the port once all is loaded."""
        self.transport = GrpcTransport(
            config.cluster_id,
            config.node_id,
            config.listen,
            config.peers,
            config.tls,
            config.connections_max,
        )
        self.transport.send_clients_to(config.clients_at)

    def offer(self, method: str, answer: Callable[[bytes], Iterator[bytes]]) -> None:
        """Answer the peers' calls of a method; before the log is opened."""
        self.transport.offer(method, answer)

    def call(self, peer: str, method: str, request: bytes) -> Iterator[bytes]:
        """The peer's answer in chunks. Raises OSError when it breaks off."""
        return self.transport.call(peer, method, request)


@dataclass(frozen=True, slots=True)
class OpenLog:
    """The engine, which ticks once `start` was called, and how to end it."""

    engine: Engine
    _thread: EngineThread
    _calls: PeerCalls

    def start(self) -> None:
        """Begin to tick."""
        self._thread.start()

    def stop(self) -> bool:
        """End the engine and its thread; blocks. False: it hangs, and nothing may be released."""
        return self._thread.stop()

    def peer_troubles(self) -> Sequence[str]:
        """Sentences about peers that are refused, or refuse this node, at the moment."""
        return self._calls.transport.troubles()


def open_log(
    config: LogConfig, directory: DataDirectory, snapshots: SnapshotSource, calls: PeerCalls
) -> OpenLog:
    """Load the journal and bind the peer port. Raises TransportFailed, EngineStopped, StorageError.

    `snapshots`: what is sent to peers too far behind, and takes in what they send (S18).
    """
    engine = Engine(
        node_id=config.node_id,
        peers=tuple(sorted(config.peers)),
        cluster_id=config.cluster_id,
        settings=config.settings,
        journal=_journal(config, directory),
        transport=calls.transport,
        clock=boot_seconds,
        random=SystemRandom(),
        snapshots=snapshots,
        notes=NotesFile(directory.journal_path),
        bootstrap=directory.bootstrapping,
    )
    return OpenLog(engine, EngineThread(engine, config.node_id), calls)


def _journal(config: LogConfig, directory: DataDirectory) -> Journal:
    journal = LmdbJournal(directory.journal_path)
    if config.failpoints is None:
        return journal
    logger.critical(
        "started with --test-failpoints: %s can make this node's disk slow or fail. Never do this "
        "where data matters",
        config.failpoints,
    )
    return FailpointJournal(directory.journal_path, journal, config.failpoints)
