"""How much log time differs from wall time, counted over the columns of a log (S8)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.replay.analyse.one_pass.percentiles import median_of_counts

CLOCK_STEP_MS: Final = 50
"""Differences that round to the same multiple of this are told as one."""


class Tick(NamedTuple):
    """All records whose log time differs from their wall time by so much."""

    offset_ms: int
    records: int
    since_wall_ms: int


class Clock:
    """Counts records by that difference."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self._ticks: dict[int, tuple[int, int]] = {}

    def take(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch."""
        wall = batch.column("wall_time_ms")
        offset = pc.subtract(batch.column("log_time_ms"), wall)
        found = pa.table({"offset": offset, "wall": wall}).group_by("offset", use_threads=False)
        told = found.aggregate([("wall", "count"), ("wall", "min")])
        names = ("offset", "wall_count", "wall_min")
        rows = zip(*(told.column(name).to_pylist() for name in names), strict=True)
        for key, count, since in rows:
            seen, first = self._ticks.get(key, (0, since))
            self._ticks[key] = (seen + count, min(first, since))

    def ticks(self) -> list[Tick]:
        """Return what was counted."""
        return [Tick(offset, *told) for offset, told in self._ticks.items()]


def clock_offsets(ticks: Iterable[Tick]) -> tuple[tuple[int, int], ...]:
    """Return from which wall time on log time differs by how much, in steps of CLOCK_STEP_MS.

    Of each step the median is told, and the first wall time that has it.
    """
    steps: dict[int, list[Tick]] = {}
    for tick in ticks:
        steps.setdefault(_step(tick.offset_ms), []).append(tick)
    told = []
    for mine in steps.values():
        counts = [(tick.offset_ms, tick.records) for tick in mine]
        told.append((min(tick.since_wall_ms for tick in mine), median_of_counts(counts)))
    return tuple(sorted(told))


def _step(offset_ms: int) -> int:
    """Round to the nearest step, halves away from zero."""
    steps = (2 * abs(offset_ms) + CLOCK_STEP_MS) // (2 * CLOCK_STEP_MS)
    return steps if offset_ms >= 0 else -steps
