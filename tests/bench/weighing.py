"""The row about disk: what a million events take once they are sealed, and of what they are.

Bytes, no cluster and no clock: the figures depend on the events and on Arrow's version alone.
Request ids are random as clients make them, and every record ends with its chain hash: 32 bytes
that no compression makes smaller.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final

from bench import fold_entries
from bench.figures import Figure
from bench.rig import Bench
from holdfast.coordinator.model.state import State
from holdfast.runtime.replica.state_machine import StateMachine
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import Row

SEED: Final = 7
MILLION: Final = 1_000_000
LOGS: Final[tuple[Callable[[int], fold_entries.Log], ...]] = (
    fold_entries.commits,
    lambda events: fold_entries.commits(events, Random(SEED)),
    lambda events: fold_entries.mixed(events, Random(SEED)),
)


async def disk(bench: Bench) -> None:
    """What a million events take on a node's disk, sealed: full segments, and short ones."""
    await asyncio.to_thread(_disk, bench)


def _disk(bench: Bench) -> None:
    folder = bench.folder / "run" / "disk"
    for made in LOGS:
        log = made(bench.sizes.weighed_events)
        rows = list(_rows(log))
        whole, short = _sealed(folder, rows, len(rows)), _sealed(folder, rows, len(rows) // 25)
        stored = sum(len(row.content) for row in rows)
        unsealed = stored * MILLION / len(rows) / 2**20
        more: dict[str, object] = {"events": len(rows), "unsealed_records_mib": unsealed}
        what = f"a million events, sealed: {log.name}"
        bench.add(Figure("disk", what, whole * MILLION / len(rows) / 2**20, "MiB", more=more))
        what = f"the same in segments of {len(rows) // 25:,}"
        bench.add(Figure("disk", what, short * MILLION / len(rows) / 2**20, "MiB"))
        bench.add(Figure("disk", "each of these events", whole / len(rows), "bytes"))


def _rows(log: fold_entries.Log) -> Iterator[Row]:
    """The records as a node stores them, with their chain hashes."""
    machine = StateMachine(State())
    for index, payload in enumerate(log.payloads, start=1):
        for stored in machine.apply(index, 1, payload).records:
            yield Row(stored.record.position, stored.content)


def _sealed(folder: Path, rows: list[Row], events: int) -> int:
    """Seal rows in segments of so many events; how many bytes that is. The folder is gone then."""
    for first in range(0, len(rows), events):
        write_segment(folder, rows[first : first + events], "bench", "node-1")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    shutil.rmtree(folder)
    return size
