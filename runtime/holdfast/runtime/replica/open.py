"""Opens a replica: state, log, history and background tasks, in the right order.

`place` has opened the data directory before. The only file that knows all parts of this layer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from holdfast.coordinator.model.commands import RaiseRecoveryNumber
from holdfast.coordinator.model.state import State
from holdfast.raft.api import Build
from holdfast.raft.open import LogConfig, OpenLog, PeerCalls, boot_seconds, open_log
from holdfast.runtime.backup.source import BackupPlace, BackupSource
from holdfast.runtime.event_log.cutting import Cutting, CuttingPlace
from holdfast.runtime.event_log.fetch import Fetching, FetchingPlace
from holdfast.runtime.event_log.history import History
from holdfast.runtime.event_log.rests import REST
from holdfast.runtime.event_log.seal import Sealing, SealingPlace
from holdfast.runtime.event_log.segment_calls import METHOD as SEGMENTS
from holdfast.runtime.event_log.segment_calls import SegmentSource
from holdfast.runtime.replica.log_time import Clocks
from holdfast.runtime.replica.replica import Replica
from holdfast.runtime.replica.snapshots import DIRTY_BYTES, StateSnapshots
from holdfast.storage.directory.data_directory import DataDirectory
from holdfast.storage.disk.disk_guard import DiskGuard
from holdfast.storage.state.state_store import StateStore

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """What a replica needs to know."""

    log: LogConfig
    disk_reserve_bytes: int | None = None
    """None: the reserve of S20."""


@dataclass(frozen=True, slots=True)
class OpenReplica:
    """A running replica with its parts; `close` ends it."""

    replica: Replica
    history: History
    snapshots: StateSnapshots
    sealing: Sealing
    fetching: Fetching
    cutting: Cutting
    backups: BackupSource
    store: StateStore
    directory: DataDirectory
    log: OpenLog

    @property
    def recovering(self) -> RaiseRecoveryNumber:
        """What the disk says of the last restore, for the node that leads first after it (S13)."""
        return RaiseRecoveryNumber(*self.directory.recovery)

    def peer_builds(self) -> Mapping[str, Build]:
        """Return what each peer runs by its last greeting, also if it is away now."""
        return self.log.peer_builds()

    def peer_troubles(self) -> Sequence[str]:
        """Return sentences about peers that are refused now, or refuse this node."""
        return self.log.peer_troubles()

    async def close(self) -> None:
        """Stop the engine, make the applied state durable, release the directory.

        Raises StorageError if the last snapshot was not written; the journal has what it lacks.
        Raises StateBusy if a reader does not end: then the directory stays locked.
        """
        self.backups.forget()
        await self.fetching.close()
        await self.cutting.close()
        await self.sealing.close()
        if not await _in_own_thread(self.log.stop, "engine-stop"):
            logger.critical("the engine's thread hangs; its directory stays locked until the end")
            return
        try:
            await self.replica.close()
        finally:
            await _in_own_thread(self._close_state, "state-close")
            self.directory.close()

    def _close_state(self) -> None:
        """Close the state, and remove the copy that a backup was read from, if there is one."""
        self.store.close()
        self.backups.remove()


async def _in_own_thread(call: Callable[[], T], name: str) -> T:
    """Call in a thread of its own: reads of the history that hang may fill the loop's threads."""
    executor = ThreadPoolExecutor(1, thread_name_prefix=name)
    try:
        return await asyncio.get_running_loop().run_in_executor(executor, call)
    finally:
        executor.shutdown(wait=False)


async def open_replica(config: ReplicaConfig, directory: DataDirectory) -> OpenReplica:
    """Load and start what is in an open directory, which is released if that fails.

    Raises `TransportFailed`, `EngineStopped`, `StorageError`.
    """
    calls, store = _peer_calls(config, directory), None
    try:
        store = StateStore(directory.state_path)
        snapshots = _snapshots(config, store, directory)
        machine = await asyncio.to_thread(snapshots.load)
        calls.tell_level(lambda: _level(machine.state))
        calls.refuse_certificates(frozenset(machine.state.revocations))
        log = open_log(config.log, directory, snapshots, calls)
    except BaseException:
        if store is not None:
            store.close()
        directory.close()
        raise
    snapshots.on_durable = log.engine.cut
    clocks = Clocks(boot=boot_seconds, wall=time.time)
    guard = DiskGuard(directory.path, boot_seconds, config.disk_reserve_bytes)
    replica = Replica(config.log.node_id, log.engine, machine, snapshots, clocks, guard.low)
    calls.tell_level(lambda: _level(replica.state))
    sealing = Sealing(
        *(_sealing_place(config, directory), store, replica.snapshot),
        level=lambda: replica.state.level,
    )
    replica.subscribe(on_applied=sealing.on_applied)
    history = History(
        *(snapshots.tail, store, directory.segments_path, lambda: replica.state.applied_index),
        lambda: replica.state.history_cut,
    )
    fetching = _fetching(config, directory, replica, history, calls)
    replica.on_membership(lambda _: fetching.look())
    cutting = _cutting(config, directory, replica, store, calls)
    replica.subscribe(on_applied=cutting.on_applied)

    loop = asyncio.get_running_loop()

    def on_installed() -> None:
        fetching.look()
        cutting.look()
        # Soon: until then the replica's state is still the one before the install.
        loop.call_soon(lambda: sealing.start(replica.state.sealed))

    snapshots.on_installed = on_installed
    backups = BackupSource(
        *(_backup_place(config, directory), replica.snapshot, store.release_dead_readers, history),
        cut=lambda: replica.state.history_cut,
    )
    replica.start()
    sealing.start(machine.state.sealed)
    fetching.start()
    cutting.start()
    log.start()
    parts = replica, history, snapshots, sealing, fetching, cutting, backups
    return OpenReplica(*parts, store, directory, log)


def _level(state: State) -> int:
    """Return the level in force by a state; 0 by one that no cluster has written."""
    return state.level if state.cluster_id else 0


def _turn(config: ReplicaConfig) -> int:
    """How many nodes come before this one, by their names, where nodes do a thing in turn."""
    return sum(peer < config.log.node_id for peer in config.log.peers)


def _snapshots(
    config: ReplicaConfig, store: StateStore, directory: DataDirectory
) -> StateSnapshots:
    ahead = DIRTY_BYTES * _turn(config) // (len(config.log.peers) + 1)
    return StateSnapshots(store, directory.copy_path, rest=REST, ahead_bytes=ahead)


def _sealing_place(config: ReplicaConfig, directory: DataDirectory) -> SealingPlace:
    return SealingPlace(
        directory.state_path,
        directory.segments_path,
        config.log.cluster_id,
        config.log.node_id,
        _turn(config),
    )


def _backup_place(config: ReplicaConfig, directory: DataDirectory) -> BackupPlace:
    copy = directory.copy_path
    return BackupPlace(
        directory.state_path,
        directory.segments_path,
        copy.with_name(f"{copy.name}-backup"),
        config.disk_reserve_bytes,
    )


def _peer_calls(config: ReplicaConfig, directory: DataDirectory) -> PeerCalls:
    calls = PeerCalls(config.log, directory)
    calls.offer(SEGMENTS, SegmentSource(directory.segments_path).answer)
    return calls


def _fetching(
    config: ReplicaConfig,
    directory: DataDirectory,
    replica: Replica,
    history: History,
    calls: PeerCalls,
) -> Fetching:
    place = FetchingPlace(
        directory.segments_path,
        config.log.cluster_id,
        config.log.node_id,
        config.disk_reserve_bytes,
    )
    call = partial(_call_for_segments, calls)
    return Fetching(place, history, partial(_peers, replica), call)


def _peers(replica: Replica) -> list[str]:
    """Return the other nodes of the cluster: those of the membership in force (S25)."""
    return [name for name in replica.membership.names if name != replica.node_id]


def _cutting(
    config: ReplicaConfig,
    directory: DataDirectory,
    replica: Replica,
    store: StateStore,
    calls: PeerCalls,
) -> Cutting:
    place = CuttingPlace(directory.state_path, directory.segments_path, _turn(config))
    return Cutting(
        *(place, lambda: replica.state.history_cut, replica.snapshot, store.release_dead_readers),
        *(partial(_peers, replica), partial(_call_for_segments, calls)),
    )


def _call_for_segments(calls: PeerCalls, peer: str, request: bytes) -> Iterator[bytes]:
    return calls.call(peer, SEGMENTS, request)
