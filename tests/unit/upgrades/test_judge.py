"""The judge of `./dev upgrades`: it finds what was moved, lost, made twice, or took too long."""

from __future__ import annotations

from cluster.load import Acked, Place
from upgrades.judge import Logged, Row, longest_gap, lost, problems, table, too_slow, twice
from upgrades.plan import Kind

ACKED = Acked("r1", Place("g0", 2), 7, (40, 1), began=1.0, ended=1.2)
AS_TOLD = Logged("g0", 2, 7, 40)
GOOD = Row(1, Kind.BACK, restarts=6, changes=900, moves=0, lost=0, twice=0, gap_s=0.4)


def test_a_gap_is_between_two_answers_or_to_the_ends() -> None:
    assert longest_gap([1.0, 1.5, 4.0], begin=0.0, end=5.0) == 2.5
    assert longest_gap([4.0], begin=0.0, end=5.0) == 4.0
    assert longest_gap([1.0], begin=0.0, end=5.0) == 4.0
    assert longest_gap([], begin=0.0, end=5.0) == 5.0


def test_answers_outside_of_the_round_fill_no_gap() -> None:
    assert longest_gap([0.5, 9.0], begin=1.0, end=4.0) == 3.0


def test_s5_a_change_is_lost_unless_the_log_holds_it_as_it_was_told() -> None:
    assert lost([ACKED], {"r1": [AS_TOLD]}) == []
    assert lost([ACKED], {}) == [ACKED]
    assert lost([ACKED], {"r2": [AS_TOLD]}) == [ACKED]
    for other in (
        AS_TOLD._replace(group="g1"),
        AS_TOLD._replace(partition=3),
        AS_TOLD._replace(offset=6),
        AS_TOLD._replace(entry=41),
    ):
        assert lost([ACKED], {"r1": [other]}) == [ACKED]


def test_s15_a_request_that_was_carried_out_again_is_found() -> None:
    again = AS_TOLD._replace(entry=50)

    assert twice({"r1": [AS_TOLD]}) == []
    assert twice({"r1": [AS_TOLD, again]}) == ["r1"]


def test_each_bound_has_its_sentence() -> None:
    assert problems(GOOD) == []
    assert problems(GOOD._replace(moves=2)) == ["round 1: 2 partitions moved"]
    assert problems(GOOD._replace(lost=1)) == ["round 1: 1 acknowledged changes are lost"]
    assert problems(GOOD._replace(twice=1)) == ["round 1: 1 changes were made twice"]


def test_nothing_may_be_refused_for_longer_than_a_second_and_a_half() -> None:
    assert too_slow(GOOD._replace(gap_s=1.5)) == []
    assert too_slow(GOOD._replace(gap_s=1.51)) == [
        "round 1: nothing was accepted for 1.51 s, not 1.5 s"
    ]


def test_the_last_line_is_of_all_rounds() -> None:
    last = table([GOOD, GOOD._replace(number=2, moves=1, gap_s=0.7)]).splitlines()[-1]

    assert last.split() == ["2", "all", "12", "1800", "1", "0", "0", "0.70", "s"]
