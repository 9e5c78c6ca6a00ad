"""When a disk is full: by recorded growth, and with what retention deletes taken into account."""

from __future__ import annotations

from typing import Any, Final

import pytest

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.cluster.disk_forecast import (
    DAY_MS,
    MEASURED_MS_MIN,
    WINDOW_MS,
    Forecast,
    Growth,
    forecast,
    growth_of,
    most_kept,
)
from holdfast.coordinator.cluster.retention import SealedPart
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State

HOUR: Final = 3_600_000
NOW: Final = 100 * DAY_MS
HOURLY: Final = Growth(2_400, DAY_MS)
"""100 bytes an hour."""


def parts(*sizes: int, every_ms: int = HOUR) -> list[SealedPart]:
    """Segments of these sizes; the last ended now."""
    last = len(sizes) - 1
    return [
        SealedPart(Position(nth + 1, 0), NOW - (last - nth) * every_ms, 10, size)
        for nth, size in enumerate(sizes)
    ]


def test_growth_is_what_was_sealed_since_the_first_known_segment_ended() -> None:
    assert growth_of(parts(77, 100, 100, 100), NOW) == Growth(2_400, 3 * HOUR)


@pytest.mark.parametrize(
    "known",
    [[], parts(100), parts(100, 100, every_ms=MEASURED_MS_MIN - 1)],
    ids=["nothing", "one segment", "minutes"],
)
def test_what_is_too_little_to_tell_is_not_known_yet(known: list[SealedPart]) -> None:
    assert growth_of(known, NOW) is None
    assert forecast(1_000, known, None, 5, None) == Forecast(None, None)


def test_what_is_older_than_a_week_says_nothing_of_what_is_to_come() -> None:
    old = parts(10**9, 10**9)
    assert growth_of(old, NOW + WINDOW_MS + 1) is None


def kept(**bounds: int) -> int | None:
    named: dict[str, Any] = {f"history_{name}": value for name, value in bounds.items()}
    usual = settings.of_cluster(State())
    return most_kept(usual._replace(**named), HOURLY, parts(40, 100))


@pytest.mark.parametrize(
    ("bounds", "most"),
    [
        ({}, None),
        ({"age_ms_max": 2 * DAY_MS}, 4_800 + 100),
        ({"bytes_max": 9_000}, 9_000 + 100),
        ({"age_ms_max": 2 * DAY_MS, "bytes_max": 3_000}, 3_000 + 100),
        ({"bytes_max": 50}, 2_400 + 100),
        ({"bytes_max": 50, "age_ms_min": 0}, 50 + 100),
        ({"age_ms_max": 0, "age_ms_min": 3 * DAY_MS}, 7_200 + 100),
    ],
)
def test_s24_the_settings_say_how_much_is_kept_and_one_segment_more(
    bounds: dict[str, int], most: int | None
) -> None:
    """The nearer of both bounds counts; what is younger than the least age is kept in any case."""
    assert kept(**bounds) == most


@pytest.mark.parametrize(
    ("free", "rest", "most", "full_in_ms"),
    [
        (4_800, 0, None, 2 * DAY_MS),  # nothing is deleted
        (4_800, 2_400, None, DAY_MS),  # journal and state grow as well
        (4_800, 0, 1_000, None),  # retention holds it
        (4_800, 0, 4_800 + 99, None),  # it holds it one byte before that
        (4_800, 0, 9_000, 2 * DAY_MS),  # the disk is full before there is anything to delete
        (4_800, 10, 2_400 + 100, 240 * DAY_MS),  # in the end the rest fills it
        (0, 10, None, 0),
        (-5, 0, 100, 0),
    ],
)
def test_a_disk_is_full_when_what_is_free_is_used_up(
    free: int, rest: int, most: int | None, full_in_ms: int | None
) -> None:
    told = forecast(free, parts(60, 40), HOURLY, rest, most)

    assert told.full_in_ms == full_in_ms
    assert told.growth == Growth(2_400 + rest, DAY_MS)


def test_a_history_that_does_not_grow_fills_no_disk() -> None:
    assert forecast(100, parts(1, 0), Growth(0, HOUR), 0, None).full_in_ms is None
