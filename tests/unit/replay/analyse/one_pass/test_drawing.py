"""The timelines that are made of a bucket's intervals: known cells, and nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from random import Random

import pytest

from holdfast.replay.analyse import bucket_tasks, timeline
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.one_pass import chunks, merging
from holdfast.replay.analyse.one_pass.arrow_rows import table_bytes
from holdfast.replay.analyse.one_pass.interval_table import IntervalTable
from holdfast.replay.analyse.one_pass.ownership_sums import StepSums
from holdfast.replay.analyse.timeline import CellRun, Timeline, Totals

Owned = tuple[str, int, str, int, int]
"""Group, partition, owner, from, to."""
BUCKETS = 3


def drawn(owned: Sequence[Owned], last_ms: int) -> tuple[tuple[Timeline, ...], Totals]:
    """Draw intervals as a log with several buckets of groups would be."""
    groups = sorted({each[0] for each in owned})
    bucket_of = {group: at % BUCKETS for at, group in enumerate(groups)}
    tables = [IntervalTable() for _ in range(BUCKETS)]
    for token, (group, number, owner, start, end) in enumerate(owned):
        told = Interval(group, "t", number, owner, owner, token, start, end, "generation", 0)
        tables[bucket_of[group]].add([told])
    linked = [table.linked() for table in tables]
    sums = [StepSums(each) for each in linked]
    whole = merging.added(each.whole() for each in sums)
    plan = merging.plan_of((size for each in sums for size in each.sizes()), 0, last_ms, (0, 0))
    rows = (
        row
        for each in linked
        for row in bucket_tasks.draw(plan, map(table_bytes, chunks.chunks(each)))
    )
    return tuple(merging.timelines(plan, merging.Told(rows), whole)), whole


def cells(runs: Sequence[CellRun], row: int = 0) -> list[tuple[object, ...]]:
    return [tuple(run[2:]) for run in runs if run.row == row]


def test_each_cell_tells_owner_gap_and_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten columns of 10 ms. Partition 0: a to 25, nobody to 48, b on; 1: a, and b beside it."""
    monkeypatch.setattr(timeline, "COLUMNS_MAX", 10)
    owned = [("g", 0, "a", 0, 25), ("g", 0, "b", 48, 100), ("g", 1, "a", 0, 60)]
    owned += [("g", 1, "b", 52, 57)]

    (only,), _ = drawn(owned, 100)

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


def test_partitions_beyond_the_rows_are_bundled_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five partitions in two rows: three and two. What differs in a bundle has no single owner."""
    monkeypatch.setattr(timeline, "COLUMNS_MAX", 2)
    monkeypatch.setattr(timeline, "ROWS_FIRST", 2)
    owned = [("g", n, "a" if n < 3 else f"m{n}", 0, 100) for n in range(5)]

    (only,), whole = drawn(owned, 100)

    assert [tuple(row) for row in only.rows] == [("t/0", "t/2", 3), ("t/3", "t/4", 2)]
    assert cells(only.runs) == [(0, 2, "a", 1, 150, 0, 0, 0, 0)]
    assert cells(only.runs, 1) == [(0, 2, "", 2, 100, 0, 0, 0, 0)]
    assert whole == only.totals


def test_what_is_drawn_and_what_is_counted_beside_it_is_everything(
    monkeypatch: pytest.MonkeyPatch,
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

    made, whole = drawn(owned, 1_000)

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


def test_a_log_in_which_nobody_owned_anything_has_no_timeline() -> None:
    made, whole = drawn([], 100)

    assert (made, whole) == ((), Totals())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_a_picture_does_not_depend_on_where_tables_are_cut(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Intervals reach the drawing in tables of a bounded size; a partition may be in several."""
    chance = Random(5)
    owned = [
        (f"g{chance.randrange(4)}", chance.randrange(5), f"m{chance.randrange(3)}", at, at + 9)
        for at in range(0, 300, 4)
    ]
    monkeypatch.setattr(timeline, "COLUMNS_MAX", 20)
    monkeypatch.setattr(timeline, "GRIDS_MAX", 2)
    monkeypatch.setattr(timeline, "STRIPS_MAX", 1)
    whole = drawn(owned, 320)

    monkeypatch.setattr(chunks, "CHUNK", size)

    assert drawn(owned, 320) == whole
