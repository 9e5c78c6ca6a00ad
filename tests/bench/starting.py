"""The row about a start: a node whose event log holds a million events, the newest not snapshotted.

The directory is made offline, by the same code that a node runs: entries are encoded, folded,
snapshotted and journalled. So the fold's own speed is measured on the way.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import grpc

from bench.figures import Figure, least, most
from bench.nodes import Cluster, Credentials, Node
from bench.rig import Bench
from harness.poll import until
from holdfast.coordinator.model.events import (
    Cause,
    GroupCreated,
    LogEntry,
    OffsetCommitted,
    OffsetsCommitted,
    Part,
    Proposed,
)
from holdfast.raft.core.proposals import pack_command
from holdfast.runtime.replica.snapshots import DIRTY_BYTES, StateSnapshots
from holdfast.runtime.replica.state_machine import StateMachine
from holdfast.storage.codec.event_codec import encode_entry
from holdfast.storage.directory.data_directory import DataDirectory
from holdfast.storage.journal.journal import Entry, JournalBatch
from holdfast.storage.journal.tailed_journal import TailedJournal, open_journal
from holdfast.storage.state.state_store import StateStore
from holdfast.v1 import admin_pb2, admin_pb2_grpc

GROUPS: Final = 100
PARTITIONS: Final = 100
WITHIN_S: Final = 300.0


class Made(NamedTuple):
    """What was put on the disk. `fold_s`: processor seconds that folding `events` took."""

    events: int
    fold_s: float
    tail: int
    last_index: int


async def start(bench: Bench) -> None:
    """Start of one node on a million events, the newest few MiB of them only in the journal."""
    await asyncio.to_thread(_start, bench)


def _start(bench: Bench) -> None:
    with Cluster(bench.folder / "run" / "start", count=1) as cluster:
        (node,), shown = cluster.nodes, cluster.credentials()
        cluster_id = json.loads((node.directory.parent / "cluster.json").read_text())["cluster_id"]
        cluster.stop()
        made = _make(bench, node, cluster_id)
        rate = made.events / made.fold_s
        bench.add(Figure("start", "fold, one core", rate, "events/s", least(50_000)))
        began = time.perf_counter()
        cluster.launch(node)
        with Admin(node.address, shown) as stub:
            until(lambda: _serves(stub, made.last_index), "the node serves", within_s=WITHIN_S)
        seconds = time.perf_counter() - began
        what, more = f"from {made.events:,} events, until it serves", {"replayed": made.tail}
        bench.add(Figure("start", what, seconds, "s", most(3), more=dict(more)))


def _make(bench: Bench, node: Node, cluster_id: str) -> Made:
    data = node.directory / "data"
    with DataDirectory(data, cluster_id=cluster_id, node_id=node.name) as directory:
        journal, store = open_journal(directory.journal_path), StateStore(directory.state_path)
        try:
            term = journal.load().hard_state.term
            snapshots = StateSnapshots(store, directory.copy_path)
            return _write(bench, journal, snapshots, term)
        finally:
            store.close()
            journal.close()


def _write(bench: Bench, journal: TailedJournal, snapshots: StateSnapshots, term: int) -> Made:
    """Fold everything; what is newer than the last snapshot goes into the journal."""
    machine, tail, count, dirty, folding = snapshots.load(), list[Entry](), 0, 0, 0.0
    for index, entry in _entries(machine, term, bench.sizes.events):
        payload = encode_entry(entry)
        began = time.thread_time()
        outcome = machine.apply(index, term, payload)
        folding += time.thread_time() - began
        snapshots.note(outcome, len(payload))
        count, dirty = count + len(outcome.records), dirty + len(payload)
        tail.append(Entry(index, term, pack_command(payload, term)))
        if dirty >= DIRTY_BYTES:  # as a node does
            snapshots.take(machine, term).result()
            tail, dirty = [], 0
            bench.say(f"start: {count:,} events are on the disk")
    covered, last = snapshots.latest(), machine.state.applied_index
    journal.commit(
        JournalBatch(reset_to=(covered.index, covered.term), append=tail, commit_index=last)
    )
    return Made(count, folding, len(tail) * GROUPS, last)


def _entries(machine: StateMachine, term: int, events: int) -> Iterator[tuple[int, LogEntry]]:
    """Entries in which every group commits one offset."""
    names = [f"group-{number:03}" for number in range(GROUPS)]
    for turn in range(events // GROUPS):
        index = machine.state.applied_index + 1
        parts = tuple(
            Part(name, term, machine.state.version_of(name), _events(machine, name, turn))
            for name in names
        )
        yield index, LogEntry(machine.state.log_time_ms + 1, int(time.time() * 1000), parts)


def _events(machine: StateMachine, name: str, turn: int) -> tuple[Proposed, ...]:
    offset = OffsetCommitted("work", turn % PARTITIONS, turn, -1, "")
    commit = Proposed(OffsetsCommitted((offset,)), Cause("J4", "CommitOffsets"), "bench")
    if machine.state.groups.get(name) is not None:
        return (commit,)
    return (Proposed(GroupCreated(), Cause("J1", "CommitOffsets"), "bench"), commit)


class Admin:
    """A blocking line to a node that may not be up yet."""

    def __init__(self, address: str, shown: Credentials) -> None:
        credentials = grpc.ssl_channel_credentials(shown.ca, shown.key, shown.certificate)
        options = [("grpc.max_reconnect_backoff_ms", 50), ("grpc.initial_reconnect_backoff_ms", 50)]
        self._channel = grpc.secure_channel(address, credentials, options)

    def __enter__(self) -> admin_pb2_grpc.AdminServiceStub:
        return admin_pb2_grpc.AdminServiceStub(self._channel)

    def __exit__(self, *_: object) -> None:
        self._channel.close()


def _serves(stub: admin_pb2_grpc.AdminServiceStub, index: int) -> bool:
    """Whether the node leads and its state holds everything."""
    try:
        seen = stub.DescribeCluster(admin_pb2.DescribeClusterRequest(), timeout=1)
    except grpc.RpcError:
        return False
    return bool(seen.leader) and seen.applied_index > index
