"""Groups are chosen by Zipf's law: the nth of them in proportion to n to the power of -skew."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from holdfast.replay.generate.popularity import Popularity

PICKS = 40_000


def picked(skew: float, groups: int, first: int = 0) -> Counter[int]:
    popularity = Popularity(first, groups, skew, Random(5))
    return Counter(popularity.pick() for _ in range(PICKS))


@pytest.mark.parametrize("skew", [0.5, 1.0, 2.0])
def test_the_first_is_chosen_as_much_oftener_than_the_nth_as_the_law_says(skew: float) -> None:
    found = picked(skew, 8)

    for rank in range(2, 9):
        assert found[0] / found[rank - 1] == pytest.approx(rank**skew, rel=0.25)


def test_without_skew_all_are_alike() -> None:
    found = picked(0, 10)

    assert len(found) == 10
    assert min(found.values()) > 0.9 * PICKS / 10


def test_numbers_begin_where_they_are_told_to() -> None:
    assert set(picked(1, 4, first=1)) == {1, 2, 3}


def test_some_are_different_groups() -> None:
    some = Popularity(0, 3, 1, Random(5)).some(50)

    assert sorted(some) == [0, 1, 2]
