"""A node of the simulated cluster: the real engine, replica, actors and services in one process.

Real: the overlay on PySyncObj, replica, machine, tail, history and snapshots, and everything of the
server below gRPC's own server. Modelled: threads (hosted.py), disk (disk.py, state.py), peer
connections (peers.py), gRPC (server_side.py), and what seals segments (sealing.py).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol

from harness.no_copies import NoCopies
from holdfast.coordinator.model.events import SettingChange
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.raft.api import EngineStopped, Settings
from holdfast.raft.pysyncobj.engine import Engine
from holdfast.raft.wire.greeting import OURS
from holdfast.runtime.event_log.history import History
from holdfast.runtime.replica.group_commit import LINGER_PARTS
from holdfast.runtime.replica.log_time import Clocks
from holdfast.runtime.replica.replica import Replica
from holdfast.server.config.address import parse_address
from holdfast.server.config.node_config import NodeConfig, Peer
from holdfast.server.process.node import Node
from simulation.children import Children
from simulation.disk import Disk, SyncedJournal
from simulation.founding import found_alone
from simulation.hosted import HostedEngine
from simulation.peers import PeerEnd
from simulation.pinned import WALL_S
from simulation.process import BOOTED_AT_S, Clock, Process
from simulation.sealing import BOUNDS, sealing_of
from simulation.server_side import SimServer
from simulation.state import SimSnapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.coordinator.model.commands import FormCluster
    from holdfast.coordinator.model.events import Record
    from holdfast.raft.api import Build
    from holdfast.raft.wire.greeting import Versions
    from holdfast.runtime.event_log.seal import Sealing
    from holdfast.runtime.replica.state_machine import StateMachine
    from holdfast.storage.journal.journal import NotedMembership
    from simulation.peers import Peers
    from simulation.schedule import Schedule

NAMES: Final = ("node-1", "node-2", "node-3")
"""The nodes of the beginning."""
NEW_NAMES: Final = tuple(f"node-{number}" for number in range(4, 10))
"""Those that may be added."""
PORT: Final = 7400
CLUSTER_ID: Final = "simulated"
RAFT: Final = Settings(trailing_bytes=8 * 1024, batch_bytes=32 * 1024, chunk_bytes=8 * 1024)
SETTINGS: Final = (
    SettingChange("group.initial_rebalance_delay_ms", "300"),
    SettingChange("group.min_session_timeout_ms", "500"),
    SettingChange("group.consumer_min_session_timeout_ms", "500"),
    SettingChange("group.consumer_session_timeout_ms", "3000"),
    SettingChange("group.consumer_min_heartbeat_interval_ms", "100"),
    SettingChange("group.consumer_heartbeat_interval_ms", "500"),
)
BESIDE: Final = SettingChange("group.consumer_inline_work", "0")
"""Child processes compute the targets of groups of the heartbeat protocol."""
PAUSE: Final = "group.consumer_assignment_interval_ms"
SNAPSHOT_S: Final = (4.0, 12.0)
"""How often a node takes a snapshot, beside those that the faults ask for."""
RESTART_US: Final = (300_000, 2_000_000)
"""After how long whoever supervises a node starts it again when it has ended by itself."""


def settings_with(*, beside: bool, pause_ms: int, seals: bool) -> tuple[SettingChange, ...]:
    """What a cluster begins with. `beside`: its nodes compute no target themselves.

    `pause_ms`: how far two targets of a group are apart at least. `seals`: segments are small.
    """
    computed = (BESIDE,) if beside else ()
    apart = (SettingChange(PAUSE, str(pause_ms)),) if pause_ms else ()
    return (*SETTINGS, *computed, *apart, *(BOUNDS if seals else ()))


def address_of(name: str) -> str:
    """Where a node listens for clients."""
    return f"10.0.0.{name.rpartition('-')[2]}:{PORT}"


def peer_address_of(name: str) -> str:
    """Where a node listens for its peers."""
    return f"10.0.0.{name.rpartition('-')[2]}:{PORT + 1}"


ADDRESSES: Final = {name: address_of(name) for name in NAMES}
MACHINES: Final = {address_of(name): name for name in (*NAMES, *NEW_NAMES)}
"""The machine of each address that there may be."""


class Watcher(Protocol):
    """Who writes down what a node does; the omniscient part of the history."""

    def opened(self, node: SimNode, machine: StateMachine) -> None:
        """It has loaded its state."""

    def installed(self, node: SimNode, machine: StateMachine) -> None:
        """It goes on behind a snapshot of a peer."""

    def applied(self, node: SimNode, records: Sequence[Record], index: int) -> None:
        """It has applied an entry."""

    def role(self, node: SimNode, role: str, term: int) -> None:
        """It leads, follows, or is down."""

    def nodes_changed(self, node: SimNode, noted: NotedMembership, term: int) -> None:
        """It knows that a change of nodes is committed."""


class SimNode:
    """One machine with its disk, and the process that runs on it, if any."""

    def __init__(
        self,
        name: str,
        schedule: Schedule,
        peers: Peers,
        watcher: Watcher,
        chance: Callable[[str], Random],
        file: Sequence[str],
        *,
        newest: bool,
        settings: Sequence[SettingChange] = SETTINGS,
    ) -> None:
        """`file`: the nodes that its file names, itself among them.

        `chance`: gives one of the world's seed to what is named. `newest`: this world begins at the
        newest level. `settings`: what the cluster begins with.
        """
        random = chance(name)
        self.name, self.random, self._newest = name, random, newest
        self.sealers = chance(f"children of {name} that seal")
        """What decides the fates of its children that seal."""
        self._file = tuple(file)
        self._settings = tuple(settings)
        self._schedule, self._peers, self.watcher = schedule, peers, watcher
        self.clock = Clock(schedule)
        self.disk = self._new_disk()
        self.wall_skew_s = random.uniform(-3_600.0, 3_600.0)
        self.installed: Build | None = None
        """What the next start runs; None: the nodes tell each other nothing of versions."""
        self.build: Build | None = None
        """What the last start ran."""
        self.starts = 0
        self.has_power = True
        self.stays_down = False
        self.is_out = False
        """Whether it was told that it was removed: nobody starts it again."""
        self.process: Process | None = None
        self.processes: list[Process] = []
        self.server: SimServer | None = None
        self.replica: Replica | None = None
        self.engine: HostedEngine | None = None
        self.snapshots: SimSnapshots | None = None
        self.sealing: Sealing | None = None
        self.node: Node | None = None

    @property
    def runs(self) -> bool:
        """Whether a process runs here; it may stand still."""
        return self.process is not None and self.process.alive

    @property
    def leads(self) -> bool:
        """Whether it believes itself to lead, ready or not."""
        engine = self.engine
        return self.runs and engine is not None and engine.status().role == "leader"

    # --- life ---

    def start(self, *, bootstrap: bool = False) -> None:
        """Start a process, unless one runs."""
        if self.runs or not self.has_power or self.is_out:
            return
        self.starts += 1
        name = f"{self.name}.{self.starts}"
        chance = Random(self.random.getrandbits(64))
        self.process = Process(name, self.name, self._schedule, self.clock, chance)
        self.processes.append(self.process)
        self.process.start(self._life(self.process, bootstrap=bootstrap))

    def kill(self) -> None:
        """Kill -9."""
        process = self.process
        if process is None or not process.alive:
            return
        syncing = self.engine is not None and self.engine.is_syncing
        process.kill()
        self.disk.journal.die(synced=not syncing)
        self.watcher.role(self, "down", 0)
        if self.engine is not None:
            self.engine.engine.close()

    def _new_disk(self) -> Disk:
        return Disk(SyncedJournal(self._schedule, Random(self.random.getrandbits(64))))

    def replace_disk(self) -> None:
        """The machine, which is down, gets an empty disk (S19)."""
        self.disk = self._new_disk()

    def found_alone(self) -> None:
        """Somebody has started it alone, with --bootstrap, and has stopped it again (S25 f)."""
        found_alone(self.name, CLUSTER_ID, RAFT, self.disk, self.random)

    def start_later(self, after_us: int) -> None:
        """Whoever supervises the node starts it again."""
        self._schedule.after(after_us, self.start)

    async def _life(self, process: Process, *, bootstrap: bool) -> None:
        try:
            node = self._open(process, bootstrap=bootstrap)
        except EngineStopped:
            self._ended(process)
            return
        await node.start()
        reason = await node.stopped_because
        del reason
        await node.stop()
        self._ended(process)

    def _ended(self, process: Process) -> None:
        if self.process is process:
            self.is_out = self.engine is not None and self.engine.was_removed
            self.kill()
            if not self.stays_down:
                self.start_later(self.random.randint(*RESTART_US))

    async def stop_gracefully(self) -> None:
        """As SIGTERM does: hand over, answer, make durable, end. In the node's own loop."""
        if self.node is not None and self.replica is not None:
            await self.node.stop()
            if self.sealing is not None:
                await self.sealing.close()
            await self.replica.close()
            self.kill()

    # --- parts ---

    def _open(self, process: Process, *, bootstrap: bool) -> Node:
        self.build = self.installed
        snapshots = self.snapshots = SimSnapshots(self.disk.state, process)
        machine = snapshots.load()
        end = PeerEnd(self._peers, process, self.name)
        engine = Engine(
            node_id=self.name,
            peers=tuple(name for name in self._file if name != self.name),
            cluster_id=CLUSTER_ID,
            settings=RAFT,
            journal=self.disk.journal,
            transport=end,
            clock=self.clock.seconds,
            random=Random(self.random.getrandbits(64)),
            snapshots=snapshots,
            notes=self.disk.notes,
            bootstrap=bootstrap,
        )
        hosted = self.engine = HostedEngine(engine, self.disk.journal, process)
        hosted.on_committed_nodes = lambda noted, term: self.watcher.nodes_changed(
            self, noted, term
        )
        end.wake, end.departs_us = hosted.wake, hosted.departs_us
        snapshots.on_durable = hosted.cut
        clocks = Clocks(self.clock.seconds, self._wall_seconds)
        # 1: each entry lingers for the next, as it does only under more load than is had here.
        linger = self.random.choice((1, LINGER_PARTS))
        replica = self.replica = Replica(
            self.name, hosted, machine, snapshots, clocks, linger_parts=linger
        )
        applied = lambda: replica.state.applied_index  # noqa: E731 - as short as it can be
        history = History(snapshots.tail, self.disk.state, Path("no-segments"), applied)
        sealing = self.sealing = sealing_of(self, sum(name < self.name for name in self._file))
        replica.subscribe(on_applied=sealing.on_applied)

        def on_reloaded(machine: StateMachine) -> None:
            self.watcher.installed(self, machine)
            asyncio.get_running_loop().call_soon(lambda: sealing.start(replica.state.sealed))

        snapshots.on_reloaded = on_reloaded
        replica.start()
        sealing.start(machine.state.sealed)
        hosted.start()
        self.server = SimServer(process, self.name)
        end.versions = self._versions
        self.node = (NewestNode if self._newest else SimulatedNode)(
            replace(config_of(self.name, self._file), settings=self._settings),
            replica,
            history,
            NoCopies(),
            [self._as_grpc(self.server)],
            peer_builds=lambda: self._builds(end),
        )
        told = _Listener(self)
        replica.subscribe(
            on_leading=told.on_leading,
            on_not_leading=told.on_not_leading,
            on_applied=told.on_applied,
            on_stopped=told.on_stopped,
        )
        self.watcher.opened(self, machine)
        self._snapshot_later(process)
        return self.node

    def _builds(self, end: PeerEnd) -> dict[str, Build]:
        return end.builds if self.build is None else {**end.builds, self.name: self.build}

    def _versions(self) -> Versions:
        """What it tells its peers: what it runs, and the level in force as far as it knows."""
        if self.build is None or self.replica is None:
            return OURS
        state = self.replica.state
        return OURS._replace(build=self.build, level=state.level if state.cluster_id else 0)

    def _as_grpc(self, server: SimServer) -> Any:  # noqa: ANN401 - stands in for grpc.aio.Server
        return server

    def _wall_seconds(self) -> float:
        return WALL_S + self.wall_skew_s + self.clock.seconds() - BOOTED_AT_S

    def _snapshot_later(self, process: Process) -> None:
        pause_us = round(self.random.uniform(*SNAPSHOT_S) * 1e6)
        self._schedule.after(pause_us, self._snapshot_by_itself, process)

    def _snapshot_by_itself(self, process: Process) -> None:
        if process.alive:
            self.take_snapshot()
            self._snapshot_later(process)

    def take_snapshot(self) -> None:
        """Make the state durable now, so that the journal is cut behind it."""
        process, replica = self.process, self.replica
        if process is None or replica is None or not process.runs:
            return
        if replica.state.applied_index and replica.stopped_because is None:
            process.start(replica.snapshot())


class SimulatedNode(Node):
    """A node whose children are models."""

    def _compute(self) -> Children:
        return Children(Random(f"children of {self.config.name}"))


class NewestNode(SimulatedNode):
    """One that begins at the newest level, whatever its peers run: they tell nothing of versions.

    Nodes come and go, and groups have the heartbeat protocol, from level 2 on (ADR 34, 49).
    """

    def _forming(self) -> FormCluster:
        return replace(super()._forming(), level=LEVEL_MAX)


class _Listener:
    """Tells the watcher what the replica tells."""

    def __init__(self, node: SimNode) -> None:
        self._node = node

    def on_leading(self, term: int) -> None:
        self._node.watcher.role(self._node, "leader", term)

    def on_not_leading(self) -> None:
        engine = self._node.engine
        self._node.watcher.role(self._node, "follower", engine.status().term if engine else 0)

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        self._node.watcher.applied(self._node, records, index)

    def on_stopped(self, reason: str) -> None:
        del reason
        self._node.watcher.role(self._node, "down", 0)


def is_member(node: SimNode) -> bool:
    """Whether its disk counts: it does not form or rebuild (S19)."""
    identity = node.disk.journal.identity
    return identity is not None and identity.stage == "member"


def config_of(name: str, names: Sequence[str]) -> NodeConfig:
    """A node's configuration; `names`: the nodes that its file names."""
    client = {each: parse_address(address_of(each)) for each in names}
    peer = {each: parse_address(peer_address_of(each)) for each in names}
    return NodeConfig(
        name=name,
        data_dir=Path("unused"),
        client_address=client[name],
        peer_address=peer[name],
        cluster_id=CLUSTER_ID,
        peers=tuple(Peer(each, client[each], peer[each]) for each in names),
        tls=None,
        election_min_ms=round(RAFT.election_min * 1000),
        election_max_ms=round(RAFT.election_max * 1000),
        heartbeat_ms=round(RAFT.heartbeat * 1000),
        shutdown_ms=1_000,
        disk_reserve_bytes=None,
        logger_level="info",
        logger_format="text",
        settings=SETTINGS,
    )
