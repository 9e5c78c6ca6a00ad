"""How it is said when a disk is full, and what keeps history from being deleted."""

from __future__ import annotations

import pytest

from holdfast.cli.render.disk_outlook import disk, outlooks, size, span
from holdfast.v1.admin_pb2 import DescribeClusterResponse, HistoryFacts, NodeFacts

DAY_MS = 86_400_000
KEPT = "its disk does not become full: it grows by 3.0 MiB a day, as it did in 24 hours"
WAITS = "retention waits: others have cut off up to entry 90"


def node(name: str, **history: object) -> DescribeClusterResponse:
    told = HistoryFacts(**history)  # type: ignore[arg-type]  # as the test names them
    return DescribeClusterResponse(node=name, applied_index=70, facts=NodeFacts(history=told))


@pytest.mark.parametrize(
    ("history", "said"),
    [
        (HistoryFacts(), "when its disk is full is not known yet: too little history is sealed"),
        (
            HistoryFacts(measured_ms=DAY_MS, bytes_a_day=3 << 20, full_in_ms=40 * DAY_MS),
            "its disk is full in 40 days: it grows by 3.0 MiB a day, as it did in 24 hours",
        ),
        (
            HistoryFacts(measured_ms=DAY_MS, bytes_a_day=3 << 20),
            f"{KEPT}, and retention keeps it in bounds",
        ),
        (
            HistoryFacts(measured_ms=DAY_MS, bytes_a_day=1, full_in_ms=0),
            "its disk is full: changes are refused while it leads",
        ),
    ],
)
def test_a_disk_s_end_is_told(history: HistoryFacts, said: str) -> None:
    assert disk(history) == said


def test_a_disk_that_does_not_grow_is_not_kept_in_bounds_by_retention_that_is_off() -> None:
    said = disk(HistoryFacts(measured_ms=DAY_MS, bytes_a_day=0))

    assert said == "its disk does not become full: it grows by 0 bytes a day, as it did in 24 hours"


def test_each_node_says_what_is_deleted_and_what_stops_it() -> None:
    """A follower that has not come to the cut yet keeps what others have deleted."""
    said = outlooks(
        [
            node("a", segment_bytes=2048),
            node("b", retention=True, cut_index=90),
            node("c", retention=True, cut_index=9),
            node("d", retention=True, cut_index=90, hindrance="a backup is required"),
            DescribeClusterResponse(node="told nothing"),
        ]
    )

    endings = [line.split("; ", 1)[1] for line in said]
    assert [line[0] for line in said] == list("abcd")
    assert endings == [
        "retention is off, 2.0 KiB of history are kept",
        "retention is on, 0 bytes of history are kept",
        f"{WAITS}, and entries up to 70 are applied here",
        "retention is stopped, 0 bytes of history are kept: a backup is required",
    ]


def test_spans_and_sizes_have_one_unit() -> None:
    assert [span(ms) for ms in (59_999, 2 * 3_600_000, 2 * DAY_MS)] == [
        "0 minutes",
        "2 hours",
        "2 days",
    ]
    assert [size(count) for count in (5, 1 << 10, 5 << 29)] == ["5 bytes", "1.0 KiB", "2.5 GiB"]
