"""How finely groups are drawn: within what a page can hold, the busiest most finely."""

from __future__ import annotations

from holdfast.replay.analyse.timeline import (
    CELLS_ALL,
    COLUMNS_MAX,
    COLUMNS_STRIP,
    GRIDS_MAX,
    ROWS_FIRST,
    STRIPS_MAX,
    Size,
    column_ms,
    scales,
)

HOUR_MS = 3_600_000


def columns(width_ms: int) -> int:
    return -(-HOUR_MS // width_ms)


def test_a_small_group_has_a_row_for_each_partition_and_the_finest_columns() -> None:
    (only,) = scales([Size("g", 12, 100)], HOUR_MS)

    assert (only.rows, only.column_ms) == (12, column_ms(HOUR_MS, COLUMNS_MAX))


def test_a_giant_is_bundled_and_its_columns_are_coarser() -> None:
    (only,) = scales([Size("g", 20_000, 10_000_000)], HOUR_MS)

    assert only.rows == ROWS_FIRST
    assert 100 < columns(only.column_ms) < COLUMNS_MAX


def test_however_many_groups_there_are_their_cells_are_bounded() -> None:
    sizes = [Size(f"g{n}", 5_000, 100_000) for n in range(5_000)]
    chosen = scales(sizes, HOUR_MS)

    grids = [each for each in chosen if each.rows > 1]
    cells = sum(each.rows * columns(each.column_ms) for each in chosen)
    assert cells <= CELLS_ALL + STRIPS_MAX * COLUMNS_STRIP
    assert len(grids) <= GRIDS_MAX
    assert len(chosen) == len(grids) + STRIPS_MAX


def test_a_column_is_a_whole_number_of_milliseconds_and_all_columns_cover_the_log() -> None:
    for span_ms in (1, 7, COLUMNS_MAX, COLUMNS_MAX + 1, HOUR_MS):
        width = column_ms(span_ms, COLUMNS_MAX)
        assert width >= 1
        assert width * COLUMNS_MAX >= span_ms
