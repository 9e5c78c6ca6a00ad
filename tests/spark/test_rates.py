"""Commits and spans of time: known answers."""

from __future__ import annotations

from pyspark.sql import SparkSession

from holdfast.replay.analyse.analysis import Commits
from holdfast.replay.analyse.jobs.rates import BARS_MAX, bar_ms, caused, commit_frame

COMMITTED = (
    "grp string, type string, log_time_ms bigint, "
    "offsets array<struct<topic: string, partition: int, offset: bigint>>"
)


def test_commits_are_told_by_the_time_between_them(spark: SparkSession) -> None:
    """t/0 at 0, 100 and 400; t/1 at 100 alone: two steps of 200 ms on average, 900 ms silence."""
    rows = [
        ("g", "OffsetsCommitted", 0, [("t", 0, 1)]),
        ("g", "OffsetsCommitted", 100, [("t", 0, 2), ("t", 1, 7)]),
        ("g", "MemberJoined", 300, None),
        ("g", "OffsetsCommitted", 400, [("t", 0, 3)]),
        ("h", "OffsetsCommitted", 990, [("t", 0, 3)]),
    ]
    found = commit_frame(spark.createDataFrame(rows, COMMITTED), 1_000).collect()

    assert [Commits(**row.asDict()) for row in found] == [
        Commits("g", 2, 4, 200, "t/1", 900),
        Commits("h", 1, 1, None, "t/0", 10),
    ]


def test_a_cause_has_no_free_text_of_a_member_in_it(spark: SparkSession) -> None:
    rows = [
        ("JoinGroup", "new member m-1"),
        ("ConsumerGroupHeartbeat", "joined"),
        ("", "first"),
    ]
    found = caused(spark.createDataFrame(rows, "command string, reason string")).collect()

    assert [row.cause for row in found] == ["JoinGroup", "joined", "first"]


def test_bars_are_round_spans_and_not_too_many() -> None:
    hour = 3_600_000
    for span_ms in (1, 119_000, 121_000, hour, 30 * 24 * hour, 3_000 * 24 * hour):
        width = bar_ms(span_ms)
        assert width % 1_000 == 0
        assert width * BARS_MAX >= span_ms
    assert bar_ms(2 * hour) == 60_000
