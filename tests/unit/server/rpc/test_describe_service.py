"""Descriptions of groups over a real gRPC server: who owns what, of either protocol."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from holdfast.coordinator.model.access import DENY, GROUP, READER, TOPIC, Acl
from holdfast.coordinator.model.events import AccessModeChanged, AclsChanged
from holdfast.server.config.node_config import ANONYMOUS
from holdfast.server.guard import answer_size
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from unit.server.consumer_calls import beat, join, places, with_topics
from unit.server.nodes import join as join_classic
from unit.server.nodes import served, until

if TYPE_CHECKING:
    from unit.server.nodes import Served


async def described(node: Served, *group_ids: str) -> a.ConsumerGroupDescribeResponse:
    """What the service shows of these groups."""
    asked = a.ConsumerGroupDescribeRequest(group_ids=group_ids)
    return await node.admin.ConsumerGroupDescribe(asked)


def test_k5_what_is_not_committed_is_not_shown() -> None:
    """K-K5: neither the group nor its first member, while they wait for the log."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            node.replica.hold = True
            joining = asyncio.ensure_future(_unary(node.group.ConsumerGroupHeartbeat(join())))
            await until(lambda: bool(node.replica.proposed[-1].group_id))
            (before,) = (await described(node, "g")).groups
            node.replica.hold = False
            node.replica.release()
            await joining
            (after,) = (await described(node, "g")).groups

            assert before.error_code == e.ERROR_CODE_GROUP_ID_NOT_FOUND
            assert (after.error_code, len(after.members)) == (e.ERROR_CODE_NONE, 1)

    asyncio.run(story())


async def _unary(call: grpc.aio.UnaryUnaryCall[Any, Any]) -> Any:  # noqa: ANN401 - its response
    return await call


def test_a_group_is_shown_with_its_epochs_and_each_member_on_its_way() -> None:
    """K-O3: what a member owns, is to own, and was asked to give up; with tokens (S13)."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            first = await node.group.ConsumerGroupHeartbeat(join("m1", rack_id="r"))
            await node.group.ConsumerGroupHeartbeat(join("m2", instance_id="i2"))
            told = await node.group.ConsumerGroupHeartbeat(beat(2, "m1"))
            (group,) = (await described(node, "g")).groups
            one, two = group.members
            (kept,) = places(told.assignment)

            assert (group.error_code, group.group_id) == (e.ERROR_CODE_NONE, "g")
            assert (group.group_state, group.group_epoch) == ("Reconciling", 3)
            assert (group.assignment_epoch, group.assignor_name) == (3, "uniform")
            assert (one.member_id, one.member_epoch, one.rack_id) == ("m1", 2, "r")
            assert not one.HasField("instance_id")
            assert (two.instance_id, two.member_epoch, two.member_type) == ("i2", 3, 1)
            assert list(one.subscribed_topic_names) == ["t"]
            assert places(one.assignment) == [("t", 0), ("t", 1)]
            assert places(one.target_assignment) == [kept]
            assert places(one.holdfast.revoking) == [p for p in places(one.assignment) if p != kept]
            assert (one.holdfast.state, two.holdfast.state) == ("unrevoked", "unreleased")
            assert places(two.assignment) == []
            assert one.holdfast.principal == "anonymous"
            assert one.holdfast.rebalance_timeout_ms == 60_000
            (tokens,) = one.holdfast.partition_tokens
            assert list(tokens.fencing_tokens) == [first.holdfast.position.index]

    asyncio.run(story())


def test_k6_a_group_of_the_other_protocol_is_unknown_to_either_call() -> None:
    """K-K6, K-K3: as one that there is not."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            await node.group.JoinGroup(join_classic("classic"))
            await node.group.ConsumerGroupHeartbeat(join())
            new = (await described(node, "classic", "absent", "g", "g")).groups
            old = await node.admin.DescribeGroups(a.DescribeGroupsRequest(groups=["g", "classic"]))
            unknown = e.ERROR_CODE_GROUP_ID_NOT_FOUND

            assert [each.error_code for each in new] == [unknown, unknown, 0, 0]
            assert [each.group_id for each in new] == ["classic", "absent", "g", "g"]
            assert "no group 'absent'" in new[1].error_message
            assert new[2] == new[3]
            assert [each.error_code for each in old.groups] == [unknown, e.ERROR_CODE_NONE]

    asyncio.run(story())


def let_read(node: Served, *topics: str) -> None:
    """Have everything denied but to read these topics, and all groups."""
    grants = [
        Acl(ANONYMOUS, READER, GROUP, "*"),
        *(Acl(ANONYMOUS, READER, TOPIC, t) for t in topics),
    ]
    node.replica.slip_in("", AclsChanged(tuple(grants), ()), AccessModeChanged(DENY))


@pytest.mark.parametrize("has", ["names it", "gives it up"])
def test_a_group_is_not_shown_to_whoever_may_not_read_its_topics(has: str) -> None:
    """ADR 30: whether a member wants the topic or has it still; other groups are shown."""
    wants = ("t", "secret") if has == "names it" else ("secret",)
    names = g.ConsumerGroupTopicNames(names=["t"])

    async def story() -> None:
        async with served() as node:
            with_topics(node, "t", "secret")
            await node.group.ConsumerGroupHeartbeat(join("m1", *wants))
            await node.group.ConsumerGroupHeartbeat(join("m1", "t", group_id="h"))
            if has == "gives it up":
                await node.group.ConsumerGroupHeartbeat(beat(2, subscribed_topic_names=names))
            let_read(node, "t")
            hidden, shown = (await described(node, "g", "h")).groups
            let_read(node, "secret")
            (seen,) = (await described(node, "g")).groups

            assert hidden.error_code == e.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED
            assert "secret" not in str(hidden), "the caller has not named it"
            assert (hidden.group_id, hidden.group_state, list(hidden.members)) == ("g", "", [])
            assert (shown.error_code, len(shown.members)) == (e.ERROR_CODE_NONE, 1)
            assert (seen.error_code, len(seen.members)) == (e.ERROR_CODE_NONE, 1)
            assert "secret" in str(seen)

    asyncio.run(story())


@pytest.mark.parametrize("most", [None, 0, 2, 99])
def test_the_last_epochs_are_told_as_many_as_are_asked_for(most: int | None) -> None:
    """The newest first; one, if nothing is said."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            for name in ("m1", "m2", "m3"):
                await node.group.ConsumerGroupHeartbeat(join(name))
            asked = a.ConsumerGroupDescribeRequest(group_ids=["g"])
            if most is not None:
                asked.holdfast.rebalances_max = most
            (group,) = (await node.admin.ConsumerGroupDescribe(asked)).groups
            told = group.holdfast.epochs

            count = {None: 1, 0: 0, 2: 2, 99: 3}[most]
            assert [each.generation_id for each in told] == [4, 3, 2][:count]
            assert {each.reason for each in told} <= {"joined"}
            assert all(each.HasField("join_phase_ms") for each in told)
            assert [each.HasField("assigned_after_ms") for each in told] == [False, False, True][
                :count
            ]

    asyncio.run(story())


def test_moves_of_topics_that_the_caller_may_not_read_are_counted_and_not_named() -> None:
    """ADR 30: the group has given the topic up, so it is shown; its history still knows it."""
    names = g.ConsumerGroupTopicNames(names=["t"])

    async def story() -> None:
        async with served() as node:
            with_topics(node, "t", "secret")
            await node.group.ConsumerGroupHeartbeat(join("m1", "t", "secret"))
            await node.group.ConsumerGroupHeartbeat(beat(2, subscribed_topic_names=names))
            owned = g.ConsumerGroupAssignment()
            owned.topic_partitions.add(topic="t", partitions=[0, 1])
            await node.group.ConsumerGroupHeartbeat(beat(2, topic_partitions=owned))
            let_read(node, "t")
            asked = a.ConsumerGroupDescribeRequest(group_ids=["g"])
            asked.holdfast.rebalances_max = 9
            (group,) = (await node.admin.ConsumerGroupDescribe(asked)).groups
            dropped, first = group.holdfast.epochs

            assert group.error_code == e.ERROR_CODE_NONE
            assert (dropped.reason, dropped.dropped, list(dropped.moves)) == ("subscription", 2, [])
            assert (first.given, {each.topic for each in first.moves}) == (4, {"t"})
            assert "secret" not in str(group)

    asyncio.run(story())


def test_an_answer_that_would_be_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """S7: nobody gets a part of it for the whole; a group that is named again counts again."""

    async def story() -> None:
        async with served() as node:
            with_topics(node)
            await node.group.ConsumerGroupHeartbeat(join())
            one = (await described(node, "g")).ByteSize()
            monkeypatch.setattr(answer_size, "ANSWER_BYTES_MAX", 3 * one)
            await described(node, "g", "g")
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await described(node, "g", "g", "g", "g")

            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "name fewer groups" in (refused.value.details() or "")

    asyncio.run(story())
