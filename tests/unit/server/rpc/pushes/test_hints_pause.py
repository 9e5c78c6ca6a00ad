"""Who is asked for a target that may not be computed yet, and when (K-P15)."""

from __future__ import annotations

from holdfast.coordinator.model.events import (
    SettingChange,
    SettingsChanged,
    TopicsCreated,
    TopicSize,
)
from holdfast.server.rpc.pushes.one_by_one import SILENT_S
from holdfast.v1 import group_pb2 as g
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


async def awaits(world: PushWorld, reader: Reader, interval_ms: int = 10_000) -> None:
    """A group of two waits for its next target."""
    pause(world, interval_ms)
    await world.joins(reader, "a", "b", "c")
    await world.says(Reader(), beat(-1, "c"))


def left_s(world: PushWorld, interval_ms: int = 10_000) -> float:
    """For how many seconds it still has to."""
    due_ms: int = world.replica.state.groups["g"].body.target_ms + interval_ms
    return (due_ms - world.replica.log_time_ms()) / 1000


async def is_led_anew(world: PushWorld) -> None:
    world.replica.step_down()
    assert world.later.waiting == 0, "who leads no more waits for nothing"
    world.replica.lead(2)
    await world.settle()


def test_p15_a_new_leader_asks_for_a_target_that_the_last_one_put_off() -> None:
    """K-P15: it finds what the group waits for as soon as a member is there that can be asked."""

    async def story() -> None:
        world, old, new = await PushWorld().lead(), Reader(), Reader()
        await awaits(world, old)
        world.carriers.close(old)
        await is_led_anew(world)
        assert world.later.waiting == 0, "there is nobody to ask"
        await world.plain(new, "a")
        await world.plain(new, "b")
        assert world.later.waiting == 1
        world.later.turn(left_s(world))
        assert new.take() == []
        world.later.turn(0.002)

        assert len(new.take()) == 1

    run(story)


def test_p15_who_leads_again_asks_those_whose_streams_it_still_has() -> None:
    """K-P15: their next heartbeats may be seconds away."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        await awaits(world, reader)
        await is_led_anew(world)
        world.later.turn(left_s(world) + 0.002)

        assert len(reader.take()) == 1

    run(story)


def test_p15_who_leads_again_after_a_target_came_due_asks_at_once() -> None:
    """K-P15: nobody did while there was no leader."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        await awaits(world, reader, interval_ms=4)
        world.replica.step_down()
        for name in ("u", "v", "w"):  # each takes a millisecond of log time
            assert left_s(world, interval_ms=4) > 0
            world.replica.slip_in("", TopicsCreated((TopicSize(name, 1),)))
        assert left_s(world, interval_ms=4) <= 0
        world.replica.lead(2)
        await world.settle()

        assert len(reader.take()) == 1

    run(story)


def test_k_m21_who_is_about_to_be_heard_is_not_asked_for_a_target_that_is_due() -> None:
    """K-M21: its heartbeat brings it; a push would have it beat twice."""

    async def story() -> None:
        world, old, new = await PushWorld().lead(), Reader(), Reader()
        await awaits(world, old, interval_ms=0)
        world.carriers.close(old)
        await is_led_anew(world)
        sent = world.pushes.sent
        await world.plain(new, "a")

        group = world.replica.state.groups["g"]
        assert group.body.assignment_epoch == group.generation
        assert world.pushes.sent == sent

    run(story)


def test_a_node_that_does_not_lead_asks_nobody_whom_it_comes_to_carry() -> None:
    """It could not answer the heartbeat."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        await awaits(world, reader)
        world.carriers.close(reader)
        world.replica.step_down()
        world.carriers.carry(Reader(), "g", "a", brings=True)

        assert world.later.waiting == 0

    run(story)


def test_p15_a_shorter_pause_has_the_target_asked_for_sooner() -> None:
    """K-P15: by the setting as it is now, not as it was when the group began to wait."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        await awaits(world, reader)
        pause(world, 4_000)
        world.later.turn(left_s(world, 4_000))
        assert reader.take() == []
        world.later.turn(0.002)

        assert len(reader.take()) == 1
        world.later.turn(SILENT_S)
        assert len(reader.take()) == 1
        assert world.later.waiting == 1, "and nobody a second time, at the end of the longer one"

    run(story)


def test_p15_a_longer_pause_has_the_target_asked_for_later() -> None:
    """K-P15: the heartbeat that is asked for too early brings nothing."""

    async def story() -> None:
        world, reader = await PushWorld().lead(), Reader()
        await awaits(world, reader)
        pause(world, 15_000)
        world.later.turn(left_s(world, 15_000))
        assert reader.take() == []
        world.later.turn(0.002)

        assert len(reader.take()) == 1

    run(story)


def test_p15_a_pause_that_ends_at_once_has_one_member_beat_in_each_group_that_waits() -> None:
    """K-P15: and in no other."""

    async def story() -> None:
        world, reader, other = await PushWorld().lead(t=4, u=4), Reader(), Reader()
        u = g.ConsumerGroupTopicNames(names=["u"])
        await awaits(world, reader)
        await world.joins(other, "x", "y", group_id="h", subscribed_topic_names=u)
        other.take()
        pause(world, 0)

        assert len(reader.take()) == 1
        assert other.take() == []

    run(story)
