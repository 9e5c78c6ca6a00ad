"""The difference of log time and wall time: known answers."""

from __future__ import annotations

import pyarrow as pa

from holdfast.replay.analyse.one_pass.clock import Clock, clock_offsets


def test_the_clock_is_told_from_where_on_it_differs_by_another_step() -> None:
    """Log time is 0 to 10 ms ahead from wall time 100 on, and 70 ms behind from 500 on."""
    clock = Clock()
    for log_ms, wall_ms in ((110, 100), (200, 200), (330, 330), (430, 500), (530, 600)):
        columns = {"log_time_ms": [log_ms], "wall_time_ms": [wall_ms]}
        clock.take(pa.RecordBatch.from_pydict(columns))

    assert clock_offsets(clock.ticks()) == ((100, 0), (500, -70))
