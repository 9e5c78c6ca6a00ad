"""Opens one node's part of the replicated log: transport, journal, engine and its thread.

The only file that knows all parts of this layer. It does not know what the entries mean: snapshots
are passed in.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from holdfast.raft.api import UNTOLD, Build, Settings, SnapshotSource
from holdfast.raft.pysyncobj.engine import Engine
from holdfast.raft.thread import EngineThread
from holdfast.raft.transport.lineage import Lineage
from holdfast.raft.transport.peer_options import CONNECTIONS_MAX
from holdfast.raft.transport.peer_transport import PeerTransport
from holdfast.raft.transport.tls import PeerTls
from holdfast.storage.directory.data_directory import DataDirectory
from holdfast.storage.directory.recovery_mark import RecoveryMark, write_mark
from holdfast.storage.durations import Durations
from holdfast.storage.journal.failpoints import FailpointJournal
from holdfast.storage.journal.journal import Journal
from holdfast.storage.journal.notes_file import NotesFile
from holdfast.storage.journal.tailed_journal import open_journal

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogConfig:
    """What a node needs to know to take part."""

    cluster_id: str
    node_id: str
    listen: str
    """Where the peer port listens, host:port."""
    peers: dict[str, str]
    """The peer addresses of the other nodes by node id, with which the cluster begins (S25)."""
    tls: PeerTls | None
    """None: loopback only."""
    settings: Settings
    connections_max: int = CONNECTIONS_MAX
    """How many connections the peer port takes before they have greeted."""
    reached_at: str = ""
    """Where other nodes reach this one, host:port; empty: where it listens."""
    clients_at: str = ""
    """Where this node serves clients, host:port; told to clients that call the peer port."""
    build: Build = UNTOLD
    """What this node runs, as its peers are told."""
    connection_seconds: float = math.inf
    """How old a connection between nodes may become before another takes its place."""
    failpoints: Path | None = None
    """For tests only, see `journal.failpoints`."""


def boot_seconds() -> float:
    """Read CLOCK_BOOTTIME in seconds; it also counts time that a machine was suspended (S10 c)."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class PeerCalls:
    """Calls between nodes beside the log, on connections of their own."""

    def __init__(self, config: LogConfig, directory: DataDirectory) -> None:
        """Make the transport; the engine binds the port once all is loaded."""
        mark = directory.recovery
        lineage = Lineage(
            mark.number,
            adopt=lambda number: write_mark(directory.path, RecoveryMark(number)),
        )
        self.transport = PeerTransport(
            config.cluster_id,
            config.node_id,
            config.listen,
            config.peers,
            config.tls,
            config.connections_max,
            config.build,
            lineage,
        )
        self.transport.tell_address(config.reached_at or config.listen)
        self.transport.send_clients_to(config.clients_at)
        self.transport.end_connections_after(config.connection_seconds)

    def tell_level(self, level: Callable[[], int]) -> None:
        """Have greetings tell the level in force that `level` returns; 0: none is known."""
        self.transport.tell_level(level)

    def refuse_certificates(self, revoked: frozenset[str]) -> None:
        """Refuse peers that show one of these, by fingerprint, and end their connections.

        Any thread.
        """
        self.transport.refuse_certificates(revoked)

    def offer(self, method: str, answer: Callable[[bytes], Iterator[bytes]]) -> None:
        """Have `answer` serve the peers' calls of a method.

        To be called before the log is opened.
        """
        self.transport.offer(method, answer)

    def call(self, peer: str, method: str, request: bytes) -> Iterator[bytes]:
        """Return the peer's answer in chunks. Raises OSError when it breaks off."""
        return self.transport.call(peer, method, request)


@dataclass(frozen=True, slots=True)
class OpenLog:
    """A node's open log: the engine, which ticks from `start` on, and its thread."""

    engine: Engine
    _thread: EngineThread
    _calls: PeerCalls
    syncs: Durations
    """What writing and syncing each batch of the journal took."""

    def start(self) -> None:
        """Begin to tick."""
        self._thread.start()

    def stop(self) -> bool:
        """End the engine and its thread; blocks.

        False if it hangs: then nothing may be released.
        """
        return self._thread.stop()

    @property
    def was_removed(self) -> bool:
        """Whether the engine stopped because this node is none of the cluster any more (S25 e)."""
        return self.engine.was_removed

    def peer_builds(self) -> Mapping[str, Build]:
        """Return what each peer runs by its last greeting, also if it is away now."""
        return self._calls.transport.builds()

    def replace_tls(self, tls: PeerTls) -> None:
        """Have new connections between nodes use other credentials. Any thread.

        Raises TlsUnusable, and keeps those in force.
        """
        self._calls.transport.replace_tls(tls)

    def refuse_certificates(self, revoked: frozenset[str]) -> None:
        """Refuse peers that show one of these, by fingerprint, and end their connections.

        Any thread.
        """
        self._calls.refuse_certificates(revoked)

    def tick_lag_s(self) -> float:
        """Return by how many seconds the engine's thread is late."""
        return self._thread.lag_s()

    def waiting_for_peers(self) -> Mapping[str, int]:
        """Return the bytes that wait to be sent to each connected peer."""
        return self._calls.transport.waiting()

    def peer_troubles(self) -> Sequence[str]:
        """Return sentences about peers that are refused now, or refuse this node."""
        return self._calls.transport.troubles()


def open_log(
    config: LogConfig, directory: DataDirectory, snapshots: SnapshotSource, calls: PeerCalls
) -> OpenLog:
    """Load the journal and bind the peer port. Raises TransportFailed, EngineStopped, StorageError.

    `snapshots`: sent to peers that are too far behind, and received from them (S18).
    """
    journal = open_journal(directory.journal_path)
    engine = Engine(
        node_id=config.node_id,
        peers=tuple(sorted(config.peers)),
        cluster_id=config.cluster_id,
        settings=config.settings,
        journal=_with_failpoints(config, directory, journal),
        transport=calls.transport,
        park=calls.transport,
        clock=boot_seconds,
        random=SystemRandom(),
        snapshots=snapshots,
        notes=NotesFile(directory.journal_path),
        bootstrap=directory.bootstrapping,
    )
    calls.transport.follow(engine.membership)
    engine.on_membership(calls.transport.follow)
    return OpenLog(engine, EngineThread(engine, config.node_id), calls, journal.syncs)


def _with_failpoints(config: LogConfig, directory: DataDirectory, journal: Journal) -> Journal:
    if config.failpoints is None:
        return journal
    logger.critical(
        "started with --test-failpoints: %s can make this node's disk slow or fail. Never do this "
        "where data matters",
        config.failpoints,
    )
    return FailpointJournal(directory.journal_path, journal, config.failpoints)
