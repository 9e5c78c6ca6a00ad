"""S24: the leader proposes a cut when one is due, and only with a checkpoint of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness.core import Core
from harness.poll import until_async
from holdfast.coordinator.cluster.retention import SealedPart
from holdfast.coordinator.cluster.settings import applied
from holdfast.coordinator.model.commands import CutHistory, FormCluster, SealSegment
from holdfast.coordinator.model.events import Cause, Record, SettingChange, SettingsChanged
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.background.history_retention import HistoryRetention

if TYPE_CHECKING:
    from holdfast.coordinator.model.commands import Command
    from holdfast.coordinator.model.state import State

DAY = 24 * 3_600_000
NOW = 100 * DAY


class World:
    """A leader with one sealed segment that is ten days old."""

    def __init__(self, **bounds: int) -> None:
        core = Core()
        changes = tuple(
            SettingChange(f"log.retention_{key}", str(value)) for key, value in bounds.items()
        )
        core.submit(FormCluster("c", changes, 2))
        core.submit(SealSegment(Position(1, 0), core.state.sealed))
        self.state: State = core.state
        self.submitted: list[Command] = []
        self.looked = 0
        self.prepared: list[Position] = []
        self.refuses = False
        self.retention = HistoryRetention(cast("Any", self), cast("Any", self), self)

    def log_time_ms(self) -> int:
        return NOW

    def submit(self, command: Command) -> None:
        self.submitted.append(command)

    async def sealed(self) -> list[SealedPart]:
        self.looked += 1
        return [SealedPart(Position(1, 0), NOW - 10 * DAY, 5, 1_000)]

    async def prepare(self, last: Position) -> CutHistory:
        if self.refuses:
            raise OSError("a segment is damaged")
        self.prepared.append(last)
        return CutHistory(last, 7, b"digest")

    def look(self) -> None:
        asyncio.run(self.retention.look())


def test_s24_what_is_due_is_proposed_with_the_digest_of_the_leaders_own_checkpoint() -> None:
    world = World(ms=9 * DAY)

    world.look()

    assert world.prepared == [Position(1, 0)]
    assert world.submitted == [CutHistory(Position(1, 0), 7, b"digest")]


def test_s24_nobody_looks_at_the_disk_unless_retention_is_turned_on() -> None:
    world = World()

    world.look()

    assert (world.looked, world.submitted) == (0, [])


def test_s24_what_is_not_due_is_not_prepared() -> None:
    world = World(ms=11 * DAY, bytes=1_000)

    world.look()

    assert (world.looked, world.prepared, world.submitted) == (1, [], [])


def test_s24_without_a_checkpoint_nothing_is_proposed() -> None:
    world = World(bytes=0)
    world.refuses = True

    with pytest.raises(OSError, match="damaged"):
        world.look()
    assert world.submitted == []


def test_a_failure_is_told_and_the_leader_looks_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World(bytes=0, check_interval_ms=100)
    world.refuses = True

    async def story() -> None:
        world.retention.on_leading(1)
        await until_async(lambda: world.looked >= 2, "it looks again after a failure")
        assert world.retention.problem.endswith("cannot be cut off: a segment is damaged")
        world.refuses = False
        await until_async(lambda: bool(world.submitted), "it proposes a cut")
        assert not world.retention.problem
        world.retention.problem = "of this leader"
        world.retention.on_not_leading()
        assert not world.retention.problem

    asyncio.run(story())

    assert "nothing was deleted" in caplog.text


def test_s23_a_shorter_interval_counts_from_its_change_on() -> None:
    """Not from the end of the wait that was begun with the longer one."""
    world = World(bytes=0, check_interval_ms=DAY)

    async def story() -> None:
        world.retention.on_leading(1)
        await asyncio.sleep(0)
        event = SettingsChanged("", (SettingChange("log.retention_check_interval_ms", "100"),))
        changed = applied(world.state.settings, "", event.changes)
        world.state = world.state._replace(settings=changed)
        record = Record(Position(9, 0), "", 1, 0, 0, Cause("S23", "x"), "", "", event)
        world.retention.on_applied([record], 9)
        await until_async(lambda: bool(world.submitted), "it looks after the shorter interval")
        world.retention.on_not_leading()

    asyncio.run(story())
