"""Members of both protocols in one group: what a heartbeat beside a batch leaves behind (S9, S11).

Such a heartbeat is decided on the state before the batch, and the batch's volatile part is adopted
after it. What the heartbeat would arm has to outlast that.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.events import LevelRaised
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.rejections import RebalanceInProgress
from holdfast.coordinator.model.volatile import REBALANCE, DeadlineKey
from unit.runtime.world import World, with_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.model.ids import CallId
    from holdfast.coordinator.model.replies import HeartbeatReply, JoinReply

REBALANCE_MS = 10_000


def joining(member_id: str) -> Callable[[CallId], c.Command]:
    """A join of the heartbeat protocol."""
    return lambda call: c.ConsumerGroupHeartbeat(
        c.Caller(call, "p", "client"),
        "g",
        member_id,
        0,
        rebalance_timeout_ms=REBALANCE_MS,
        topics=("t",),
        owned=(),
    )


def beating_classic(generation: int) -> Callable[[CallId], c.Command]:
    """A heartbeat of the classic member `old`."""
    return lambda call: c.Heartbeat(c.Caller(call, "p", "client"), "g", generation, "old", None)


async def classic_member(world: World) -> int:
    """Have `old` join by the classic protocol, and sync; returns its generation."""
    protocol = Protocol("x", b"", ("t",))
    answered = await world.ask(
        lambda call: c.JoinGroup(
            c.Caller(call, "p", "client"),
            "g",
            "old",
            None,
            60_000,
            REBALANCE_MS,
            "consumer",
            (protocol,),
            "old",
        )
    )
    joined = cast("JoinReply", answered.reply)
    assert joined.error is None
    await world.ask(
        lambda call: c.SyncGroup(
            c.Caller(call, "p"), "g", joined.generation, "old", None, "consumer", "x", ()
        )
    )
    return joined.generation


def test_s11_the_time_to_rejoin_runs_also_if_a_batch_was_on_its_way() -> None:
    """S11, K-Q9, K-Q10: a heartbeat beside the batch told it to rejoin, but armed nothing.

    The batch's volatile part took the place of what the heartbeat had armed, so the member could
    keep what it had to give up for as long as its heartbeats lasted.
    """

    async def story() -> None:
        world = await World().lead()
        world.replica.slip_in("", LevelRaised(2))
        await with_topic(world)
        await world.ask(joining("new1"))
        generation = await classic_member(world)
        await world.ask(joining("new2"))
        world.replica.hold = True
        batch = world.ask(joining("new3"))
        await world.until(lambda: world.replica.waits)
        beat = world.ask(beating_classic(generation))
        await world.settle()
        world.replica.hold = False
        world.replica.release()
        await batch
        told = cast("HeartbeatReply", (await beat).reply)
        actor = world.actors.actor("g")
        assert actor is not None

        assert isinstance(told.error, RebalanceInProgress)
        assert DeadlineKey(REBALANCE, "old") in actor.volatile.armed
        await world.at(world.now_ms + REBALANCE_MS)
        assert "old" not in world.replica.state.groups["g"].body.members

    asyncio.run(story())
