"""Medians: known answers."""

from __future__ import annotations

from holdfast.replay.analyse.one_pass.percentiles import median, median_of_counts


def test_a_median_is_one_of_the_values_and_the_lower_of_two() -> None:
    assert median([]) is None
    assert median([7, 3]) == 3
    assert median([9, 3, 7]) == 7
    assert median_of_counts([(7, 1), (3, 1)]) == 3
    assert median_of_counts([(9, 1), (3, 3), (7, 1)]) == 3
