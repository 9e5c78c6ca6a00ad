"""What a node tells of its machine to a reader of the cluster: for `holdfast doctor`.

Looks at files in a thread, and only when it is asked to. Judges nothing.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from holdfast.server.metrics import machine
from holdfast.server.metrics.gathering import certificate_files, expiry
from holdfast.storage.durations import Durations
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.server.config.node_config import Tls
    from holdfast.server.metrics.history_outlook import HistoryOutlook, Outlook


class NodeFacts:
    """The machine of one node."""

    def __init__(self, data_dir: Path, tls: Tls | None) -> None:
        self._data_dir, self._tls = data_dir, tls
        self.syncs = Durations()
        """What writing and syncing each batch of the journal took."""
        self.outlook: HistoryOutlook | None = None
        """Of the history, once the node is open."""

    async def told(self) -> a.NodeFacts:
        """Look at the machine; the wall clock is read last, right before the answer."""
        found = await asyncio.to_thread(self._look)
        if self.outlook is not None:
            found.history.CopyFrom(_history(await self.outlook.told()))
        found.wall_time_ms = time.time_ns() // 1_000_000
        return found

    def _look(self) -> a.NodeFacts:
        disk = machine.disk_of(self._data_dir)
        return a.NodeFacts(
            resident_bytes=machine.resident_bytes(),
            memory_bytes=machine.memory_bytes(),
            disk_free_bytes=disk.free,
            disk_total_bytes=disk.total,
            open_files_max=machine.open_files_max(),
            syncs=sum(self.syncs.counts),
            sync_p99_ms=machine.slowest_ms(self.syncs),
            certificates=[
                a.CertificateFact(key=key, expires_ms=int(ends * 1000))
                for key, path in certificate_files(self._tls)
                if (ends := expiry(path)) is not None
            ],
        )


def _history(outlook: Outlook) -> a.HistoryFacts:
    (growth, full_in_ms), sealed = outlook.forecast, outlook.sealed
    return a.HistoryFacts(
        segment_bytes=outlook.segment_bytes,
        measured_ms=growth.measured_ms if growth else 0,
        bytes_a_day=growth.bytes_a_day if growth else 0,
        full_in_ms=full_in_ms,
        retention=outlook.on,
        hindrance=outlook.hindrance,
        cut_index=outlook.cut_index,
        sealed=x.Position(index=sealed.index, ordinal=sealed.ordinal) if sealed.index else None,
        sealing_problem=outlook.sealing_problem,
    )
