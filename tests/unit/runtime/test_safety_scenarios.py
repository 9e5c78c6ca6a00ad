"""The scenarios of the safety rules that need actors, a clock and a log: what they prevent."""

from __future__ import annotations

import asyncio

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.events import SettingChange
from unit.runtime.trio import Trio, joined, joining
from unit.runtime.world import World
from unit.runtime.world import joining as joining_alone


def test_s9_late_a_dead_member_does_not_outlive_the_rebalance_of_another() -> None:
    """Its expiry is judged behind a join that opens a rebalance, and must not be lost there."""

    async def story() -> None:
        world = await World().lead()
        dead = await world.member("i1")
        world.replica.hold = True
        other = world.ask(joining_alone("i2"))
        await world.until(lambda: world.replica.waits)
        await world.at(11_001)
        world.replica.hold = False
        world.replica.release()
        await world.settle()
        for now_ms in range(12_000, 60_000, 1_000):
            await world.at(now_ms)
        await world.until(other.done)

        assert dead.member_id not in world.replica.state.groups["g"].body.members

    asyncio.run(story())


def test_s23_a_failover_changes_no_rule_whatever_the_next_leaders_file_says() -> None:
    """The next leader's own file allows one member a group; the log allows two."""

    async def story() -> None:
        trio = Trio()
        strict = c.FormCluster("c", (SettingChange("group.max_size", "1"),))
        for node in trio.nodes[1:]:
            node.actors._forming = lambda: strict
        await trio.elect()
        change = (SettingChange("group.max_size", "2"),)
        await trio.leader.ask(lambda call: c.AlterSettings(c.Caller(call), "", change))
        await trio.fail_over()

        first = trio.ask(joining("i1"))
        second = trio.ask(joining("i2"))
        errors = [(await joined(call)).error for call in (first, second)]
        third = await joined(trio.ask(joining("i3")))
        trio.close()

        assert errors == [None, None]
        assert third.error is not None, "the log's own limit holds"

    asyncio.run(story())
