"""What comes from outside the log, in the picture: marks, and who was frozen.

They carry wall time, the picture has log time; the two part at each failover (S8).
"""

from dataclasses import replace
from itertools import pairwise
from math import radians, sin

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from holdfast.replay.analyse.analysis import Analysis, Frozen, Mark
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.report import picture

FAILOVER = Analysis(
    node="node-1",
    records=2,
    first_ms=1_000,
    last_ms=9_000,
    clock_offsets=((1_000, 0), (5_000, -600)),
    groups=(),
    rebalances=(),
    steps=(),
    restless=(),
    intervals=(),
    marks=(),
)


@pytest.mark.parametrize(
    ("wall_ms", "seconds"),
    [
        (4_000, 3.0),  # the old leader's time
        (4_999, 3.999),  # nobody led: still counted from the old leader's last word
        (6_000, 4.4),  # the new leader went on 0.6 s behind the wall
        (500, -0.5),  # before the first record
    ],
)
def test_a_mark_stands_where_the_log_was_at_that_moment(wall_ms: int, seconds: float) -> None:
    assert picture._seconds(wall_ms, FAILOVER) == seconds


def interval(owner: str, start_ms: int, end_ms: int) -> Interval:
    return Interval("g", "t", 0, owner, f"{owner}-1", 7, start_ms, end_ms, "generation", 0)


def test_a_frozen_owner_is_hatched_as_long_as_the_log_says_that_it_owns() -> None:
    """From the freeze, not from the end of its session; and nobody else's time is."""
    frozen = replace(FAILOVER, frozen=(Frozen("w-3", 3_000, 8_600),))
    lane = [
        interval("w-3", 2_000, 4_000),
        interval("w-1", 4_000, 5_000),
        interval("w-3", 6_000, 7_000),
        interval("w-3", 8_500, 9_000),
    ]

    assert picture._frozen_bars(lane, frozen) == [(2.0, 1.0), (5.0, 1.0)]
    assert picture._frozen_bars(lane, FAILOVER) == []


@pytest.mark.parametrize("apart_ms", [0, 40, 100, 1_000])
def test_no_label_of_a_mark_lies_on_another(apart_ms: int) -> None:
    """Slanted lines of text need their own height between them, measured across the slant."""
    marks = tuple(Mark(2_000 + n * apart_ms, f"bounce worker-{n}") for n in range(6))
    figure = Figure(figsize=(picture._WIDTH_INCHES, 6.0))
    axes = figure.add_subplot()
    axes.set_xlim(0, 8.0)
    picture._draw_marks(axes, replace(FAILOVER, marks=marks), 8.0)

    texts = [text for text in axes.texts if text.get_text()]
    places = [axes.transData.transform((text.get_position()[0], 0))[0] for text in texts]
    slant = sin(radians(texts[0].get_rotation()))
    for text in texts:
        text.set_rotation(0)
    height = max(
        Text.get_window_extent(text).height for text in texts
    )  # without the line to its mark
    apart = [(b - a) * slant for a, b in pairwise(places)]
    assert len(texts) == len(marks)
    assert min(apart) >= height
