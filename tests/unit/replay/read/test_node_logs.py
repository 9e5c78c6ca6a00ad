"""Ranges that a node lacks: found for thousands of segments without comparing each with each."""

from __future__ import annotations

import random
from pathlib import Path
from typing import cast

import pytest

from holdfast.coordinator.model.ids import Position
from holdfast.replay.read.log_rows import START, Beginning
from holdfast.replay.read.node_logs import NodeLog, Range, Segment, missing_ranges
from holdfast.storage.segments.segments import Manifest


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
