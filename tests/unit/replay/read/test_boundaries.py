"""S22: all nodes have the same boundaries; what earlier builds joined accuses nobody."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from holdfast.coordinator.model.ids import Position
from holdfast.replay.read.boundaries import check_boundaries
from holdfast.replay.read.log_rows import START
from holdfast.replay.read.node_logs import NodeLog, Range, Segment
from holdfast.storage.segments.segments import Manifest


def log(node: str, *ranges: tuple[int, int]) -> NodeLog:
    """A node whose segments hold the records of these entries."""
    unread = cast("Manifest", None)
    held = [Range(Position(first, 0), Position(last, 9)) for first, last in ranges]
    segments = (Segment(Path(f"{r}"), unread, START, sealed=True, held=r) for r in held)
    return NodeLog(node, tuple(segments))


NEW = [(1, 5), (6, 8), (9, 12), (13, 20)]


def found(*joined: tuple[int, int]) -> tuple[list[str], list[str]]:
    """What is found of a node with these segments, beside two that have one for each boundary."""
    findings, notes = check_boundaries([log("n1", *NEW), log("n2", *NEW), log("n3", *joined)])
    assert {each.node for each in findings} <= {"n3"}
    return [each.text for each in findings], notes


BEYOND = "it goes on behind {}, where most nodes have sealed their logs"


def test_a_segment_that_holds_what_others_have_in_two_is_a_note() -> None:
    """As an upgrade leaves them: nothing is lost, and a node never writes them anew."""
    note = "of node n3, {} over boundaries at which others have sealed; builds before this one"

    assert found(*NEW) == ([], [])
    assert found((1, 8), *NEW[2:]) == ([], [f"{note.format('1 segment reaches')} could join them"])
    assert found((1, 8), (9, 20)) == ([], [f"{note.format('2 segments reach')} could join them"])
    assert found(NEW[0], (6, 12), NEW[3])[0] == []


def test_what_a_cut_has_left_of_the_nodes_may_begin_with_such_a_segment() -> None:
    """Others cut off what was before 6, and a node whose segment reaches over it could not."""
    others = [log(node, *NEW[1:]) for node in ("n1", "n2")]

    findings, notes = check_boundaries([*others, log("n3", (1, 8), *NEW[2:])])
    assert (findings, notes) == ([], [])
    findings, notes = check_boundaries([*others, log("n3", (1, 12), NEW[3])])

    assert findings == []
    assert len(notes) == 1


def test_a_segment_that_ends_or_begins_where_no_other_does_is_a_finding() -> None:
    """No build joined so: nodes seal where the log says."""
    at = [f"{place}.9" for place in (5, 8, 12)]

    assert found((1, 10), (11, 12), NEW[3]) == ([BEYOND.format(at[0]), BEYOND.format(at[1])], [])
    assert found(NEW[0], (7, 12), NEW[3]) == ([BEYOND.format(at[1])], [])
    assert found((1, 21)) == ([BEYOND.format(f"{place}.9") for place in (5, 8, 12, 20)], [])


def test_a_segment_twice_does_not_make_an_end_that_others_have() -> None:
    """A node's own copies are no other node's word; they overlap, too."""
    sentences, notes = found((1, 10), (1, 10), (11, 12), NEW[3])

    assert BEYOND.format("5.9") in sentences
    assert notes == []
