"""The timelines that Spark aggregates: known cells of small histories, and nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from random import Random

import pytest
from pyspark.sql import SparkSession

from holdfast.replay.analyse import timeline
from holdfast.replay.analyse.jobs.timelines import linked_frame, timelines
from holdfast.replay.analyse.timeline import CellRun, Timeline, Totals

OWNED = (
    "group string, topic string, partition int, owner string, member_id string, token bigint, "
    "start_ms bigint, end_ms bigint, ended string"
)
Owned = tuple[str, int, str, int, int]
"""Group, partition, owner, from, to."""


def drawn(
    spark: SparkSession, owned: Sequence[Owned], last_ms: int
) -> tuple[tuple[Timeline, ...], Totals]:
    rows = [
        (group, "t", number, owner, owner, token, start, end, "generation")
        for token, (group, number, owner, start, end) in enumerate(owned)
    ]
    linked = linked_frame(spark.createDataFrame(rows, OWNED)).persist()
    try:
        return timelines(spark, linked, 0, last_ms)
    finally:
        linked.unpersist()


def cells(runs: Sequence[CellRun], row: int = 0) -> list[tuple[object, ...]]:
    return [tuple(run[2:]) for run in runs if run.row == row]


def test_each_cell_tells_owner_gap_and_overlap(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten columns of 10 ms. Partition 0: a to 25, nobody to 48, b on; 1: a, and b beside it."""
    monkeypatch.setattr(timeline, "COLUMNS_MAX", 10)
    owned = [("g", 0, "a", 0, 25), ("g", 0, "b", 48, 100), ("g", 1, "a", 0, 60)]
    owned += [("g", 1, "b", 52, 57)]

    (only,), _ = drawn(spark, owned, 100)

    assert only.column_ms == 10
    assert cells(only.runs) == [
        (0, 2, "a", 1, 10, 0, 0, 0, 0),
        (2, 1, "a", 1, 5, 5, 1, 0, 0),
        (3, 1, "", 0, 0, 10, 0, 0, 0),
        (4, 1, "b", 1, 2, 8, 0, 0, 0),
        (5, 5, "b", 1, 10, 0, 0, 0, 0),
    ]
    assert cells(only.runs, 1) == [
        (0, 5, "a", 1, 10, 0, 0, 0, 0),
        (5, 1, "", 2, 10, 0, 0, 5, 1),
    ]
    assert [(r.first, r.partitions) for r in only.rows] == [("t/0", 1), ("t/1", 1)]


def test_partitions_beyond_the_rows_are_bundled_and_named(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five partitions in two rows: three and two. What differs in a bundle has no single owner."""
    monkeypatch.setattr(timeline, "COLUMNS_MAX", 2)
    monkeypatch.setattr(timeline, "ROWS_FIRST", 2)
    owned = [("g", n, "a" if n < 3 else f"m{n}", 0, 100) for n in range(5)]

    (only,), whole = drawn(spark, owned, 100)

    assert [tuple(row) for row in only.rows] == [("t/0", "t/2", 3), ("t/3", "t/4", 2)]
    assert cells(only.runs) == [(0, 2, "a", 1, 150, 0, 0, 0, 0)]
    assert cells(only.runs, 1) == [(0, 2, "", 2, 100, 0, 0, 0, 0)]
    assert whole == only.totals


def test_what_is_drawn_and_what_is_counted_beside_it_is_everything(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Grids, strips, and the strip of the others: their cells and counts add up to the log's."""
    monkeypatch.setattr(timeline, "GRIDS_MAX", 3)
    monkeypatch.setattr(timeline, "STRIPS_MAX", 2)
    monkeypatch.setattr(timeline, "ROWS_OTHERS", 2)
    monkeypatch.setattr(timeline, "COLUMNS_MAX", 7)
    chance = Random(11)
    owned: list[Owned] = []
    for at in range(12):
        for _ in range(14 - at):
            start = chance.randrange(900)
            end = start + chance.choice((0, 3, 100, 1_000 - start))
            owned.append((f"g{at:02}", chance.randrange(4), f"m{chance.randrange(3)}", start, end))

    made, whole = drawn(spark, owned, 1_000)

    assert [each.group for each in made] == ["g00", "g01", "g02", "g03", "g04", ""]
    assert reduce(Totals.plus, (each.totals for each in made))._replace(**below(whole)) == whole
    assert whole.groups == 12
    assert whole.intervals == len(owned)
    for each in made:
        told = each.totals
        assert summed(each.runs, "owned_ms") == told.owned_ms
        assert (summed(each.runs, "gap_ms"), summed(each.runs, "gaps")) == (told.gap_ms, told.gaps)
        assert summed(each.runs, "overlap_ms") == told.overlap_ms
        assert summed(each.runs, "overlaps") == told.overlaps
        assert told.intervals_below <= told.intervals
    assert whole.gaps > 0
    assert whole.overlaps > 0


def below(whole: Totals) -> dict[str, int]:
    """What depends on the width of a column: the whole log has none."""
    return {name: value for name, value in whole._asdict().items() if name.endswith("_below")}


def summed(runs: Sequence[CellRun], name: str) -> int:
    return sum(int(getattr(run, name)) * run.columns for run in runs)


def test_a_log_in_which_nobody_owned_anything_has_no_timeline(spark: SparkSession) -> None:
    made, whole = drawn(spark, [], 100)

    assert (made, whole) == ((), Totals())
