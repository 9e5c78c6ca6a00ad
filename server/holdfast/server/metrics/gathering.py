"""Gathers the values of all metrics at one moment: from the loop's own objects, then from the disk.

Groups are counted in slices, files in a thread: members' heartbeats do not wait for a scraper (S9).
Knows no HTTP and no prometheus_client.
"""

from __future__ import annotations

import asyncio
import math
import os
import platform
import resource
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from cryptography import x509

from holdfast.coordinator.kernel.form import are_compiled
from holdfast.coordinator.kernel.group_types import type_of
from holdfast.server.rpc.nodes import VERSION
from holdfast.server.rpc.slices import SEEN_MAX, Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from holdfast.coordinator.model.state import State
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.config.node_config import Tls
    from holdfast.server.metrics.applied_counts import AppliedCounts
    from holdfast.server.metrics.call_counts import CallCounts
    from holdfast.server.metrics.history_outlook import HistoryOutlook, Outlook
    from holdfast.server.metrics.pulse import Pulse
    from holdfast.storage.durations import Durations

Row: TypeAlias = "tuple[str, tuple[str, ...], float | Durations]"
"""Name of a metric, values of its labels, and its value."""

_STARTED: Final = time.time()
_PAGE: Final = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the values come from."""

    replica: ReplicaLike
    caught_up: Callable[[], bool]
    """Whether the state may be shown: it is no older than what was shown before a start (S4)."""
    calls: CallCounts
    applied: AppliedCounts
    pulse: Pulse
    commits: Durations
    syncs: Durations
    peer_queues: Callable[[], Mapping[str, int]]
    """Returns the bytes that wait to be sent to each connected peer."""
    gauges: Mapping[str, Callable[[], float]]
    """Metrics without labels that are one look at an object of the loop."""
    data_dir: Path
    parts: Mapping[str, Path]
    """The folders of `data_dir` by what they hold."""
    tls: Tls | None
    outlook: HistoryOutlook


async def gathered(sources: Sources) -> list[Row]:
    """Gather all values. The state is one moment's; what is counted meanwhile may be newer."""
    state = sources.replica.state
    rows = [*_own(sources), *_log(sources, state)]
    if sources.caught_up():
        rows += await _groups(state)
    rows += _outlook(await sources.outlook.told())
    return rows + await asyncio.to_thread(lambda: list(_files(sources)))


def _own(sources: Sources) -> Iterator[Row]:
    rules = "compiled" if are_compiled() else "source"
    yield "holdfast_build_info", (VERSION, platform.python_version(), rules), 1
    yield "holdfast_start_time_seconds", (), _STARTED
    for method, code, count in sources.calls.rows():
        yield "holdfast_calls_total", (method, code), count
    for name, look in sources.gauges.items():
        yield name, (), look()
    yield "holdfast_commit_seconds", (), sources.commits
    yield "holdfast_journal_sync_seconds", (), sources.syncs
    yield "holdfast_engine_tick_lag_seconds", (), sources.pulse.tick_lag_s
    yield "holdfast_loop_lag_seconds", (), sources.pulse.loop_lag_s
    yield from _applied(sources.applied)


def _applied(applied: AppliedCounts) -> Iterator[Row]:
    for cause, count in sorted(applied.rebalances.items()):
        yield "holdfast_rebalances_total", (cause,), count
    for how, count in sorted(applied.gone.items()):
        yield "holdfast_members_gone_total", (how,), count
    yield "holdfast_rebalance_seconds", (), applied.rebalance_s
    yield "holdfast_without_owner_seconds", (), applied.without_owner_s
    yield "holdfast_records_total", (), applied.records


def _log(sources: Sources, state: State) -> Iterator[Row]:
    status = sources.replica.status()
    leads = status.role == "leader"
    yield "holdfast_raft_term", (), status.term
    yield "holdfast_raft_leads", (), leads
    yield "holdfast_raft_leader_known", (), status.leader is not None
    yield "holdfast_raft_leader_changes_total", (), sources.pulse.leader_changes
    yield "holdfast_raft_commit_index", (), status.commit_index
    yield "holdfast_applied_index", (), state.applied_index
    for peer in status.peers:
        yield "holdfast_peer_connected", (peer.peer,), peer.connected
        if leads:
            lag = max(0, status.last_index - peer.acked_index)
            yield "holdfast_peer_lag_entries", (peer.peer,), lag
    for name, waiting in sources.peer_queues().items():
        yield "holdfast_peer_queue_bytes", (name,), waiting
    yield "holdfast_record_bytes_total", (), sources.replica.record_bytes
    yield "holdfast_sealed_index", (), state.sealed.index


async def _groups(state: State) -> list[Row]:
    states, members, partitions = Counter[str](), 0, 0
    slices = Slices(SEEN_MAX)
    async for group_id in slices.of(state.groups):
        group = state.groups[group_id]
        states[group.state] += 1
        members += len(type_of(group).members(group))
    async for name in slices.of(state.topics):
        partitions += state.topics[name].num_partitions
    rows: list[Row] = [("holdfast_groups", (each,), count) for each, count in states.items()]
    return [
        *rows,
        ("holdfast_members", (), members),
        ("holdfast_topics", (), len(state.topics)),
        ("holdfast_partitions", (), partitions),
    ]


def _outlook(outlook: Outlook) -> Iterator[Row]:
    yield "holdfast_retention_hindered", (), bool(outlook.hindrance)
    growth, full_in_ms = outlook.forecast
    if growth is not None:
        left = math.inf if full_in_ms is None else full_in_ms / 1000
        yield "holdfast_disk_full_seconds", (), left


def _files(sources: Sources) -> Iterator[Row]:
    """Look at files; any thread. What cannot be read has no value, and the rest is shown."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    yield "holdfast_resident_bytes", (), pages * _PAGE
    disk = os.statvfs(sources.data_dir)
    yield "holdfast_disk_free_bytes", (), disk.f_bavail * disk.f_frsize
    yield "holdfast_disk_total_bytes", (), disk.f_blocks * disk.f_frsize
    for part, folder in sources.parts.items():
        yield "holdfast_directory_bytes", (part,), taken(folder)
    for key, path in certificate_files(sources.tls):
        if (ends := expiry(path)) is not None:
            yield "holdfast_certificate_expiry_seconds", (key,), ends


def taken(folder: Path) -> int:
    """Sum up the bytes that the files in a folder take on the disk; LMDB's have holes."""
    return sum(_sizes(folder))


def _sizes(folder: Path) -> Iterator[int]:
    for path in folder.rglob("*"):
        try:
            yield path.lstat().st_blocks * 512
        except FileNotFoundError:  # renamed or removed meanwhile
            continue


def certificate_files(tls: Tls | None) -> Iterator[tuple[str, Path]]:
    """Yield the keys of [tls] that name certificates, and their files."""
    if tls is None:
        return
    yield "ca", tls.ca
    yield "certificate", tls.certificate
    if tls.peer_ca is not None:
        yield "peer_ca", tls.peer_ca


def expiry(path: Path) -> float | None:
    """Return when the first certificate of a file expires, in Unix seconds; None: unreadable."""
    try:
        found = x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError):  # somebody replaces it just now
        return None
    return min(each.not_valid_after_utc.timestamp() for each in found)
