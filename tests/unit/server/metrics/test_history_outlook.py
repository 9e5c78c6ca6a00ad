"""What a node says of its disk and its history: one judgement for status, doctor and metrics."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.cluster.disk_forecast import DAY_MS
from holdfast.coordinator.cluster.retention import SealedPart
from holdfast.coordinator.model.events import HistoryCut
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import Settings, State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.server.metrics.history_outlook import HistoryOutlook, Outlook
from holdfast.storage.disk.files import room_left
from holdfast.storage.segments.adopt import Gap

if TYPE_CHECKING:
    from holdfast.runtime.ports import ReplicaLike

HOUR = 3_600_000
NOW = 100 * DAY_MS
CUT = HistoryCut(Position(9, 1), 5, b"digest")


class Cuts:
    problem = ""

    def __init__(self, *parts: SealedPart) -> None:
        self.parts = list(parts)
        self.failure: Exception | None = None
        self.asked = asyncio.Event()
        self.asked_where = 0

    async def sealed(self) -> list[SealedPart]:
        self.asked.set()
        if self.failure:
            raise self.failure
        return self.parts

    async def reached(self) -> Position:
        self.asked_where += 1
        if self.failure:
            raise self.failure
        return self.parts[-1].last if self.parts else Position(0, 0)


class Proposes:
    problem = ""


class Replica:
    """The part that is needed."""

    state = State(raised_to=2, sealed=Position(50, 0))
    now_ms = NOW

    def log_time_ms(self) -> int:
        return self.now_ms


class World:
    """A node with hourly segments of 1 MiB, of which the oldest is a day old."""

    def __init__(self, place: Path, count: int = 25) -> None:
        self.replica, self.proposes, self.others = Replica(), Proposes(), 1_000
        self.gaps: tuple[Gap, ...] | None = ()
        self.problem = ""
        hours = range(count - 1, -1, -1)
        parts = [SealedPart(Position(25 - h, 0), NOW - h * HOUR, 10, 1 << 20) for h in hours]
        self.cuts = Cuts(*parts)
        replica: ReplicaLike = self.replica  # type: ignore[assignment]  # the part that is needed
        self.outlook = HistoryOutlook(
            *(replica, self.cuts, self.proposes, place, 0),
            *(lambda: self.others, lambda: self.gaps, lambda: self.problem),
        )

    def told(self) -> Outlook:
        async def look() -> Outlook:
            await self.outlook.sample()
            return await self.outlook.told()

        return asyncio.run(look())

    def delete(self, **bounds: int) -> None:
        keys = ((f"log.retention_{name}", str(value)) for name, value in bounds.items())
        self.replica.state = self.replica.state._replace(settings=Settings(PMap(keys)))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_node_whose_history_is_kept_for_ever_says_when_its_disk_is_full(
    world: World, tmp_path: Path
) -> None:
    told = world.told()

    assert (told.on, told.hindrance, told.segment_bytes) == (False, "", 25 << 20)
    growth, full_in_ms = told.forecast
    assert growth is not None
    assert (growth.bytes_a_day, growth.measured_ms) == (24 << 20, 24 * HOUR)
    assert full_in_ms is not None
    assert full_in_ms == pytest.approx(room_left(tmp_path, 0) * DAY_MS / (24 << 20), rel=0.05)


def test_before_anything_was_looked_at_nothing_is_known(world: World) -> None:
    told = asyncio.run(world.outlook.told())

    assert told.forecast == (None, None)


def test_s24_with_retention_the_disk_does_not_become_full(world: World) -> None:
    world.delete(ms=DAY_MS)

    told = world.told()

    assert (told.on, told.hindrance) == (True, "")
    assert told.forecast.full_in_ms is None


def test_s24_what_stops_retention_is_said_and_the_forecast_counts_on_no_deletion(
    world: World,
) -> None:
    world.delete(ms=0, min_ms=0, require_backup=1)
    told = world.told()
    assert "a backup is required" in told.hindrance
    assert told.forecast.full_in_ms is not None

    world.delete(ms=0, min_ms=0)
    world.proposes.problem = "the history cannot be cut off: the rules refuse a record"
    told = world.told()
    assert "the rules refuse a record" in told.hindrance
    assert told.forecast.full_in_ms is not None

    world.replica.state = world.replica.state._replace(history_cut=CUT)
    world.cuts.problem = "there is no checkpoint"
    told = world.told()
    assert told.hindrance == "the cut at 9.1 is not carried out: there is no checkpoint"
    assert told.cut_index == 9


def test_journal_and_state_that_grow_count_as_well(world: World) -> None:
    """Over less than ten minutes they are chance; what becomes smaller takes nothing away."""
    world.told()
    for now_ms, others, more in (
        (NOW + 60_000, 9_000_000, 0),
        (NOW + HOUR, 1_000 + (1 << 20), 24 << 20),
        (NOW + HOUR, 10, 0),
    ):
        world.replica.now_ms, world.others = now_ms, others
        growth = world.told().forecast.growth
        assert growth is not None
        assert growth.bytes_a_day == (24 << 20) + more


def test_files_that_cannot_be_read_end_no_task(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.cuts.failure = OSError("no")

    async def story() -> None:
        task = asyncio.create_task(world.outlook.run())
        await asyncio.wait_for(world.cuts.asked.wait(), 20)
        await asyncio.sleep(0)  # the task takes the error in
        assert not task.done()
        task.cancel()

    asyncio.run(story())
    assert "is not known: no" in caplog.text


def test_s22_a_node_tells_up_to_where_it_has_sealed_as_soon_as_it_has(world: World) -> None:
    """S22: who asked for a boundary waits for it; each node seals in its turn."""

    async def story() -> list[Position]:
        before = (await world.outlook.told()).sealed
        world.cuts.parts.append(SealedPart(Position(50, 0), NOW, 10, 1 << 20))
        return [before, (await world.outlook.told()).sealed, (await world.outlook.told()).sealed]

    assert asyncio.run(story()) == [Position(25, 0), Position(50, 0), Position(50, 0)]
    assert world.cuts.asked_where == 2


def test_s24_what_was_cut_off_was_sealed(world: World) -> None:
    """S24: retention may have deleted every segment."""
    world.cuts.parts.clear()
    world.replica.state = world.replica.state._replace(history_cut=CUT)

    assert asyncio.run(world.outlook.told()).sealed == CUT.last


def test_s22_a_node_that_lacks_segments_tells_how_far_there_is_no_gap(world: World) -> None:
    """S22: after the install of a snapshot it may seal what is new before it has fetched the rest.

    Who asked for a boundary would take it for done, and publish a log with a hole.
    """
    world.cuts.parts.append(SealedPart(Position(50, 0), NOW, 10, 1 << 20))
    assert asyncio.run(world.outlook.told()).sealed == Position(50, 0)

    later = Gap(Position(40, 0), Position(45, 0))
    world.gaps = (Gap(Position(30, 2), Position(35, 0)), later)
    assert asyncio.run(world.outlook.told()).sealed == Position(30, 2)

    world.gaps = ()
    assert asyncio.run(world.outlook.told()).sealed == Position(50, 0)


def test_s22_a_gap_ahead_of_all_that_is_sealed_takes_nothing_away(world: World) -> None:
    """The event log may begin behind it, and what is sealed still has no gap."""
    world.gaps = (Gap(Position(25, 0), Position(50, 0)),)

    assert asyncio.run(world.outlook.told()).sealed == Position(25, 0)


def test_s22_a_node_that_does_not_know_yet_what_it_lacks_tells_what_was_cut_off(
    world: World,
) -> None:
    """It was just started, or a snapshot installed; what is cut off nobody lacks (S24)."""
    world.gaps = None
    assert asyncio.run(world.outlook.told()).sealed == Position(0, 0)

    world.replica.state = world.replica.state._replace(history_cut=CUT)
    assert asyncio.run(world.outlook.told()).sealed == CUT.last


def test_a_segment_that_cannot_be_looked_at_ends_no_answer(world: World) -> None:
    world.cuts.failure = OSError("the disk failed")
    told = asyncio.run(world.outlook.told())

    assert (told.sealed, told.sealing_problem) == (Position(0, 0), "the disk failed")

    world.cuts.failure = None
    told = asyncio.run(world.outlook.told())

    assert (told.sealed, told.sealing_problem) == (Position(25, 0), "")


def test_s22_what_keeps_a_node_from_sealing_is_told_with_what_is_known(world: World) -> None:
    """S22: who waits for a boundary has to learn why it does not come."""
    world.problem = "the sealed segment X cannot be read"
    told = asyncio.run(world.outlook.told())
    assert (told.sealed, told.sealing_problem) == (Position(25, 0), world.problem)

    world.gaps = None  # since they cannot be known, either
    told = asyncio.run(world.outlook.told())
    assert (told.sealed, told.sealing_problem) == (Position(0, 0), world.problem)
