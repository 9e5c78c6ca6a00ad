"""When boundaries of segments are set (S22)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.coordinator.model.commands import Command, SealSegment
from holdfast.coordinator.model.events import (
    Cause,
    Event,
    GroupCreated,
    HistoryCut,
    Record,
    RequestRecorded,
    SegmentSealed,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import Settings, State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.runtime.background.segment_roll import SegmentRoll
from holdfast.storage.errors import StateFailed
from unit.runtime.fake_history import FakeHistory

if TYPE_CHECKING:
    from unit.runtime.fake_replica import FakeReplica

DAY_MS = 24 * 3_600_000


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
        self.records: list[Record] = []
        self.history = FakeHistory(cast("FakeReplica", self))
        self.roll = SegmentRoll(cast("Any", self), cast("Any", self), self.history)

    def submit(self, command: Command) -> None:
        self.submitted.append(command)

    def apply(self, index: int, log_time_ms: int = 0, event: Event | None = None) -> None:
        self.apply_entry(index, log_time_ms, event or GroupCreated())

    def apply_entry(self, index: int, log_time_ms: int, *events: Event) -> None:
        self.record_bytes += 100 * len(events)
        records = [
            Record(Position(index, n), "g", 1, log_time_ms, 0, Cause("", ""), "", "", event)
            for n, event in enumerate(events)
        ]
        self.records += records
        self.state = self.state._replace(applied_index=index)
        for event in events:
            if isinstance(event, SegmentSealed):
                self.state = self.state._replace(sealed=event.last)
        self.roll.on_applied(records, index)

    def lead(self, term: int) -> None:
        """Let this node lead in a new term, and look at what older ones have left."""

        async def story() -> None:
            self.leading_term = term
            self.roll.on_leading(term)
            looking = self.roll._looking
            assert looking is not None
            await looking

        asyncio.run(story())


EVENTS_MIN = 10
UNSEALED = Position(0, 0)


def test_a_boundary_comes_behind_the_record_that_fills_a_segment_and_only_once() -> None:
    world = World(segment_events_max=EVENTS_MIN)
    for index in range(1, EVENTS_MIN + 5):
        world.apply(index)

    assert world.submitted == [SealSegment(Position(EVENTS_MIN, 0), UNSEALED)]


def test_counting_begins_anew_behind_a_boundary() -> None:
    world = World(segment_events_max=EVENTS_MIN)
    for index in range(1, EVENTS_MIN + 1):
        world.apply(index)
    world.apply(EVENTS_MIN + 1, event=SegmentSealed(Position(EVENTS_MIN, 0)))
    for index in range(EVENTS_MIN + 2, 2 * EVENTS_MIN + 2):
        world.apply(index)

    last, before = Position(2 * EVENTS_MIN + 1, 0), Position(EVENTS_MIN, 0)
    assert world.submitted[1:] == [SealSegment(last, before)]


def test_age_counts_by_log_time() -> None:
    age_ms = int(REGISTRY["log.segment_age_ms_max"].least)
    world = World(segment_age_ms_max=age_ms)
    world.apply(1, log_time_ms=1_000)
    world.apply(2, log_time_ms=1_000 + age_ms - 1)
    assert world.submitted == []

    world.apply(3, log_time_ms=1_000 + age_ms)
    assert world.submitted == [SealSegment(Position(3, 0), UNSEALED)]


@pytest.mark.parametrize("term", [0])
def test_a_node_that_does_not_lead_sets_none(term: int) -> None:
    world = World(segment_events_max=EVENTS_MIN)
    world.leading_term = term
    for index in range(1, EVENTS_MIN + 5):
        world.apply(index)

    assert world.submitted == []


def test_a_quiet_log_is_sealed_once_a_day() -> None:
    """S22: by the default; each segment has up to 17 files, and they are kept for ever."""
    world = World()
    world.apply(1, log_time_ms=1_000)
    world.apply(2, log_time_ms=1_000 + DAY_MS - 1)
    assert world.submitted == []

    world.apply(3, log_time_ms=1_000 + DAY_MS)
    assert world.submitted == [SealSegment(Position(3, 0), UNSEALED)]


def test_the_age_counts_from_the_oldest_record_whoever_led_then() -> None:
    """S22: with a change of leaders every night the age would never come to a day."""
    world = World()
    world.apply(1, log_time_ms=1_000)
    world.apply(2, log_time_ms=1_000 + DAY_MS // 2)
    world.lead(2)
    world.apply(3, log_time_ms=1_000 + DAY_MS)

    assert world.submitted == [SealSegment(Position(3, 0), UNSEALED)]


def test_the_record_of_a_boundary_makes_nothing_old() -> None:
    """S22: a log to which nothing was added for days is not sealed for its boundary's sake."""
    world = World()
    world.apply(1)
    world.apply(2, event=SegmentSealed(Position(1, 0)))
    world.lead(2)
    world.apply(3, log_time_ms=10 * DAY_MS)

    assert world.submitted == []


@pytest.mark.parametrize("led_before", [False, True])
def test_s24_a_log_that_only_cuts_itself_off_is_sealed_no_more(*, led_before: bool) -> None:
    """S24: else each cut would be sealed, and cut off in its turn, which is a record again."""
    world = World()
    world.apply(1)
    world.apply(2, event=SegmentSealed(Position(1, 0)))
    for day in range(1, 6):
        world.apply(2 + day, 2 * day * DAY_MS, HistoryCut(Position(1, 0), 1, b"digest"))
    if not led_before:
        world.lead(2)
    world.apply(8, 20 * DAY_MS, HistoryCut(Position(1, 0), 1, b"digest"))
    assert world.submitted == []

    world.apply(9, 21 * DAY_MS)
    world.apply(10, 22 * DAY_MS)
    assert world.submitted == [SealSegment(Position(10, 0), Position(1, 0))]


def test_s22_a_record_in_the_entry_of_a_boundary_grows_old_as_others_do() -> None:
    """Calls of one moment share an entry; the stored answer of SealLog is the boundary's own."""
    world = World()
    world.apply(1)
    sealed, answer = SegmentSealed(Position(1, 0)), RequestRecorded("id", b"d", b"a")
    world.apply_entry(2, 0, sealed, answer, GroupCreated())
    world.apply(3, DAY_MS)

    assert world.submitted == [SealSegment(Position(3, 0), Position(1, 0))]


def test_a_boundary_that_was_set_meanwhile_leaves_the_age_alone() -> None:
    """S22: what was found behind the boundary before it is sealed by now."""
    world = World()
    world.apply(1)

    async def story() -> None:
        world.roll.on_leading(world.leading_term)
        world.apply(2, event=SegmentSealed(Position(1, 0)))
        assert world.roll._looking is not None
        await world.roll._looking

    asyncio.run(story())
    world.apply(3, log_time_ms=DAY_MS)

    assert world.submitted == []


def test_a_history_that_cannot_be_read_costs_the_age_and_nothing_else() -> None:
    world = World()
    world.apply(1)
    world.history.failure = StateFailed(Path("state"), "read", "the disk says no", 5)
    world.lead(2)
    world.apply(2, log_time_ms=DAY_MS)
    world.apply(3, log_time_ms=2 * DAY_MS)

    assert world.submitted == [SealSegment(Position(3, 0), UNSEALED)]


def test_s22_after_an_operators_boundary_the_next_one_is_set_in_its_turn() -> None:
    """S22: the leader's own, which was under way, came to nothing: it was chosen before that."""
    world = World(segment_events_max=EVENTS_MIN)
    for index in range(1, EVENTS_MIN + 1):
        world.apply(index)
    world.apply(EVENTS_MIN + 1, event=SegmentSealed(Position(EVENTS_MIN - 1, 0)))
    for index in range(EVENTS_MIN + 2, 2 * EVENTS_MIN + 2):
        world.apply(index)

    last, before = Position(2 * EVENTS_MIN + 1, 0), Position(EVENTS_MIN - 1, 0)
    assert world.submitted[1:] == [SealSegment(last, before)]


def test_s22_a_new_leader_goes_on_counting_where_the_old_one_was() -> None:
    """Else no leader counts to a segment's size, if leaders change often."""
    world = World(segment_events_max=EVENTS_MIN)
    world.leading_term = 0
    for index in range(1, EVENTS_MIN):
        world.apply(index)
    world.lead(2)
    world.apply(EVENTS_MIN)

    assert world.submitted == [SealSegment(Position(EVENTS_MIN, 0), UNSEALED)]


def test_s22_what_came_while_a_boundary_was_on_its_way_grows_old_from_then_on() -> None:
    world = World()
    world.apply(1)
    world.apply(2, log_time_ms=1_000)
    world.apply(3, log_time_ms=1_000, event=SegmentSealed(Position(1, 0)))
    world.apply(4, log_time_ms=1_000 + DAY_MS)

    assert world.submitted == [SealSegment(Position(4, 0), Position(1, 0))]


def test_a_node_that_leads_no_longer_looks_back_no_more() -> None:
    world = World()

    async def story() -> bool:
        world.roll.on_leading(1)
        looking = world.roll._looking
        assert looking is not None
        world.roll.on_not_leading()
        await asyncio.wait([looking])
        return looking.cancelled()

    assert asyncio.run(story())
