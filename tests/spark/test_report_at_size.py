"""The page of a group with 20,000 partitions and 5,000 members is small, and counts everything."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from holdfast.coordinator.model.events import GroupCreated
from holdfast.replay.analyse.timeline import ROWS_FIRST
from holdfast.replay.app import report
from holdfast.replay.report.page import PAGE_MAX
from spark.event_logs import (
    EventLog,
    assigned,
    formed,
    generation,
    joined,
    rebalance_started,
    swapped,
    write_node,
)

MEMBERS = 5_000
PARTITIONS = 20_000


def crowd() -> EventLog:
    """Everybody has four partitions; ten restart unannounced; all are assigned anew after 50 ms."""
    log = formed()
    names = [f"m{n:04}" for n in range(MEMBERS)]
    given = {name: range(n * 4, n * 4 + 4) for n, name in enumerate(names)}
    joins = (joined(name, f"i-{name}") for name in names)
    log.entry("g", GroupCreated(), rebalance_started("first join"), *joins)
    log.entry("g", generation(1, *names))
    log.entry("g", assigned(1, **given))
    for name in names[:10]:
        log.entry("g", swapped(f"i-{name}", name, f"{name}-2"))
    names = [f"{name}-2" for name in names[:10]] + names[10:]
    given = {name: range(n * 4, n * 4 + 4) for n, name in enumerate(names)}
    log.entry("g", rebalance_started("once more"), after_ms=60_000)
    log.entry("g", generation(2, *names), after_ms=950)
    log.entry("g", assigned(2, **given), after_ms=50)
    log.entry("g", rebalance_started("the last"), after_ms=60_000)
    return log


def test_twenty_thousand_partitions_make_a_page_that_hides_nothing_uncounted(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = write_node(tmp_path / "n1", "n1", crowd().rows)

    written = report([folder], tmp_path / "out", spark=spark)

    (only,) = written.analysis.timelines
    assert sum(row.partitions for row in only.rows) == PARTITIONS
    assert len(only.rows) == ROWS_FIRST
    assert only.totals == written.analysis.whole._replace(
        intervals_below=only.totals.intervals_below,
        gaps_below=only.totals.gaps_below,
        overlaps_below=only.totals.overlaps_below,
    )
    assert only.totals.intervals == PARTITIONS * 2 + 40
    assert (only.totals.gaps, only.totals.gap_ms) == (PARTITIONS, PARTITIONS * 50)
    assert sum(run.gaps * run.columns for run in only.runs) == PARTITIONS
    assert written.page.stat().st_size <= PAGE_MAX
    assert "20,000 of its partitions are bundled in 96 rows" in written.page.read_text()
    listed = written.analysis.listed.steps
    assert f"1,000 of {listed:,} are listed, {listed - 1_000:,} are not." in (
        written.page.read_text()
    )
