"""Group actors on a replica that holds back, skips and fails, and deadlines on a virtual clock."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.events import (
    OffsetCommitted,
    OffsetsCommitted,
)
from holdfast.coordinator.model.ids import Position, TopicPartition
from holdfast.coordinator.model.rejections import FencedInstanceId
from holdfast.coordinator.model.replies import JoinReply
from holdfast.coordinator.model.volatile import JOIN_PHASE, SESSION, DeadlineKey
from holdfast.raft.api import OutcomeUnknown
from holdfast.runtime.errors import LeadershipLost, NotCoordinator, RuleBroken
from holdfast.runtime.groups import batch
from unit.runtime.world import (
    World,
    beating,
    committing,
    creating,
    joining,
    removing_nobody,
    with_topic,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.model.events import Event
    from holdfast.coordinator.model.ids import CallId
    from holdfast.coordinator.model.replies import HeartbeatReply, LeaveReply, OffsetsReply
    from holdfast.runtime.groups.pending_calls import Answered


def test_commands_of_one_turn_share_one_part() -> None:
    """Group commit: one batch of a group at a time, one part a batch."""

    async def story() -> None:
        world = await World().lead()
        await with_topic(world)
        before = len(world.replica.proposed)
        calls = [world.ask(committing("simple", offset)) for offset in range(20)]
        await asyncio.gather(*calls)

        assert len(world.replica.proposed) == before + 1
        state = world.replica.state.groups["simple"]
        assert state.offsets[TopicPartition("t", 0)].offset == 19

    asyncio.run(story())


def test_a_call_that_recorded_nothing_has_no_position_of_another() -> None:
    """S14: a witness would take the place of another's record for the proof of this change.

    Found by the simulator (seed 17): two calls of one turn, of which one was refused.
    """

    async def story() -> None:
        world = await World().lead()
        await with_topic(world)
        done = world.ask(committing("simple", 1))
        refused = world.ask(removing_nobody("simple"))

        assert (await done).position is not None
        assert (await refused).position is None

    asyncio.run(story())


def test_a_skipped_part_is_decided_again_on_the_new_state() -> None:
    """S2: every replica skipped it alike; the caller sees nothing of it."""

    async def story() -> None:
        world = await World().lead()
        await with_topic(world)
        await world.ask(committing("simple", 1))
        world.replica.hold = True
        call = world.ask(committing("simple", 2))
        await world.until(lambda: world.replica.waits)
        world.replica.slip_in("simple", c_offsets(7))
        world.replica.hold = False
        world.replica.release()
        await call

        offsets = world.replica.state.groups["simple"].offsets
        assert offsets[TopicPartition("t", 0)].offset == 2
        assert len(world.events("OffsetsCommitted")) == 3

    asyncio.run(story())


def c_offsets(offset: int) -> Event:
    return OffsetsCommitted((OffsetCommitted("t", 0, offset, -1, ""),))


def test_s11_a_rebalance_timer_runs_from_the_commit() -> None:
    """S11: members count from what was applied; a slow disk must not make the timer shorter."""

    async def story() -> None:
        world = await World().lead()
        await world.member()
        world.replica.hold = True
        newcomer = world.ask(joining("i2"))
        await world.until(lambda: world.replica.waits)
        world.now_ms += 3_000
        world.replica.hold = False
        world.replica.release()
        await world.settle()

        timeout_ms = world.replica.state.groups["g"].body.round_timeout_ms
        assert timeout_ms == 10_000
        assert world.timers.left_ms("g", DeadlineKey(JOIN_PHASE)) == timeout_ms
        newcomer.cancel()

    asyncio.run(story())


def test_s9_a_replaced_members_heartbeat_waits_for_the_batch_that_replaces_it() -> None:
    """S9: never NONE for an id that is being fenced while the answer is given."""

    async def story() -> None:
        world = await World().lead()
        old = await world.member()
        world.replica.hold = True
        swap = world.ask(joining("i1", fresh="i1-new"))
        await world.until(lambda: world.replica.waits)
        late = world.ask(beating("i1", old))
        await world.settle()
        answered_early = late.done()
        world.replica.hold = False
        world.replica.release()
        reply = cast("HeartbeatReply", (await late).reply)

        assert not answered_early
        assert isinstance(reply.error, FencedInstanceId)
        assert cast("JoinReply", (await swap).reply).member_id == "i1-new"

    asyncio.run(story())


def test_a_bystanders_heartbeat_does_not_wait_for_a_batch() -> None:
    """S9: only members that a batch removes, replaces or fences have to wait."""

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        await with_topic(world)
        world.replica.hold = True
        commit = world.ask(committing_as("i1", member))
        await world.until(lambda: world.replica.waits)
        reply = await world.beat("i1", member)
        waiting = not commit.done()
        world.replica.release()
        await commit

        assert reply.error is None
        assert waiting

    asyncio.run(story())


def committing_as(instance: str, joined: JoinReply) -> Callable[[CallId], c.Command]:
    offsets = (OffsetCommitted("t", 0, 1, -1, ""),)
    return lambda call: c.CommitOffsets(
        c.Caller(call), "g", joined.generation, joined.member_id, instance, offsets
    )


def test_a_barrier_does_not_vouch_for_what_came_after_it_was_begun() -> None:
    """S10 c: its echoes may be older than the command, and another leader in between."""

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        world.replica.lease = False
        gates: list[asyncio.Future[None]] = []

        async def gated() -> None:
            gates.append(asyncio.get_running_loop().create_future())
            await gates[-1]

        world.replica.read_barrier = gated  # type: ignore[method-assign]  # a barrier held back
        first = world.ask(beating("i1", member))
        await world.until(lambda: len(gates) == 1)
        second = world.ask(beating("i1", member))
        await world.settle()
        gates[0].set_result(None)
        await first
        await world.settle()
        answered_early = second.done()
        gates[1].set_result(None)
        await second

        assert not answered_early

    asyncio.run(story())


def test_in_order_nothing_overtakes_what_waits_for_a_barrier_when_the_lease_is_back() -> None:
    """A member commits and leaves: the commit, which came first, must not be a stranger's."""

    async def story() -> None:
        world = await World().lead()
        await with_topic(world)
        member = await world.member()
        world.replica.lease = False
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def gated() -> None:
            await gate

        world.replica.read_barrier = gated  # type: ignore[method-assign]  # a barrier held back
        commit = world.ask(committing_as("i1", member))
        await world.settle()
        world.replica.lease = True
        leave = asyncio.ensure_future(in_order(world, leaving(member)))
        await world.settle()
        gate.set_result(None)
        committed = cast("OffsetsReply", (await commit).reply)
        left = cast("LeaveReply", (await leave).reply)

        assert [one.error for one in committed.partitions] == [None]
        assert [one.error for one in left.members] == [None]

    asyncio.run(story())


def test_s9_a_deadline_does_not_overtake_heartbeats_that_wait_for_a_barrier() -> None:
    """S9 a: they had arrived before it fired, and say that the member lives."""

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def gated() -> None:
            await gate

        world.replica.read_barrier = gated  # type: ignore[method-assign]  # a barrier held back
        world.replica.lease = False
        beat = world.ask(beating("i1", member))
        await world.settle()
        actor = world.actors.actor("g")
        assert actor is not None
        key = DeadlineKey(SESSION, member.member_id)
        seen = actor.volatile.renewals.get(member.member_id, 0)
        fired = c.DeadlineFired("g", key, actor.volatile.armed[key], seen)
        world.actors.submit_fired(fired)
        gate.set_result(None)
        heard = cast("HeartbeatReply", (await beat).reply)
        await world.settle()

        assert heard.error is None
        assert world.events("MemberExpired") == []

    asyncio.run(story())


async def in_order(world: World, make: Callable[[CallId], c.Command]) -> Answered:
    """Ask once nothing would be overtaken."""
    await world.actors.in_order()
    return await world.ask(make)


def leaving(joined: JoinReply) -> Callable[[CallId], c.Command]:
    gone = (c.LeavingMember(joined.member_id, "i1"),)
    return lambda call: c.LeaveGroup(c.Caller(call), "g", gone)


def test_s6_a_batch_that_breaks_an_invariant_is_never_proposed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """S6: an error for its calls, an alarm, and nothing on the log."""

    async def story() -> None:
        world = await World().lead()
        monkeypatch.setattr(batch, "check_touched", lambda *_: ["C1: held twice"])
        before = len(world.replica.proposed)
        with pytest.raises(RuleBroken):
            await world.join("i1")

        assert len(world.replica.proposed) == before
        assert "alarm" in caplog.text

    asyncio.run(story())


def test_a_repetition_is_told_where_its_first_execution_stands() -> None:
    """S14: not where the batch stands that the repetition happened to fall into."""

    async def story() -> None:
        world = await World().lead()
        await with_topic(world)
        request_id = world.request_id()
        first = await world.ask(committing("g", 1, request_id))
        await world.ask(committing("g", 2))
        again, other = await asyncio.gather(
            world.ask(committing("g", 1, request_id)), world.ask(committing("g", 3))
        )

        assert first.position is not None
        assert again.position == first.position
        assert other.position is not None
        assert other.position > first.position

    asyncio.run(story())


def test_what_no_replica_could_apply_is_not_decided_over_and_over() -> None:
    """S6: deciding the same again would fill the log for ever."""

    async def story() -> None:
        world = await World().lead()
        world.replica.impossible_next = True
        before = len(world.replica.proposed)
        with pytest.raises(RuleBroken):
            await world.join("i1")

        assert len(world.replica.proposed) == before + 1

    asyncio.run(story())


def test_s5_what_was_on_its_way_when_the_lead_was_lost_is_not_called_not_applied() -> None:
    """S5: its fate is settled by the log alone."""

    async def story() -> None:
        world = await World().lead()
        world.replica.hold = True
        call = world.ask(joining("i1"))
        await world.until(lambda: world.replica.waits)
        world.replica.step_down("node-1")
        await world.settle()
        told_early = call.done()
        world.replica.settle(OutcomeUnknown("lost"))
        with pytest.raises(LeadershipLost) as failed:
            await call

        assert not told_early
        assert failed.value.outcome == "unknown"

    asyncio.run(story())


def test_s17_a_join_that_would_be_parked_is_told_that_the_lead_is_lost() -> None:
    """Its part is committed when nobody leads here any more who would answer it."""

    async def story() -> None:
        world = await World().lead()
        await world.member("i1")
        world.replica.hold = True
        call = world.ask(joining("i2"))
        await world.until(lambda: world.replica.waits)
        world.replica.step_down("node-1")
        world.replica.release()
        with pytest.raises(NotCoordinator) as failed:
            async with asyncio.timeout(5):
                await call

        assert failed.value.leader == "127.0.0.1:1"
        assert len(world.actors.calls) == 0

    asyncio.run(story())


def test_a_group_that_does_not_exist_leaves_no_actor_behind() -> None:
    """Calls with made-up group ids must not fill the memory."""

    async def story() -> None:
        world = await World().lead()
        await world.beat("i1", _nobody())

        assert world.actors.actor("g") is None

    asyncio.run(story())


@pytest.mark.parametrize("seal", [c.SealSegment, partial(c.SealLog, c.Caller(0))])
def test_s22_a_boundary_is_decided_on_a_state_that_holds_what_it_seals(
    seal: Callable[[Position, Position], c.Command],
) -> None:
    """S22: on the older state of an open batch it came to nothing, and was never asked again."""

    async def story() -> None:
        world = await World().lead()
        await with_topic(world)
        await world.ask(committing("simple", 1))
        world.offer(creating("of-this-turn"))
        world.replica.slip_in("simple", c_offsets(9))
        last = Position(world.replica.state.applied_index, 0)
        world.actors.submit(seal(last, world.replica.state.sealed))
        await world.settle()

        assert world.replica.state.sealed == last

    asyncio.run(story())


def test_s6_no_heartbeat_is_answered_as_before_once_a_group_could_not_be_applied() -> None:
    """S6: every node has put the group aside; its members learn it with their next heartbeat."""

    async def story() -> None:
        world = await World().lead()
        joined = await world.member()
        await world.beat("i1", joined)
        actor = world.actors.actor("g")
        assert actor is not None
        assert actor.heartbeat((joined.generation, joined.member_id, "i1"))
        world.replica.impossible_next = True
        with pytest.raises(RuleBroken):
            await world.ask(joining("i2"))

        assert actor.heartbeat((joined.generation, joined.member_id, "i1")) is None

    asyncio.run(story())


def _nobody() -> JoinReply:
    return JoinReply(None, generation=3, member_id="ghost")
