"""What cannot be made is refused by a sentence that names the option; limits are not refused."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.replay.generate.plan import (
    EVENTS_MIN,
    GIANT_MAX,
    NODES_MAX,
    SEGMENT_EVENTS_MIN,
    SKEW_MAX,
    Plan,
    PlanRefused,
)

REFUSED: list[dict[str, Any]] = [
    {"events": -1},
    {"events": EVENTS_MIN - 1},
    {"groups": 0},
    {"groups": -3},
    {"skew": -0.1},
    {"skew": float("nan")},
    {"skew": SKEW_MAX + 1},
    {"giant": -0.1},
    {"giant": 1.0},
    {"giant": float("inf")},
    {"nodes": 0},
    {"nodes": NODES_MAX + 1},
    {"segment_events": SEGMENT_EVENTS_MIN - 1},
    {"anchors": -1},
    {"faults": ("bounces", "earthquakes")},
]


@pytest.mark.parametrize("options", REFUSED, ids=str)
def test_options_out_of_their_limits_are_refused_by_name(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(PlanRefused, match=name.replace("_", "-")):
        Plan(**{"events": 1000, **options})


def test_a_giant_needs_others_beside_it() -> None:
    with pytest.raises(PlanRefused, match="giant"):
        Plan(1000, groups=1, giant=0.5)


def test_the_limits_themselves_are_taken() -> None:
    Plan(EVENTS_MIN, groups=1, skew=0, nodes=1, segment_events=SEGMENT_EVENTS_MIN, faults=())
    Plan(1000, groups=2, skew=SKEW_MAX, giant=GIANT_MAX, nodes=NODES_MAX)
