"""Ranges that a node lacks: found for thousands of segments without comparing each with each."""

from __future__ import annotations

import random
from pathlib import Path
from typing import cast

import pytest

from holdfast.coordinator.model.ids import Position
from holdfast.replay.read.log_rows import START, Beginning
from holdfast.replay.read.node_logs import (
    NodeLog,
    Range,
    Segment,
    missing_ranges,
    node_logs,
)
from holdfast.replay.verify.node_comparison import nothing_sealed
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import Manifest
from spark.event_logs import busy_log, write_node


def log(node: str, ranges: list[Range], cut: Position = START) -> NodeLog:
    unread = cast("Manifest", None)
    segments = (Segment(Path(node), unread, START, sealed=True, held=each) for each in ranges)
    return NodeLog(node, tuple(segments), begins=Beginning(cut))


def some_ranges(chance: random.Random) -> list[Range]:
    edges = sorted(chance.sample(range(1, 60), 12))
    pairs = [(edges[n], edges[n + chance.choice([1, 2, 3])]) for n in range(len(edges) - 3)]
    kept = [pair for pair in pairs if chance.random() < 0.7]
    return [Range(Position(first, 0), Position(last - 1, 1)) for first, last in kept]


def needed(wanted: Range, by: NodeLog) -> bool:
    """The rule: no segment holds its first place, or none its last, and it was not cut off."""
    ends = [segment.ends for segment in by.segments]
    inside = (any(first <= place <= last for first, last in ends) for place in wanted)
    return not (all(inside) or wanted.last <= by.begins.last)


@pytest.mark.parametrize("seed", range(200))
def test_s22_what_no_segment_holds_is_missing(seed: int) -> None:
    """Segments overlap, have other boundaries on other nodes, and begin behind checkpoints."""
    chance = random.Random(seed)
    cuts = [START, START, Position(chance.randrange(30), 0)]
    logs = [log(f"n{n}", some_ranges(chance), cut) for n, cut in enumerate(cuts)]
    sealed = sorted({segment.ends for each in logs for segment in each.segments})

    assert missing_ranges(logs) == {
        each.node: [one for one in sealed if needed(one, each)] for each in logs
    }


def test_ten_thousand_segments_on_three_nodes_are_compared() -> None:
    """Each with each would be nine hundred million comparisons."""
    ranges = [Range(Position(n, 0), Position(n, 9)) for n in range(10_000)]
    logs = [log("n0", ranges), log("n1", ranges[:-1]), log("n2", ranges[1:])]

    assert missing_ranges(logs) == {"n0": [], "n1": ranges[-1:], "n2": ranges[:1]}


@pytest.mark.parametrize("beyond", [False, True])
def test_an_exported_tail_of_another_cluster_is_found_wherever_it_ends(
    *, beyond: bool, tmp_path: Path
) -> None:
    """Also where sealed segments go further than it does, so that nothing of it would be read."""
    rows = busy_log().rows
    node = write_node(tmp_path / "n1", "n1", rows[: 30 if beyond else 50], (20,))
    write_segment(node / "tail", rows[:40], "other", "n1")

    (log,) = node_logs([node])

    assert [(finding.kind, finding.node) for finding in log.findings] == [("foreign", "n1")]
    assert {segment.manifest.cluster_id for segment in log.segments} == {"c"}


@pytest.mark.parametrize("place", ["data", "node-2/data"])
def test_whoever_is_one_or_two_levels_too_high_is_told_where_the_data_is(
    place: str, tmp_path: Path
) -> None:
    (tmp_path / place / "raft").mkdir(parents=True)

    (finding,) = nothing_sealed(node_logs([tmp_path])).findings

    assert f"{tmp_path / place} is the data directory of a node" in finding.text
