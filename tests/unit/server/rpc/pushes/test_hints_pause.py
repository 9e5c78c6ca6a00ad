"""Who is asked for a target that may not be computed yet, and when (K-P15)."""

from __future__ import annotations

from holdfast.coordinator.model.events import SettingChange, SettingsChanged
from holdfast.server.rpc.pushes.one_by_one import SILENT_S
from unit.server.consumer_calls import beat
from unit.server.rpc.pushes.push_world import PushWorld, Reader
from unit.server.session_calls import run


def pause(world: PushWorld, interval_ms: int) -> None:
    """Have so much time between two targets of a group."""
    change = SettingChange("group.consumer_assignment_interval_ms", str(interval_ms))
    world.replica.slip_in("", SettingsChanged("", (change,)))


def test_p15_a_target_that_is_not_due_yet_is_asked_for_when_it_is() -> None:
    """K-P15: until then a heartbeat brings none, so nobody is asked for one; then one member is."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        pause(world, 10_000)
        await world.joins(reader, "a", "b", "c")
        computed_ms = world.replica.state.groups["g"].body.target_ms
        await world.says(Reader(), beat(-1, "c"))
        left_s = (computed_ms + 10_000 - world.replica.log_time_ms()) / 1000
        assert left_s > SILENT_S
        world.later.turn(left_s)
        assert reader.take() == []
        world.later.turn(0.001)
        assert len(reader.take()) == 1
        world.later.turn(SILENT_S)

        assert len(reader.take()) == 1, "the other, since the first was silent"

    run(story)


def test_p15_nobody_is_asked_for_a_target_that_has_come_by_then() -> None:
    """K-P15: here because the operator wants no pause any more."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        pause(world, 10_000)
        await world.joins(reader, "a", "b", "c")
        await world.says(Reader(), beat(-1, "c"))
        pause(world, 0)
        await world.plain(reader, "a")
        group = world.replica.state.groups["g"]
        assert group.body.assignment_epoch == group.generation
        reader.take()
        world.later.turn(60)

        assert reader.take() == []
        assert world.later.waiting == 0

    run(story)
