"""S7: ceilings hold although each group is decided by an actor of its own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.coordinator.groups import usage
from holdfast.coordinator.kernel.group_types import TYPES
from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.events import GroupCreated, SettingChange
from holdfast.coordinator.model.rejections import PolicyViolation
from holdfast.raft.api import Overloaded
from unit.runtime.world import World, committing, joining, with_topic

if TYPE_CHECKING:
    from holdfast.coordinator.model.replies import OffsetsReply
    from holdfast.runtime.groups.pending_calls import Answered

MOST = 5


async def small() -> World:
    """A node that leads and may have few groups."""
    made = await World().lead()
    await with_topic(made)
    await limited(made, "cluster.groups_max", MOST)
    return made


async def limited(world: World, name: str, most: int) -> None:
    change = (SettingChange(name, str(most)),)
    await world.ask(lambda call: c.AlterSettings(c.Caller(call), "", change))


def refused(answers: list[Answered]) -> list[Answered]:
    replies = (cast("OffsetsReply", each.reply) for each in answers)
    return [reply for reply in replies if isinstance(reply.error, PolicyViolation)]  # type: ignore[misc]  # as replies


def test_s7_groups_made_in_one_turn_stop_at_the_ceiling() -> None:
    """All are decided on the same state, before any is committed: each counts the others."""

    async def script() -> None:
        world = await small()
        world.replica.hold = True
        calls = [world.ask(committing(f"g{number}", 1)) for number in range(3 * MOST)]
        await world.settle()
        world.replica.hold = False
        world.replica.release()
        answers = await asyncio.gather(*calls)

        assert len(world.replica.state.groups) == MOST
        assert len(refused(answers)) == 2 * MOST
        assert len(world.events("GroupCreated")) == MOST

    asyncio.run(script())


def test_s7_what_was_not_committed_takes_no_room() -> None:

    async def script() -> None:
        world = await small()
        for number in range(3 * MOST):
            world.replica.fail_next = Overloaded("busy")
            with pytest.raises(Exception, match="busy"):
                await world.ask(committing(f"g{number}", 1))
        answers = [await world.ask(committing(f"h{number}", 1)) for number in range(MOST)]

        assert refused(answers) == []
        assert world.actors.used() == usage.of(world.replica.state, TYPES)

    asyncio.run(script())


def test_s7_what_another_leader_has_made_counts() -> None:

    async def script() -> None:
        world = await small()
        for number in range(MOST):
            await world.ask(committing(f"g{number}", 1))
        world.ask(joining("i1", group="g0"))
        await world.settle()
        world.replica.step_down()
        assert world.actors.used() == usage.of(world.replica.state, TYPES)
        world.replica.leading_term = 2
        world.replica.slip_in("other", GroupCreated())
        world.replica.leading_term = 0
        world.replica.lead(term=3)

        assert world.actors.used() == usage.of(world.replica.state, TYPES)
        assert refused([await world.ask(committing("one-more", 1))]) != []

    asyncio.run(script())


def test_s7_member_ids_handed_out_count_until_their_time_is_over() -> None:

    async def script() -> None:
        world = await small()
        await limited(world, "cluster.members_max", 2)

        def asks(group: str) -> asyncio.Task[Answered]:
            made = joining("", group=group, fresh=f"m-{group}")
            return world.ask(lambda call: _dynamic(made(call)))

        answers = [await asks(f"g{number}") for number in range(3)]
        assert len(refused(answers)) == 1
        assert world.actors.used().members == 2
        await world.at(world.now_ms + 10_000)

        assert world.actors.used().members == 0
        assert refused([await asks("g0")]) == []

    asyncio.run(script())


def _dynamic(command: c.Command) -> c.Command:
    assert isinstance(command, c.JoinGroup)
    return replace(command, instance_id=None)
