"""Whether a long run has become flat, from samples with known growth."""

import pytest

from bench.flatness import SIGNS, Sample, bytes_a_change, drawn, growth, halves, long_enough

MIB = 2**20


def sample(seconds: float, memory: int, *, changes: int = 0, disk: int = 0) -> Sample:
    return Sample(seconds, changes, {"n1": memory}, {"n1": disk})


def run(memory: list[int]) -> list[Sample]:
    """One sample a minute."""
    return [sample(60.0 * minute, used) for minute, used in enumerate(memory, 1)]


def test_the_first_third_does_not_count() -> None:
    first, second = halves(run([MIB] * 15))
    assert [s.seconds / 60 for s in first] == [5, 6, 7, 8, 9]
    assert [s.seconds / 60 for s in second] == [10, 11, 12, 13, 14, 15]


def test_memory_that_rises_and_falls_between_the_same_bounds_is_flat() -> None:
    saw = [50, 60, 70, 80, 100, 120, 100, 120, 100, 120, 100, 120, 100, 120, 100]
    assert growth(run(saw), "n1") == 1.0


def test_memory_that_goes_on_rising_is_not_flat() -> None:
    assert growth(run([10 * minute for minute in range(1, 16)]), "n1") == pytest.approx(150 / 90)


def test_memory_is_judged_only_if_it_was_full_when_it_was_warm() -> None:
    """Two snapshots of 4 MiB of entries, about 70 bytes each, before the first third ends."""
    filled = 2 * 4 * MIB // 70
    run_of = [[sample(m, MIB, changes=m * each) for m in range(1, 16)] for each in (8_000, 25_000)]
    assert [filled < samples[4].changes for samples in run_of] == [False, True]
    assert [long_enough(samples) for samples in run_of] == [False, True]


def test_a_disk_that_grows_with_each_change_has_that_slope() -> None:
    """What was there before the first change, 1 MiB, is no part of it."""
    grown = [sample(n, 0, changes=100 * n, disk=MIB + 400 * 100 * n) for n in range(10)]
    assert bytes_a_change(grown) == pytest.approx(400)


def test_too_few_samples_are_an_error_not_a_verdict() -> None:
    with pytest.raises(ValueError, match="too few"):
        halves(run([MIB, MIB, MIB]))


def test_a_line_shows_the_top_of_each_stretch_from_zero_up() -> None:
    assert drawn([0, 7, 0, 14], width=2) == SIGNS[round(7 / 2)] + SIGNS[-1]


def test_a_line_of_nothing_is_drawn_all_the_same() -> None:
    assert drawn([0, 0]) == SIGNS[0] * 2
