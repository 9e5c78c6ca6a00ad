"""Workers sum up each stored record of each segment, as the segment's manifest does (S22)."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.replay.read import fast_sums
from holdfast.replay.read.fast_sums import fast_sum_rows, shares
from holdfast.replay.read.node_logs import NodeLog, node_log
from holdfast.replay.read.record_sums import sum_of_row
from holdfast.storage.segments.segment_writer import write_segment
from spark.event_logs import busy_log, write_node

LOG = busy_log(groups=2, commits=8)


@pytest.fixture
def log(tmp_path: Path) -> NodeLog:
    """Three segments, and a tail that repeats some of the last one's records."""
    write_node(tmp_path, "n1", LOG.rows[:25], cut_at=(10, 20))
    write_segment(tmp_path / "tail", LOG.rows[18:], "c", "n1")
    return node_log(tmp_path)


def test_s22_each_record_is_counted_as_often_as_it_is_stored(log: NodeLog) -> None:
    """What a manifest promises is of its own files, whatever another segment repeats."""
    told = [sum_of_row(row) for share in shares(log) for row in fast_sum_rows(share)]

    assert told == [
        (segment.key, (block.block, block.count, block.low, block.high))
        for segment in log.segments
        for block in segment.manifest.fast_blocks
    ]
    assert len(told) == len(log.segments) == 4


@pytest.mark.parametrize(
    ("records", "files", "tasks"),
    [
        ((1, 1_000), 1_000, 4),
        ((20, 1_000), 1_000, 2),
        ((1_000, 1_000), 1_000, 1),
        ((1_000, 1_000), 1, 4),
        ((1, 1), 1_000, 4),  # all of it is to be few tasks, but none is to have so much
    ],
)
def test_small_segments_share_a_task_and_each_is_in_one(
    records: tuple[int, int],
    files: int,
    tasks: int,
    log: NodeLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fast_sums, "_TASK_RECORDS", records)
    monkeypatch.setattr(fast_sums, "_TASK_FILES", files)

    found = list(shares(log))

    assert [files.key for share in found for files in share] == [s.key for s in log.segments]
    assert len(found) == tasks


def test_a_longer_log_has_longer_tasks(log: NodeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task has a price of its own, which a long log would pay many times."""
    monkeypatch.setattr(fast_sums, "_TASK_RECORDS", (1, 1_000))
    monkeypatch.setattr(fast_sums, "_TASKS", 2)

    assert len(list(shares(log))) == 2
