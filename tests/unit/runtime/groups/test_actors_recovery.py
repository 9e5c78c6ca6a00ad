"""S13: after a restore nothing is served before the number is raised, and nobody stays a member."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.events import MembersRemoved, RecoveryNumberRaised
from holdfast.coordinator.model.ids import TOKEN_SPAN
from holdfast.coordinator.model.rejections import UnknownMemberId
from holdfast.coordinator.model.replies import HeartbeatReply, SyncReply
from holdfast.coordinator.model.state import State
from holdfast.runtime.errors import Loading
from holdfast.runtime.groups.actors import Actors
from unit.runtime.world import World, syncing

RAISE = c.RaiseRecoveryNumber(1, 5)


class Restored(World):
    """A node whose disk was restored, with a state in which a member owns something."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.replica = self._replica()
        self.replica.state = state
        nodes = {"node-1": "127.0.0.1:1"}
        self.actors = Actors(self.replica, self.timers, nodes, _never, RAISE)
        self.actors.listen()


def _never() -> c.FormCluster:
    pytest.fail("a cluster that is restored is formed")


async def backed_up() -> tuple[State, c.Heartbeat]:
    """A state with a member, and that member's heartbeat."""
    world = await World().lead()
    joined = await world.member()
    beat = c.Heartbeat(c.Caller(1), "g", joined.generation, joined.member_id, "i1")
    return world.replica.state, beat


def test_s13_nothing_is_served_before_the_number_is_raised() -> None:
    async def story() -> None:
        state, beat = await backed_up()
        world = Restored(state)
        world.replica.hold = True
        world.replica.lead(2)
        await world.settle()
        with pytest.raises(Loading):
            world.actors.open()
        assert not world.actors.is_serving
        world.actors.submit(beat)
        await world.settle()
        (part,) = world.replica.proposed
        assert [type(each.event) for each in part.events][-1] is RecoveryNumberRaised
        world.replica.release()
        await world.settle()
        world.actors.open()

    asyncio.run(story())


def test_s13_members_from_before_are_removed_before_they_are_heard() -> None:
    """Who owned something in the past that was lost must not keep it by a heartbeat."""

    async def story() -> None:
        state, beat = await backed_up()
        world = Restored(state)
        world.replica.lead(2)
        await world.until(lambda: world.replica.state.recovery_number == 1)
        answered = await world.ask(lambda call: _of(beat, call))
        assert isinstance(cast("HeartbeatReply", answered.reply).error, UnknownMemberId)
        assert len(world.events("MembersRemoved")) == 1
        joined = await world.join("i1")
        synced = await world.ask(syncing("i1", joined))
        token = cast("SyncReply", synced.reply).grant.fencing_token
        assert token > TOKEN_SPAN

    asyncio.run(story())


def test_s13_a_leader_that_dies_in_between_leaves_the_rest_to_the_next() -> None:
    """The number is raised, and the members are not removed yet, when the leadership is lost."""

    async def story() -> None:
        state, _ = await backed_up()
        world = Restored(state)
        world.replica.hold = True
        world.replica.lead(2)
        await world.settle()
        world.replica.release()
        world.replica.step_down()
        raised = world.replica.state
        after = Restored(raised)
        after.replica.lead(3)
        await after.until(lambda: bool(after.events("MembersRemoved")))
        (removed,) = after.events("MembersRemoved")
        assert isinstance(removed, MembersRemoved)
        assert not after.events("RecoveryNumberRaised")
        again = Restored(after.replica.state)
        again.replica.lead(4)
        await again.settle()
        assert not again.replica.proposed

    asyncio.run(story())


def _of(beat: c.Heartbeat, call: int) -> c.Command:
    return replace(beat, caller=c.Caller(call))
