"""The cells of a row: known answers, and as many milliseconds as the pieces have."""

from __future__ import annotations

from holdfast.replay.analyse.sweep import GAP, OVERLAP, OWNED, Piece, sweep


def piece(kind: str, owner: str, since: int, until: int, row: int = 0, number: int = 1) -> Piece:
    """As many equal intervals, in columns of 10 ms."""
    first, last = since // 10, (until - 1) // 10
    head = min(until, (first + 1) * 10) - since
    tail = until - last * 10 if last > first else 0
    return Piece(0, row, kind, owner, first, last, 10, number, head * number, tail * number)


def cells(*pieces: Piece) -> list[tuple[object, ...]]:
    return [tuple(run[2:]) for run in sweep(pieces)]


def test_an_owner_that_fills_columns_is_one_run_of_cells() -> None:
    assert cells(piece(OWNED, "a", 0, 100)) == [(0, 10, "a", 1, 10, 0, 0, 0, 0)]


def test_an_interval_shorter_than_a_column_is_in_its_cell() -> None:
    assert cells(piece(OWNED, "a", 42, 45)) == [(4, 1, "a", 1, 3, 0, 0, 0, 0)]


def test_a_change_of_owner_in_a_column_leaves_that_cell_without_a_single_owner() -> None:
    found = cells(piece(OWNED, "a", 0, 15), piece(OWNED, "b", 15, 30))

    assert found == [
        (0, 1, "a", 1, 10, 0, 0, 0, 0),
        (1, 1, "", 2, 10, 0, 0, 0, 0),
        (2, 1, "b", 1, 10, 0, 0, 0, 0),
    ]


def test_the_second_owner_of_an_overlap_counts_as_one() -> None:
    found = cells(piece(OWNED, "a", 0, 40), piece(OVERLAP, "b", 10, 20))

    assert found[1] == (1, 1, "", 2, 10, 0, 0, 10, 1)


def test_gaps_are_counted_where_they_begin_and_last_as_long_as_they_last() -> None:
    """Three partitions of a bundle without an owner from 5 to 25."""
    assert cells(piece(GAP, "", 5, 25, number=3)) == [
        (0, 1, "", 0, 0, 15, 3, 0, 0),
        (1, 1, "", 0, 0, 30, 0, 0, 0),
        (2, 1, "", 0, 0, 15, 0, 0, 0),
    ]


def test_columns_in_which_nothing_is_are_no_cells() -> None:
    found = cells(piece(OWNED, "a", 0, 10), piece(OWNED, "a", 50, 60))

    assert [cell[0] for cell in found] == [0, 5]


def test_rows_do_not_mix() -> None:
    runs = list(sweep([piece(OWNED, "a", 0, 10), piece(OWNED, "b", 0, 10, row=1)]))

    assert [(run.row, run.owner) for run in runs] == [(0, "a"), (1, "b")]
