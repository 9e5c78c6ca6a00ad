"""Batches of heartbeats of both protocols on a HeartbeatStream, and pushes on either stream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast.coordinator.model.access import DENY, GROUP, MEMBER, READER, TOPIC, Acl
from holdfast.coordinator.model.events import (
    AccessModeChanged,
    AclsChanged,
    SettingChange,
    SettingsChanged,
)
from holdfast.server.guard.item_bounds import ITEMS_MAX
from holdfast.server.guard.pace import Pace
from holdfast.server.translate.limits import TEXT_MAX
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from unit.server.consumer_calls import beat, join, places, with_topics
from unit.server.nodes import beat as classic_beat
from unit.server.nodes import join as classic_join
from unit.server.nodes import served, sync, until
from unit.server.session_calls import Stream, call, run

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from unit.server.nodes import Served

ME = "anonymous"
"""The principal of a caller without a certificate."""


class Batches:
    """A client's side of a HeartbeatStream."""

    def __init__(self, node: Served) -> None:
        self.call = node.group.HeartbeatStream()
        self.number = 0

    async def ask(
        self,
        *consumers: g.ConsumerGroupHeartbeatRequest,
        classic: tuple[g.HeartbeatRequest, ...] = (),
    ) -> g.HeartbeatBatchResponse:
        """Send one batch; its answer, without what is pushed before it."""
        self.number += 1
        sent = g.HeartbeatBatch(batch=self.number, requests=classic, consumer_requests=consumers)
        await self.call.write(sent)
        while (answer := await self.read()).pushes:
            pass
        assert answer.batch == self.number
        return answer

    async def read(self) -> g.HeartbeatBatchResponse:
        """The next message."""
        return cast("g.HeartbeatBatchResponse", await self.call.read())


def test_each_protocol_is_answered_in_its_own_list_in_its_order() -> None:
    """group.proto: as many answers as requests, and a wrong one disturbs no other."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            joined = await node.group.JoinGroup(classic_join("classic"))
            batches = Batches(node)
            ghost = g.HeartbeatRequest(group_id="nobody's", member_id="ghost")
            wrong = join("x" * (TEXT_MAX + 1))
            known = classic_beat(joined)
            known.group_id = "classic"
            answer = await batches.ask(
                join("a"), wrong, beat(9, "ghost"), join("b"), classic=(ghost, known)
            )

            assert [each.error_code for each in answer.responses] == [
                e.ERROR_CODE_UNKNOWN_MEMBER_ID,
                e.ERROR_CODE_NONE,
            ]
            assert [each.error_code for each in answer.consumer_responses] == [
                e.ERROR_CODE_NONE,
                e.ERROR_CODE_INVALID_REQUEST,
                e.ERROR_CODE_UNKNOWN_MEMBER_ID,
                e.ERROR_CODE_NONE,
            ]
            told = answer.consumer_responses
            assert [each.member_id for each in (told[0], told[3])] == ["a", "b"]

    run(story)


def test_plain_heartbeats_of_a_batch_are_answered_from_the_cache_and_write_nothing() -> None:
    """K-M13, and S9: they renew the session all the same."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            batches = Batches(node)
            await batches.ask(join("a"))
            before = node.replica.state.applied_index
            answers = [await batches.ask(beat(2, "a")) for _ in range(3)]

            assert [each.consumer_responses[0].member_epoch for each in answers] == [2, 2, 2]
            assert node.replica.state.applied_index == before
            counted = dict(node.node.call_counts.of("ConsumerGroupHeartbeat"))
            assert counted == {e.ERROR_CODE_NONE: 4}

    run(story)


def test_a_batch_may_hold_what_a_unary_call_may_and_no_more() -> None:
    """S7: the bounds of one request hold in a list, too; it is answered alone."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            most = ITEMS_MAX["ConsumerGroupHeartbeatRequest.subscribed_topic_names.names"]
            many = g.ConsumerGroupTopicNames(names=[f"t{n}" for n in range(most + 1)])
            answer = await Batches(node).ask(join("a", subscribed_topic_names=many), join("b"))
            first, second = answer.consumer_responses

            assert first.error_code == e.ERROR_CODE_INVALID_REQUEST
            assert str(most) in first.holdfast.message
            assert second.error_code == e.ERROR_CODE_NONE

    run(story)


def test_limits_of_principals_count_joins_in_a_batch_and_no_other_heartbeats() -> None:
    """A refused heartbeat would end a session; joins would get round the limit."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            limit = SettingChange("principal.calls_per_second_max", "1")
            batches = Batches(node)
            await batches.ask(join("a"))
            node.replica.slip_in("", SettingsChanged("", (limit,)))
            some = [join("b"), join("c"), *(beat(2, "a") for _ in range(9))]
            answer = await batches.ask(*some)
            codes = [each.error_code for each in answer.consumer_responses]

            assert codes[1] == e.ERROR_CODE_COORDINATOR_LOAD_IN_PROGRESS
            assert "calls_per_second_max" in answer.consumer_responses[1].holdfast.message
            assert {codes[0], *codes[2:]} == {e.ERROR_CODE_NONE}

    run(story)


def test_who_may_not_use_a_group_is_refused_in_a_batch_and_pushed_nothing() -> None:
    """A push goes only to a stream whose principal may use the group, from the revocation on."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            batches = Batches(node)
            grants = (Acl(ME, MEMBER, GROUP, "g"), Acl(ME, READER, TOPIC, "t"))
            node.replica.slip_in("", AclsChanged(grants, ()), AccessModeChanged(DENY))
            await batches.ask(join("a"))
            assert node.node.carriers.carried == 1
            node.replica.slip_in("", AclsChanged((), grants[:1]))
            assert node.node.carriers.carried == 0
            answer = await batches.ask(beat(2, "a"))

            assert answer.consumer_responses[0].error_code == (
                e.ERROR_CODE_GROUP_AUTHORIZATION_FAILED
            )
            assert node.node.carriers.carried == 0

    run(story)


def test_a_push_comes_on_the_stream_of_heartbeats() -> None:
    """group.proto: HeartbeatPush with the group epoch, in a message of its own."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            batches = Batches(node)
            await batches.ask(join("a"))
            await node.group.ConsumerGroupHeartbeat(join("b"))
            message = await batches.read()

            assert message.batch == 0
            assert list(message.pushes) == [
                g.HeartbeatPush(group_id="g", member_id="a", generation_id=3)
            ]

    run(story)


def test_a_push_comes_on_the_session_that_carried_the_join() -> None:
    """From the join on: a new member waits for what others give up."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            batches, session = Batches(node), Stream(node)
            await batches.ask(join("a"))
            joined = await session.ask(1, join("b"))
            told = places((await batches.ask(beat(2, "a"))).consumer_responses[0].assignment)
            mine = [g.ConsumerGroupTopicPartitions(topic="t", partitions=[n for _, n in told])]
            said = g.ConsumerGroupAssignment(topic_partitions=mine)
            await batches.ask(beat(2, "a", topic_partitions=said))
            message = cast("g.SessionResponse", await anext(session._reading))

            assert (len(message.answers), list(message.pushes)) == (
                0,
                [g.HeartbeatPush(group_id="g", member_id="b", generation_id=3)],
            )
            took = await session.ask(2, beat(joined.member_epoch, "b"))
            assert len(places(took.assignment)) == 1

    run(story)


@pytest.mark.parametrize("last", ["join", "goodbye"])
def test_a_session_forgets_a_member_that_is_refused_or_goes(last: str) -> None:
    """One stream serves a process for weeks, while its members come and go under new ids."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            session = Stream(node)
            await session.ask(1, join("a"))
            assert node.node.carriers.carried == 1
            if last == "join":
                refused = await session.ask(2, join("b", server_assignor="none"))
                assert refused.error_code == e.ERROR_CODE_UNSUPPORTED_ASSIGNOR
                assert node.node.carriers.carried == 1
            else:
                await session.ask(2, beat(-1, "a"))
                assert node.node.carriers.carried == 0
            await session.call.done_writing()
            await session.end()
            await until(lambda: node.node.carriers.carried == 0)

    run(story)


def test_a_classic_member_is_pushed_to_on_the_session_that_carries_its_heartbeats() -> None:
    """Both streams carry both protocols."""

    async def story() -> None:
        async with served() as node:
            joined = await node.group.JoinGroup(classic_join())
            await node.group.SyncGroup(sync(joined))
            session = Stream(node)
            await session.ask(1, classic_beat(joined))
            newcomer = node.group.JoinGroup(classic_join(instance_id="i2"))
            message = cast("g.SessionResponse", await anext(session._reading))
            newcomer.cancel()

            assert [(p.member_id, p.error_code) for p in message.pushes] == [
                (joined.member_id, e.ERROR_CODE_REBALANCE_IN_PROGRESS)
            ]

    run(story)


def test_pushes_to_a_session_that_is_not_read_are_bounded() -> None:
    """They are hints, and a slow reader must cost no memory."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            session = Stream(node)
            await session.ask(1, join("a"))
            (carrier,) = node.node.carriers.of("g").values()
            some = [g.HeartbeatPush(group_id="g", member_id="a")] * 10_000

            assert carrier.push(some) == 0
            assert carrier.push(some[:3]) == 3
            answer = await session.ask(2, beat(2, "a"))
            assert answer.error_code == e.ERROR_CODE_NONE
            assert carrier.push(some[:3]) == 0

    run(story)


def test_calls_of_a_session_are_answered_while_pushes_come() -> None:
    """None of them waits for the other."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            session = Stream(node)
            await session.ask(1, join("a"))
            (carrier,) = node.node.carriers.of("g").values()
            for number in range(2, 20):
                carrier.push([g.HeartbeatPush(group_id="g", member_id="a")])
                await session.send(call(number, beat(2, "a")))
            codes = [
                (await session.answer(number)).consumer_heartbeat.error_code
                for number in range(2, 20)
            ]

            assert set(codes) == {e.ERROR_CODE_NONE}

    run(story)


@pytest.mark.parametrize("protocol", ["classic", "heartbeat"])
def test_names_of_nobody_do_not_stay_with_a_stream(protocol: str) -> None:
    """S7: not on a node that does not lead, nor with calls that are given up before their end."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            session, batches = Stream(node), Batches(node)
            await session.ask(1, join("a"))

            def ghost(number: int) -> Any:  # noqa: ANN401 - of either protocol
                name = f"ghost-{number}"
                if protocol == "heartbeat":
                    return beat(2, name)
                return g.HeartbeatRequest(group_id="g", member_id=name, generation_id=1)

            gate = asyncio.Event()
            node.replica.lease = False
            node.replica.read_barrier = gate.wait  # type: ignore[assignment,method-assign]  # answers wait
            some = tuple(range(2, 40))
            await session.send(*(call(n, ghost(n)) for n in some))
            await until(lambda: node.node.carriers.carried == 1 + len(some))
            await session.send(given_up=some)
            await until(lambda: set(node.node.carriers.of("g")) == {"a"})
            gate.set()
            node.replica.step_down()
            one = ghost(1)
            await batches.ask(one) if protocol == "heartbeat" else await batches.ask(classic=(one,))
            await until(lambda: not node.node.carriers.carried)

    run(story)


class Noting(Pace):
    """A pace that notes what it is told, and has nobody wait."""

    def __init__(self) -> None:
        super().__init__()
        self.timed_calls: list[int] = []
        self.turns = 0

    async def timed(
        self, who: str, call: Coroutine[Any, Any, Any], size: int = 0, calls: int = 1
    ) -> Any:  # noqa: ANN401 - as Pace
        del who, size
        self.timed_calls.append(calls)
        return await call

    async def turn(self, who: str) -> None:
        del who
        self.turns += 1


def test_heartbeats_that_may_say_much_are_charged_to_their_caller_and_others_are_not() -> None:
    """S9: what keeps a session alive never waits; who sends long joins has its next ones wait."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            joined = await node.group.JoinGroup(classic_join("classic"))
            batches, pace = Batches(node), Noting()
            node.node.streams._pace = pace
            known = classic_beat(joined)
            known.group_id = "classic"
            await batches.ask(classic=(known,) * 500)
            await batches.ask(join("a"))
            await batches.ask(*[beat(2, "a")] * 200)
            assert (pace.timed_calls, pace.turns) == ([1, 200], 0)
            many = g.ConsumerGroupTopicNames(names=[f"topic-{n:05}" for n in range(5_000)])
            await batches.ask(join("b", subscribed_topic_names=many))
            await batches.ask(beat(2, "a"))

            assert (pace.timed_calls, pace.turns) == ([1, 200, 1, 1], 1)

    run(story)
