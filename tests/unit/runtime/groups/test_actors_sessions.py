"""Sessions and deadlines as the actors keep them, on a clock that a test turns (S9, S17)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.events import (
    SettingChange,
)
from holdfast.coordinator.model.rejections import (
    FencedInstanceId,
    UnknownMemberId,
)
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey
from holdfast.raft.api import Overloaded
from unit.runtime.world import World, beating, committing, joining, with_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.model.ids import CallId


def test_a_renewal_that_was_answered_aside_survives_the_batch() -> None:
    """S9, S16: the batch's volatile part was decided before the heartbeat was heard."""

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        await with_topic(world)
        world.replica.hold = True
        commit = world.ask(committing("g", 5))
        del commit
        operator = world.ask(altering("g"))
        await world.settle()
        await world.beat("i1", member)
        world.replica.hold = False
        world.replica.release()
        await operator
        await world.settle()
        actor = world.actors.actor("g")

        assert actor is not None
        assert actor.volatile.renewals[member.member_id] >= 1

    asyncio.run(story())


def test_s9_a_heartbeat_answered_beside_an_open_batch_is_heard_by_what_joins_the_batch() -> None:
    """A deadline that fired before it must not expire a member that was just told that all is well.

    Found by the simulator (seed 249): a change, a heartbeat and a deadline in one turn of the loop.
    """

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        actor = world.actors.actor("g")
        assert actor is not None
        key = DeadlineKey(SESSION, member.member_id)
        seen = actor.volatile.renewals.get(member.member_id, 0)
        fired = c.DeadlineFired("g", key, actor.volatile.armed[key], seen)

        world.offer(joining("i2"))
        answered = world.offer(beating("i1", member))
        world.actors.submit(fired)
        await world.settle()

        assert answered.future.done()
        assert len(world.events("MemberJoined")) == 2
        assert world.events("MemberExpired") == []

    asyncio.run(story())


def altering(group: str) -> Callable[[CallId], c.Command]:
    changes = (SettingChange("group.max_size", "7"),)
    return lambda call: c.AlterSettings(c.Caller(call), group, changes)


def test_s9b_an_expiry_is_proposed_only_after_a_quorum_probe() -> None:
    """S9 b: a leader that nobody follows any more expires nobody."""

    async def story() -> None:
        world = await World().lead()
        await world.member()
        world.replica.probes_pass = False
        before = world.replica.probes
        await world.at(60_000)

        assert world.replica.probes == before + 1
        assert world.events("MemberExpired") == []

    asyncio.run(story())


def test_a_silent_member_expires() -> None:
    """K-F9: and its next call is told that it is unknown."""

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        await world.at(11_001)
        reply = await world.beat("i1", member)

        assert len(world.events("MemberExpired")) == 1
        assert isinstance(reply.error, UnknownMemberId | FencedInstanceId)

    asyncio.run(story())


def test_a_heartbeat_puts_the_expiry_off() -> None:
    """K-F7, S9: the session runs from the last heartbeat, in full."""

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        world.now_ms = 9_000
        await world.beat("i1", member)
        await world.at(18_999)
        early = world.events("MemberExpired")
        await world.at(19_001)

        assert early == []
        assert len(world.events("MemberExpired")) == 1

    asyncio.run(story())


def test_a_join_that_was_given_up_before_a_majority_was_heard_is_not_parked() -> None:
    """S17: nobody waits for it, so it must not suspend a session."""

    async def story() -> None:
        world = await World().lead()
        world.replica.lease = False
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def gated() -> None:
            await gate

        world.replica.read_barrier = gated  # type: ignore[method-assign]  # a barrier held back
        join = world.ask(joining("i1", fresh="i1-a"))
        await world.settle()
        join.cancel()
        await world.settle()
        gate.set_result(None)
        await world.settle()

        assert world.events("MemberJoined") == []

    asyncio.run(story())


def test_s9_a_stall_of_the_process_puts_every_deadline_off() -> None:
    """S9: who could not be heard is not punished for it."""

    async def story() -> None:
        world = await World().lead()
        await world.member()
        world.timers.stalled(5_000)
        await world.at(11_001)
        early = world.events("MemberExpired")
        await world.at(16_001)

        assert early == []
        assert len(world.events("MemberExpired")) == 1

    asyncio.run(story())


def test_s9_a_new_leader_arms_every_session_in_full() -> None:
    """S9, S16: no session can expire because a leader died."""

    async def story() -> None:
        world = await World().lead()
        await world.member()
        world.now_ms = 10_000
        world.replica.step_down()
        world.replica.lead(term=2)
        await world.at(19_999)
        early = world.events("MemberExpired")
        await world.at(20_001)

        assert early == []
        assert len(world.events("MemberExpired")) == 1

    asyncio.run(story())


def test_a_deadline_survives_a_log_that_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """S9: a full node must not let a dead member live for ever."""

    async def story() -> None:
        monkeypatch.setattr("holdfast.runtime.groups.actor.REFUSED_RETRY_S", 0.0)
        world = await World().lead()
        await world.member()
        world.replica.fail_next = Overloaded("full")
        await world.at(11_001)
        await world.until(lambda: bool(world.events("MemberExpired")))

        assert len(world.events("MemberExpired")) == 1

    asyncio.run(story())
