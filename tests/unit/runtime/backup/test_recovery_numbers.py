"""S13: a recovery number is above all that are known, and above that of any token (ADR 45)."""

from __future__ import annotations

import pytest

from holdfast.coordinator.model.ids import RECOVERY_NUMBER_MAX
from holdfast.runtime.backup.recovery_numbers import NumberRefused, Wanted, next_above

TOKEN = (3 << 48) + 362
"""One that was given out with number 3."""


@pytest.mark.parametrize(
    ("last", "wanted", "chosen"),
    [
        (0, Wanted(), 1),
        (4, Wanted(), 5),
        (4, Wanted(number=9), 9),
        (0, Wanted(above_token=TOKEN), 4),
        (3, Wanted(above_token=TOKEN), 4),
        (8, Wanted(above_token=TOKEN), 9),
        (0, Wanted(above_token=0), 1),
    ],
)
def test_s13_the_number_is_above_what_is_known_and_above_the_token(
    last: int, wanted: Wanted, chosen: int
) -> None:
    assert next_above(last, wanted) == chosen


@pytest.mark.parametrize("number", [4, 5])
def test_s13_a_number_that_was_used_is_refused_with_one_that_was_not(number: int) -> None:
    with pytest.raises(NumberRefused, match=r"used before.*Give a higher one, 6 or more"):
        next_above(5, Wanted(number=number))


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(number=RECOVERY_NUMBER_MAX + 1),
        Wanted(above_token=RECOVERY_NUMBER_MAX << 48),
        Wanted(above_token=(1 << 63) - 1),
    ],
)
def test_a_number_that_has_no_room_in_a_token_is_refused(wanted: Wanted) -> None:
    with pytest.raises(NumberRefused, match="at most"):
        next_above(0, wanted)
