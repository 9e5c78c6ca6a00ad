"""S22: nodes that have sealed the same are told from those that have not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.chaos.cluster.segments import (
    Sealed,
    asked_for,
    differences,
    last_boundary,
    late,
    sealed_in,
    through,
)
from holdfast.coordinator.model.ids import Position
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.v1.events_pb2 import EventRecord
from unit.storage.segments.sealed_history import history

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("nodes"))


class Made:
    """A log in three segments on one node, and in other ways on others."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.first = history(path / "n1")
        self.own = sealed_in(self.first.segments)

    def written(self, name: str, *ends: Position) -> list[Sealed]:
        """What a node has that ends its segments there."""
        folder, done = self.path / name, Position(0, 0)
        for end in ends:
            rows = [row for row in self.first.rows_through(end) if row.position > done]
            write_segment(folder, rows, "c", name)
            done = end
        return sealed_in(folder)


def test_nodes_that_have_the_same_are_found_alike(made: Made) -> None:
    theirs = made.written("n2", *made.first.boundaries)

    assert len(made.own) == 3
    assert differences({"n1": made.own, "n2": theirs, "n3": made.own}) == []


def test_s22_two_boundaries_in_one_segment_are_a_difference(made: Made) -> None:
    """The records are the same, and files cannot be compared, fetched or published alike."""
    merged = made.written("n4", *made.first.boundaries[1:])

    (what,) = differences({"n1": made.own, "n2": made.own, "n4": merged})

    assert what.startswith("n1 and n4 have sealed differently: 1.0 to")


def test_other_records_are_a_difference(made: Made) -> None:
    changed = [*made.own[:2], made.own[2]._replace(blocks=made.own[1].blocks)]

    (what,) = differences({"n1": made.own, "n2": changed})

    assert what == f"n1 and n2 have different records in the segment {made.own[2]}"


def test_a_segment_that_one_node_lacks_is_a_difference(made: Made) -> None:
    (what,) = differences({"n1": made.own, "n2": made.own[:2]})

    assert what == f"n1 and n2 have sealed differently: {made.own[2]} on n1, nothing on n2"


def test_what_is_sealed_behind_the_boundary_is_not_compared(made: Made) -> None:
    """Records go on while logs are read: one node may have sealed them, and another not yet."""
    boundary = made.first.boundaries[1]
    merged = made.written("n5", made.first.boundaries[0], made.first.boundaries[2])

    ahead, behind, across = (through(own, boundary) for own in (made.own, made.own[:2], merged))

    assert differences({"n1": ahead, "n2": behind}) == []
    assert len(differences({"n1": ahead, "n5": across})) == 1


def test_a_node_that_has_not_come_to_the_last_boundary_is_late(made: Made) -> None:
    """They seal one after another, so the comparison waits; a node may have none at all."""
    nodes = {"n1": made.own, "n2": made.own[:2], "n3": []}

    assert late(nodes, made.first.boundaries[2]) == ["n2", "n3"]
    assert late(nodes, Position(0, 0)) == []


def test_the_log_tells_the_last_boundary(made: Made) -> None:
    records = [EventRecord.FromString(row.content) for row in made.first.log.rows]

    assert last_boundary(records) == made.first.boundaries[-1]
    assert last_boundary([]) == Position(0, 0)


def test_s22_only_boundaries_that_a_call_has_set_are_counted_as_asked_for() -> None:
    """S22: the leader sets some by itself, so segments alone do not show that a call did anything.

    A run whose calls were all refused has proved nothing of them.
    """

    def boundary(command: str) -> EventRecord:
        record = EventRecord()
        record.event.segment_sealed.SetInParent()
        record.event.command = command
        return record

    stored_answer = EventRecord()
    stored_answer.event.request_recorded.SetInParent()
    stored_answer.event.command = "SealLog"

    assert asked_for([boundary("SealSegment"), stored_answer]) == 0
    assert asked_for([boundary("SealLog"), boundary("SealSegment"), boundary("SealLog")]) == 2
