"""Group actors on a replica that holds back, skips and fails, and deadlines on a virtual clock."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.coordinator import commands as c
from holdfast.coordinator.events import (
    OffsetCommitted,
    OffsetsCommitted,
    SettingChange,
)
from holdfast.coordinator.ids import TopicPartition
from holdfast.coordinator.rejections import FencedInstanceId, RebalanceInProgress, UnknownMemberId
from holdfast.coordinator.replies import JoinReply
from holdfast.raft.api import OutcomeUnknown, Overloaded
from holdfast.server import scratch
from holdfast.server.faults import CallFailed, Refused
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from unit.server.world import World, beating, committing, joining, with_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.events import Event
    from holdfast.coordinator.ids import CallId
    from holdfast.coordinator.replies import HeartbeatReply


def test_commands_of_one_turn_share_one_part() -> None:
    """Group commit: one batch of a group at a time, one part a batch (design §3)."""

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


def test_a_replaced_members_heartbeat_waits_for_the_batch_that_replaces_it() -> None:
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


def altering(group: str) -> Callable[[CallId], c.Command]:
    changes = (SettingChange("group.max_size", "7"),)
    return lambda call: c.AlterSettings(c.Caller(call), group, changes)


def test_an_expiry_is_proposed_only_after_a_quorum_probe() -> None:
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
    """F9: and its next call is told that it is unknown."""

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        await world.at(11_001)
        reply = await world.beat("i1", member)

        assert len(world.events("MemberExpired")) == 1
        assert isinstance(reply.error, UnknownMemberId | FencedInstanceId)

    asyncio.run(story())


def test_a_heartbeat_puts_the_expiry_off() -> None:
    """F1, S9: the session runs from the last heartbeat, in full."""

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


def message(joined: JoinReply, instance: str = "i1") -> g.HeartbeatRequest:
    return g.HeartbeatRequest(
        group_id="g",
        generation_id=joined.generation,
        member_id=joined.member_id,
        group_instance_id=instance,
    )


def test_an_unchanged_heartbeat_renews_the_session_as_a_decided_one_does() -> None:
    """S9: the cheap path counts renewals, so a deadline that fired earlier is not acted on."""

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        await world.beat("i1", member)
        world.now_ms = 9_000
        heard = [world.actors.beat(message(member)) for _ in range(3)]
        await world.at(18_999)
        early = world.events("MemberExpired")
        await world.at(19_001)

        assert all(one is not None and one.reply.error is None for one in heard)
        assert early == []
        assert len(world.events("MemberExpired")) == 1

    asyncio.run(story())


def test_an_unchanged_heartbeat_is_decided_anew_once_anything_has_changed() -> None:
    """F5: the first heartbeat after a join phase has opened must say so."""

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        await world.beat("i1", member)
        newcomer = world.ask(joining("i2"))
        await world.settle()
        remembered = world.actors.beat(message(member))
        reply = await world.beat("i1", member)
        newcomer.cancel()

        assert remembered is None
        assert isinstance(reply.error, RebalanceInProgress)

    asyncio.run(story())


def test_without_the_lease_no_heartbeat_is_answered_before_a_majority_was_heard() -> None:
    """S10 c, S11: a leader that was deposed unknowingly must not keep a member's ownership up."""

    async def story() -> None:
        world = await World().lead()
        member = await world.member()
        await world.beat("i1", member)
        world.replica.lease = False
        remembered = world.actors.beat(message(member))
        reply = await world.beat("i1", member)
        confirmed = world.replica.barriers
        world.replica.barrier_passes = False
        with pytest.raises(Refused) as refused:
            await world.beat("i1", member)

        assert remembered is None
        assert (reply.error, confirmed) == (None, 1)
        assert refused.value.code == e.ERROR_CODE_NOT_COORDINATOR

    asyncio.run(story())


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

        assert [cast("CallFailed", error).outcome for error in ended] == ["unknown", "not-applied"]

    asyncio.run(story())


def test_a_stall_of_the_process_puts_every_deadline_off() -> None:
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


def test_a_new_leader_arms_every_session_in_full() -> None:
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
        monkeypatch.setattr("holdfast.server.actor.REFUSED_RETRY_S", 0.0)
        world = await World().lead()
        await world.member()
        world.replica.fail_next = Overloaded("full")
        await world.at(11_001)
        await world.until(lambda: bool(world.events("MemberExpired")))

        assert len(world.events("MemberExpired")) == 1

    asyncio.run(story())


def test_a_batch_that_breaks_an_invariant_is_never_proposed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """S6: UNKNOWN_SERVER_ERROR for its calls, an alarm, and nothing on the log."""

    async def story() -> None:
        world = await World().lead()
        monkeypatch.setattr(scratch, "check_group", lambda _: ["C1: held twice"])
        before = len(world.replica.proposed)
        with pytest.raises(Refused) as refused:
            await world.join("i1")

        assert refused.value.code == e.ERROR_CODE_UNKNOWN_SERVER_ERROR
        assert len(world.replica.proposed) == before
        assert "alarm" in caplog.text

    asyncio.run(story())


def test_what_no_replica_could_apply_is_not_decided_over_and_over() -> None:
    """S6: deciding the same again would fill the log for ever."""

    async def story() -> None:
        world = await World().lead()
        world.replica.impossible_next = True
        before = len(world.replica.proposed)
        with pytest.raises(Refused) as refused:
            await world.join("i1")

        assert refused.value.code == e.ERROR_CODE_UNKNOWN_SERVER_ERROR
        assert len(world.replica.proposed) == before + 1

    asyncio.run(story())


def test_what_was_on_its_way_when_the_lead_was_lost_is_not_called_not_applied() -> None:
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
        with pytest.raises(CallFailed) as failed:
            await call

        assert not told_early
        assert failed.value.outcome == "unknown"

    asyncio.run(story())


def test_a_group_that_does_not_exist_leaves_no_actor_behind() -> None:
    """Calls with made-up group ids must not fill the memory."""

    async def story() -> None:
        world = await World().lead()
        await world.beat("i1", _nobody())

        assert world.actors.actor("g") is None

    asyncio.run(story())


def _nobody() -> JoinReply:
    return JoinReply(None, generation=3, member_id="ghost")
