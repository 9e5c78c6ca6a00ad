"""Heartbeats that share an entry of the log share a target, and nothing else (K-M20).

Those that stand side by side in a batch are decided in one go as it closes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast.coordinator.kernel import decide as rules
from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.effects import Renew
from holdfast.coordinator.model.events import LevelRaised, TopicsCreated, TopicSize
from holdfast.raft.api import Overloaded
from holdfast.runtime.errors import RuleBroken
from holdfast.runtime.groups import decider
from unit.runtime.world import World, committing, with_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.coordinator.model.consumer_events import RegexResolved
    from holdfast.coordinator.model.ids import CallId
    from holdfast.coordinator.model.replies import ConsumerHeartbeatReply
    from holdfast.runtime.groups.actors import Call

Make = "Callable[[CallId], c.Command]"


async def leading() -> World:
    """A leading node with the topic `t` of four partitions, whose log may hold the protocol."""
    world = await World().lead()
    world.replica.slip_in("", LevelRaised(2))
    await with_topic(world)
    return world


def joining(member_id: str, regex: str | None = None) -> Callable[[CallId], c.Command]:
    return lambda call: c.ConsumerGroupHeartbeat(
        c.Caller(call, "p", "client"),
        "g",
        member_id,
        0,
        rebalance_timeout_ms=10_000,
        topics=("t",) if regex is None else None,
        regex=regex,
        owned=(),
    )


def beating(member_id: str, epoch: int) -> Callable[[CallId], c.Command]:
    return lambda call: c.ConsumerGroupHeartbeat(
        c.Caller(call, "p", "client"), "g", member_id, epoch
    )


async def replies(calls: Iterable[Call]) -> list[ConsumerHeartbeatReply]:
    """The answers, in order."""
    answered = [await call.future for call in calls]
    return [cast("ConsumerHeartbeatReply", each.reply) for each in answered]


def test_joins_of_one_turn_share_an_entry_and_a_target() -> None:
    """K-M20: a target for each would cost as much as there are members, for each of them."""

    async def story() -> None:
        world = await leading()
        before = len(world.replica.proposed)
        calls = [world.offer(joining(f"m{number}")) for number in range(4)]
        got = await replies(calls)

        assert len(world.replica.proposed) == before + 1
        assert len(world.events("TargetStored")) == 1
        assert [reply.error for reply in got] == [None] * 4
        assert [len(reply.assignment or ()) for reply in got] == [1] * 4
        assert {reply.member_epoch for reply in got} == {got[0].member_epoch}

    asyncio.run(story())


def test_a_join_alone_is_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decision that opened the batch is used if nothing joins it."""
    made: list[int] = []

    def counted(*given: Any) -> Any:  # noqa: ANN401 - as the core's own
        made.append(len(given[3]))
        return rules.decide_all(*given)

    monkeypatch.setattr(decider, "decide_all", counted)

    async def story() -> None:
        world = await leading()
        alone = await replies([world.offer(joining("m1"))])
        again = made.copy()
        await replies([world.offer(joining("m2")), world.offer(joining("m3"))])

        assert alone[0].error is None
        assert again == []
        assert made == [2]

    asyncio.run(story())


def test_what_comes_between_is_decided_in_its_place() -> None:
    """A commit between two joins sees the first and not the second; all are one entry."""

    async def story() -> None:
        world = await leading()
        await replies([world.offer(joining("m1"))])
        before = len(world.replica.proposed)
        first = world.offer(joining("m2"))
        between = world.offer(committing("g", 7))
        last = world.offer(joining("m3"))
        got = await replies([first, last])
        await between.future
        names = [type(one.event).__name__ for one in world.replica.proposed[-1].events]

        assert len(world.replica.proposed) == before + 1
        assert [reply.error for reply in got] == [None, None]
        assert names.count("TargetStored") == 2
        assert names.index("MemberSubscribed") < len(names) - 1 - names[::-1].index(
            "MemberSubscribed"
        )

    asyncio.run(story())


def test_s16_nothing_of_a_shared_decision_is_told_before_its_commit() -> None:
    """S16: a plain heartbeat that joined the batch waits for it, too."""

    async def story() -> None:
        world = await leading()
        (joined,) = await replies([world.offer(joining("m1"))])
        world.replica.hold = True
        calls = [world.offer(joining("m2")), world.offer(beating("m1", joined.member_epoch))]
        await world.until(lambda: world.replica.waits)
        await world.settle()
        early = [call.future.done() for call in calls]
        world.replica.release()
        got = await replies(calls)

        assert early == [False, False]
        assert [reply.error for reply in got] == [None, None]

    asyncio.run(story())


def test_s6_a_defect_fails_one_of_them_and_spares_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """S6: with an alarm that names the command."""

    def broken(commands: Iterable[c.Command]) -> None:
        if any(getattr(each, "member_id", "") == "m2" for each in commands):
            raise RuntimeError("a defect")

    def alone(*given: Any) -> Any:  # noqa: ANN401 - as the core's own
        broken([given[2]])
        return rules.decide(*given)

    def together(*given: Any) -> Any:  # noqa: ANN401 - as the core's own
        broken(given[3])
        return rules.decide_all(*given)

    async def story() -> None:
        world = await leading()
        monkeypatch.setattr(decider, "decide", alone)
        monkeypatch.setattr(decider, "decide_all", together)
        calls = [world.offer(joining(name)) for name in ("m1", "m2", "m3")]
        await world.until(lambda: all(call.future.done() for call in calls))
        got = await replies([calls[0], calls[2]])

        assert isinstance(calls[1].future.exception(), RuleBroken)
        assert [reply.error for reply in got] == [None, None]
        assert {*world.replica.state.groups["g"].body.members} == {"m1", "m3"}

    asyncio.run(story())
    assert "alarm: deciding ConsumerGroupHeartbeat for group 'g' failed" in caplog.text


def test_a_batch_of_which_nothing_is_left_is_not_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its calls are failed, and the actor goes on."""

    async def story() -> None:
        world = await leading()
        before = len(world.replica.proposed)
        calls = [world.offer(joining("m1")), world.offer(joining("m2"))]

        def broken(*_: object) -> Any:  # noqa: ANN401 - it returns nothing
            raise RuntimeError("a defect")

        monkeypatch.setattr(decider, "decide", broken)
        monkeypatch.setattr(decider, "decide_all", broken)
        await world.until(lambda: all(call.future.done() for call in calls))
        monkeypatch.setattr(decider, "decide", rules.decide)
        monkeypatch.setattr(decider, "decide_all", rules.decide_all)
        later = await replies([world.offer(joining("m3"))])

        assert all(isinstance(call.future.exception(), RuleBroken) for call in calls)
        assert later[0].error is None
        assert len(world.replica.proposed) == before + 1

    asyncio.run(story())


def test_s9_the_leave_of_a_member_is_decided_before_its_later_heartbeat() -> None:
    """S9: in the order in which they came, also in one turn of the loop."""

    async def story() -> None:
        world = await leading()
        (joined,) = await replies([world.offer(joining("m1"))])
        calls = [world.offer(beating("m1", -1)), world.offer(beating("m1", joined.member_epoch))]
        left, late = await replies(calls)

        assert (left.error, left.member_epoch) == (None, -1)
        assert type(late.error).__name__ in {"UnknownMemberId", "GroupIdNotFound"}

    asyncio.run(story())


def test_s9_a_beat_from_memory_counts_although_a_join_before_it_was_decided_already() -> None:
    """Else its session ends by a deadline that has seen one beat more than the group knows of."""

    async def story() -> None:
        world = await leading()
        (joined,) = await replies([world.offer(joining("K"))])
        epoch = joined.member_epoch
        await replies([world.offer(beating("K", epoch))])
        told: list[int] = []
        renew = world.actors.renew

        def spied(group_id: str, renewal: Renew) -> None:
            told.append(renewal.renewals)
            renew(group_id, renewal)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(world.actors, "renew", spied)
            call = world.offer(joining("other"))
            hearing = world.actors.hearing()
            last = hearing.last("g", "K")
            assert last is not None
            assert last.is_followed_by(epoch, None, "p", "", 0)
            hearing.again("g", last, 0)
            other = world.offer(committing("g", 7))
            await replies([call])
            await other.future

        actor = world.actors.actor("g")
        assert actor is not None
        known = actor.volatile.renewals["K"]
        assert told, "the timer was told of the beat"
        assert known >= told[-1]

    asyncio.run(story())


def test_p8_a_lookup_whose_result_the_log_refused_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K-P8: among the topics that there are by then; the old result is not put on the log."""
    monkeypatch.setattr("holdfast.runtime.groups.actor.REFUSED_RETRY_S", 0.0)

    async def story() -> None:
        world = await leading()
        world.replica.hold = True
        join = world.offer(joining("m1", regex="t.*"))
        await world.until(lambda: world.replica.waits)
        world.replica.hold = False
        world.replica.release()
        world.replica.fail_next = Overloaded("full")
        await join.future
        await world.until(lambda: world.replica.fail_next is None)
        world.replica.slip_in("", TopicsCreated((TopicSize("tt", 1),)))
        await world.until(lambda: bool(world.events("RegexResolved")))
        await world.settle()

        found = cast("list[RegexResolved]", world.events("RegexResolved"))
        assert [each.topics for each in found] == [("t", "tt")]

    asyncio.run(story())
