"""Moves, gaps and intervals of the demo, from small histories with known answers."""

from demo.diary import End
from demo.measure import Freeze, Interval, Window, gaps, intervals, longest_gap, moves
from demo.store import Claim


def test_a_restart_under_the_same_instance_id_is_no_move() -> None:
    """KIP-345: the worker is its instance id, whatever its token."""
    claims = [Claim(1.0, 0, 10, "one"), Claim(5.0, 0, 11, "one")]
    assert moves(claims, Window(0.0, 9.0)) == 0


def test_there_and_back_are_two_moves() -> None:
    claims = [Claim(1.0, 0, 10, "one"), Claim(5.0, 0, 11, "two"), Claim(6.0, 0, 12, "one")]
    assert moves(claims, Window(0.0, 9.0)) == 2


def test_moves_are_counted_per_partition_and_in_the_window_only() -> None:
    claims = [
        Claim(1.0, 0, 10, "one"),
        Claim(1.0, 1, 10, "two"),  # another partition's first worker is no move
        Claim(2.0, 0, 11, "two"),  # before the window
        Claim(5.0, 1, 12, "one"),
        Claim(9.0, 1, 13, "two"),  # the window's end belongs to the next one
    ]
    assert moves(claims, Window(3.0, 9.0)) == 1


def test_an_interval_ends_with_its_own_end_the_next_claim_or_the_run() -> None:
    claims = [
        Claim(1.0, 0, 10, "one"),
        Claim(4.0, 0, 11, "two"),
        Claim(6.0, 0, 12, "three"),
    ]
    ends = [End(3.0, "one", 0, 10), End(2.0, "two", 0, 99), End(2.5, "one", 1, 10)]
    assert intervals(claims, ends, [], 9.0) == [
        Interval(0, "one", 1.0, 3.0),
        Interval(0, "two", 4.0, 6.0),
        Interval(0, "three", 6.0, 9.0),
    ]


def test_a_frozen_worker_works_on_nothing_from_then_on() -> None:
    claims = [Claim(1.0, 0, 10, "one"), Claim(12.0, 0, 11, "one"), Claim(1.0, 1, 10, "two")]
    assert intervals(claims, [], [Freeze(2.0, "one")], 20.0) == [
        Interval(0, "one", 1.0, 2.0),
        Interval(0, "one", 12.0, 20.0),
        Interval(1, "two", 1.0, 20.0),
    ]


def test_gaps_are_cut_to_the_window() -> None:
    owned = [
        Interval(0, "one", 1.0, 3.0),
        Interval(0, "two", 5.0, 6.0),
        Interval(0, "one", 12.0, 20.0),
        Interval(1, "two", 0.0, 20.0),
    ]
    assert gaps(owned, Window(4.0, 10.0)) == [(0, 4.0, 5.0), (0, 6.0, 10.0)]
    assert longest_gap(owned, Window(4.0, 10.0)) == 4.0


def test_who_lasts_through_the_window_leaves_no_gap() -> None:
    assert longest_gap([Interval(0, "one", 1.0, 20.0)], Window(4.0, 10.0)) == 0.0


def test_a_partition_that_nobody_takes_again_is_a_gap_to_the_end() -> None:
    assert longest_gap([Interval(0, "one", 1.0, 5.0)], Window(4.0, 10.0)) == 5.0
