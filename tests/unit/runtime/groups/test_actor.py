"""A group has one actor as long as there is something to decide, and none that decides later.

Forgotten too early it would have a second one beside it; going on too long it would change what
somebody was told has not changed (S1, S2, S5, S16).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.ids import Position, TopicPartition
from holdfast.raft.api import DiskLow
from holdfast.runtime.errors import CommandFailed, NotCoordinator, Stopping
from unit.runtime.world import (
    World,
    committing,
    creating,
    deleting,
    joining,
    removing_nobody,
    with_topic,
)

if TYPE_CHECKING:
    from holdfast.coordinator.model.replies import JoinReply
    from holdfast.runtime.groups.actor import Actor


@pytest.mark.parametrize("nothing", ["a topic that is not there", "a group without a name"])
def test_s2_one_batch_of_a_group_is_under_way_also_when_what_waited_records_nothing(
    nothing: str,
) -> None:
    """S2: an actor was forgotten while it still held what came after a command without events.

    The next command made a second actor, which decided on the same version of the group; of the
    two parts in one entry both were called skipped, so that who had made a topic was told that it
    existed already. A transcript found it, for joins with an empty group id come to the cluster's
    actor.
    """
    records_nothing = joining("i1", group="") if "group" in nothing else deleting("nobody's")

    async def story() -> None:
        world = await World().lead()
        world.replica.hold = True
        calls = [world.ask(creating("first"))]
        await world.until(lambda: world.replica.waits)
        calls += [world.ask(make) for make in (records_nothing, creating("second"))]
        await world.settle()
        world.replica.release()
        await world.until(lambda: world.replica.waits)
        calls.append(world.ask(creating("third")))
        await world.settle()
        under_way = len(world.replica.proposed)
        world.replica.hold = False
        world.replica.release()
        await asyncio.gather(*calls)

        assert [part.group_id for part in world.replica.proposed[1:under_way]] == ["", ""]
        assert {*world.replica.state.topics} == {"first", "second", "third"}

    asyncio.run(story())


def test_s16_who_waits_in_a_group_that_was_just_deleted_is_not_forgotten() -> None:
    """S16: the group that a join makes anew has one volatile part, with everyone parked in it."""

    async def story() -> None:
        world = await World().lead()
        await with_topic(world)
        await world.ask(committing("g", 1))
        world.replica.hold = True
        deleted = world.ask(lambda call: c.DeleteGroup(c.Caller(call), "g"))
        await world.until(lambda: world.replica.waits)
        left = world.ask(removing_nobody("g"))
        joins = [world.ask(joining("i1"))]
        await world.settle()
        world.replica.release()
        await world.until(lambda: world.replica.waits)
        joins.append(world.ask(joining("i2")))
        world.replica.hold = False
        world.replica.release()
        await world.settle()
        await world.at(world.now_ms + 60_000)
        for call in (deleted, left, *joins):
            await world.until(call.done)

        assert [cast("JoinReply", call.result().reply).error for call in joins] == [None, None]

    asyncio.run(story())


def test_s2_an_actor_that_will_try_again_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """S2: what was refused and comes back must not come back to an actor beside the present one.

    S1: nor to one that nobody told that the lead is lost.
    """
    monkeypatch.setattr("holdfast.runtime.groups.actor.REFUSED_RETRY_S", 3_600.0)

    async def story() -> None:
        world = await World().lead()
        await with_topic(world)
        before = world.replica.state
        boundary = c.SealSegment(Position(before.applied_index, 0), before.sealed)
        actor = await refused(world, boundary)
        kept = world.actors.actor("") is actor
        actor._try_again([boundary])
        await world.until(lambda: world.replica.state.sealed == boundary.last)
        await world.settle()
        let_go = world.actors.actor("") is None

        now = world.replica.state
        later = c.SealSegment(Position(now.applied_index, 0), now.sealed)
        actor = await refused(world, later)
        world.replica.step_down("node-2")
        proposed = len(world.replica.proposed)
        actor._try_again([later])
        await world.settle()

        assert kept
        assert let_go
        assert len(world.replica.proposed) == proposed

    asyncio.run(story())


async def refused(world: World, command: c.Command) -> Actor:
    """The cluster's actor, which was refused this command and will try it again."""
    world.replica.fail_next = DiskLow()
    world.actors.submit(command)
    actor = world.actors.actor("")
    assert actor is not None
    await world.settle()
    return actor


def test_a_stop_tells_who_has_a_change_on_its_way_that_nobody_knows_its_fate() -> None:
    """S5: it may be committed after the node is gone; what was not proposed is not applied."""

    async def story() -> None:
        world = await World().lead()
        await with_topic(world)
        world.replica.hold = True
        proposed = world.ask(committing("simple", 1))
        await world.until(lambda: world.replica.waits)
        behind = world.ask(committing("simple", 2))
        await world.settle()
        world.actors.stop()
        ended = await asyncio.gather(proposed, behind, return_exceptions=True)
        world.replica.hold = False
        world.replica.release()
        await world.settle()

        assert cast("CommandFailed", ended[0]).outcome == "unknown"
        assert isinstance(ended[1], NotCoordinator | Stopping), "nothing was applied"
        offsets = world.replica.state.groups["simple"].offsets
        assert offsets[TopicPartition("t", 0)].offset == 1, "what was not applied stays so"

    asyncio.run(story())


def test_s5_what_a_stop_called_not_applied_is_not_proposed_after_it() -> None:
    """S5: a batch of this turn is not on its way yet; nor is what comes behind the stop."""

    async def story() -> None:
        world = await World().lead()
        waiting = world.offer(creating("open"))
        world.actors.stop()
        with pytest.raises(Stopping):
            world.offer(creating("late"))
        await world.settle()

        assert isinstance(waiting.future.exception(), Stopping)
        assert not world.replica.state.topics

    asyncio.run(story())


def test_s17_whoever_is_cancelled_in_an_open_call_is_parked_no_longer() -> None:
    """S17: the member's session runs on, for its process may be gone."""

    async def story() -> None:
        world = await World().lead()
        await world.member("i1")
        waiting = world.ask(joining("i2"))
        await world.settle()
        actor = world.actors.actor("g")
        assert actor is not None
        parked = len(actor.volatile.calls)
        waiting.cancel()
        await world.settle()

        assert (parked, len(actor.volatile.calls)) == (1, 0)
        assert len(world.actors.calls) == 0

    asyncio.run(story())


def test_a_call_whose_command_cannot_be_made_is_closed() -> None:
    async def story() -> None:
        world = await World().lead()
        with pytest.raises(ValueError, match="no such field"), world.actors.open():
            raise ValueError("no such field")

        assert len(world.actors.calls) == 0

    asyncio.run(story())
