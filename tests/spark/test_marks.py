"""Marks carry wall time, the picture has log time; the two part at each failover (S8)."""

import pytest

from holdfast.replay import picture
from holdfast.replay.analyse import Analysis, Mark

FAILOVER = Analysis(
    node="node-1",
    records=2,
    first_ms=1_000,
    last_ms=9_000,
    clock_offsets=((1_000, 0), (5_000, -600)),
    groups=(),
    rounds=(),
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
    assert picture._seconds(Mark(wall_ms, "mark"), FAILOVER) == seconds
