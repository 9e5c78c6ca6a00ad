"""When boundaries of segments are set (S22)."""

from __future__ import annotations

import pytest

from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.coordinator.model.commands import Command, SealSegment
from holdfast.coordinator.model.events import Cause, Event, GroupCreated, Record, SegmentSealed
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import Settings, State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.runtime.background.segment_roll import SegmentRoll


class World:
    """As much of a replica and of the actors as boundaries look at."""

    def __init__(self, **limits: int) -> None:
        least = {f"log.{name}": str(value) for name, value in limits.items()}
        for key in least:
            assert key in REGISTRY
        self.state = State(cluster_id="c", settings=Settings(PMap(least)))
        self.leading_term = 1
        self.record_bytes = 0
        self.submitted: list[Command] = []
        self.roll = SegmentRoll(self, self)  # type: ignore[arg-type]  # all that it uses

    def submit(self, command: Command) -> None:
        self.submitted.append(command)

    def apply(self, index: int, log_time_ms: int = 0, event: Event | None = None) -> None:
        self.record_bytes += 100
        record = Record(
            Position(index, 0),
            "g",
            1,
            log_time_ms,
            0,
            Cause("", ""),
            "",
            "",
            event or GroupCreated(),
        )
        if isinstance(event, SegmentSealed):
            self.state = self.state._replace(sealed=event.last)
        self.roll.on_applied([record], index)


EVENTS_MIN = 10


def test_a_boundary_comes_behind_the_record_that_fills_a_segment_and_only_once() -> None:
    world = World(segment_events_max=EVENTS_MIN)
    for index in range(1, EVENTS_MIN + 5):
        world.apply(index)

    assert world.submitted == [SealSegment(Position(EVENTS_MIN, 0))]


def test_counting_begins_anew_behind_a_boundary() -> None:
    world = World(segment_events_max=EVENTS_MIN)
    for index in range(1, EVENTS_MIN + 1):
        world.apply(index)
    world.apply(EVENTS_MIN + 1, event=SegmentSealed(Position(EVENTS_MIN, 0)))
    for index in range(EVENTS_MIN + 2, 2 * EVENTS_MIN + 2):
        world.apply(index)

    assert world.submitted[1:] == [SealSegment(Position(2 * EVENTS_MIN + 1, 0))]


def test_age_counts_by_log_time() -> None:
    age_ms = int(REGISTRY["log.segment_age_ms_max"].least)
    world = World(segment_age_ms_max=age_ms)
    world.apply(1, log_time_ms=1_000)
    world.apply(2, log_time_ms=1_000 + age_ms - 1)
    assert world.submitted == []

    world.apply(3, log_time_ms=1_000 + age_ms)
    assert world.submitted == [SealSegment(Position(3, 0))]


@pytest.mark.parametrize("term", [0])
def test_a_node_that_does_not_lead_sets_none(term: int) -> None:
    world = World(segment_events_max=EVENTS_MIN)
    world.leading_term = term
    for index in range(1, EVENTS_MIN + 5):
        world.apply(index)

    assert world.submitted == []
