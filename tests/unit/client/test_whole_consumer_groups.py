"""Whole groups of the heartbeat protocol against a real node; only its log is in memory."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from harness.poll import until_async
from holdfast.client import Admin, InvalidArgument, Member, Members
from holdfast.coordinator.model.events import LevelRaised
from unit.client.test_whole_groups import Diary, make_topic, run
from unit.server.nodes import served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from holdfast.client import Partition
    from unit.server.nodes import Served

PARTITIONS = 12
CONSUMER: dict[str, Any] = {"protocol": "consumer"}
QUICK = {
    "group.consumer_min_heartbeat_interval_ms": 50,
    "group.consumer_heartbeat_interval_ms": 50,
}
"""Here the intervals are the group's."""


class ConsumerDiary(Diary):
    """A diary whose members speak the heartbeat protocol."""

    quick = CONSUMER


@asynccontextmanager
async def upgraded() -> AsyncIterator[Served]:
    """A node whose cluster has the level that the heartbeat protocol needs, with a topic."""
    async with served() as node:
        node.replica.slip_in("", LevelRaised(2))
        async with Admin(node.address) as admin:
            await admin.alter_settings(QUICK)
        await make_topic(node.address)
        yield node


def test_kip848_a_third_member_gets_its_share_and_nobody_stops_for_it() -> None:
    """12 partitions over 2, then 3 members: 4 move, 8 stay with whom they are, all the time."""

    async def scenario() -> None:
        async with upgraded() as node, AsyncExitStack() as stack:
            diary = ConsumerDiary()

            async def enter(name: str) -> Member:
                return await stack.enter_async_context(diary.member(node.address, name))

            first, second = await enter("a"), await enter("b")
            await until_async(lambda: diary.shares() == {"a": 6, "b": 6}, "two shares of six")
            kept = {p.number: p.fencing_token for p in first.assignment + second.assignment}
            before = sum(map(len, diary.revoked.values()))
            await enter("c")
            await until_async(lambda: set(diary.shares().values()) == {4}, "three shares of four")
            assert sum(map(len, diary.revoked.values())) - before == 4
            assert diary.twice == []
            assert not any(diary.lost.values())
            still = {p.number: p.fencing_token for p in first.assignment + second.assignment}
            assert still.items() <= kept.items()  # S13: the token that the user holds stays good

    run(scenario())


def test_s12_a_static_member_that_restarts_comes_back_to_what_it_had() -> None:
    """KIP-848's -2: the same partitions, under the same tokens, and nobody else has moved."""

    async def scenario() -> None:
        async with upgraded() as node, AsyncExitStack() as stack:
            diary = ConsumerDiary()
            other = diary.member(node.address, "other", instance_id="i-0")
            await stack.enter_async_context(other)
            async with diary.member(node.address, "old", instance_id="i-1") as old:
                await until_async(lambda: diary.shares() == {"other": 6, "old": 6}, "two shares")
                had = {p.number: p.fencing_token for p in old.assignment}
                epoch, let_go = old.generation, list(diary.revoked["other"])
            async with diary.member(node.address, "new", instance_id="i-1") as new:
                await until_async(lambda: len(new.assignment) == 6, "its partitions")
                assert {p.number: p.fencing_token for p in new.assignment} == had
                assert new.generation == epoch
                assert new.member_id != old.member_id
            assert diary.revoked["other"] == let_go

    run(scenario())


def test_a_member_that_leaves_frees_its_partitions_for_the_others() -> None:
    async def scenario() -> None:
        async with upgraded() as node, AsyncExitStack() as stack:
            diary = ConsumerDiary()
            members = [diary.member(node.address, name) for name in "abc"]
            for member in members:
                await stack.enter_async_context(member)
            await until_async(lambda: set(diary.shares().values()) == {4}, "shares of four")
            await members[0].leave()
            await until_async(lambda: diary.shares() == {"b": 6, "c": 6}, "shares of six")
            assert diary.twice == []

    run(scenario())


def test_an_operators_removal_is_a_loss_and_the_member_comes_back() -> None:
    """T-13: UNKNOWN_MEMBER_ID; the same member id joins again."""

    async def scenario() -> None:
        async with upgraded() as node, AsyncExitStack() as stack:
            diary = ConsumerDiary()
            member = await stack.enter_async_context(diary.member(node.address, "a"))
            await until_async(lambda: diary.shares() == {"a": 12}, "all of it")
            name = member.member_id
            async with Admin(node.address) as admin:
                await admin.remove_members("g", member_ids=[name])
            await until_async(lambda: len(diary.lost["a"]) == 12, "the loss is told")
            await until_async(lambda: diary.shares() == {"a": 12}, "all of it again")
            assert member.member_id == name
            assert member.health().lost is not None

    run(scenario())


def test_topics_are_wanted_by_pattern_and_the_pattern_may_change() -> None:
    async def scenario() -> None:
        async with upgraded() as node:
            async with Admin(node.address) as admin:
                await admin.create_topics({"docs-a": 1, "docs-b": 1})
            async with Member(node.address, group="g", topic_regex="docs-.*", **CONSUMER) as member:
                await until_async(lambda: topics(member) == {"docs-a", "docs-b"}, "two topics")
                member.subscribe(["t"])
                await until_async(lambda: topics(member) == {"t"}, "the other one")

    run(scenario())


def topics(member: Member) -> set[str]:
    return {partition.topic for partition in member.assignment}


def test_a_pattern_that_does_not_compile_is_told_and_can_be_corrected() -> None:
    async def scenario() -> None:
        async with (
            upgraded() as node,
            Member(node.address, group="g", topic_regex="([", **CONSUMER) as member,
        ):
            with pytest.raises(InvalidArgument, match="INVALID_REGULAR_EXPRESSION"):
                await member.next_owned()
            member.subscribe(topic_regex="t")
            await until_async(lambda: len(member.assignment) == PARTITIONS, "all of it")

    run(scenario())


def test_a_cluster_whose_upgrade_has_not_ended_says_so() -> None:
    async def scenario() -> None:
        async with served() as node:
            member = Member(node.address, group="g", topics=["t"], **CONSUMER)
            with pytest.raises(InvalidArgument, match="needs level 2"):
                async with member:
                    await member.next_owned()

    run(scenario())


def test_an_assignor_that_the_service_does_not_have_is_told() -> None:
    async def scenario() -> None:
        async with upgraded() as node:
            member = Member(
                node.address, group="g", topics=["t"], server_assignor="mine", **CONSUMER
            )
            with pytest.raises(InvalidArgument, match="UNSUPPORTED_ASSIGNOR"):
                async with member:
                    await member.next_owned()

    run(scenario())


def test_what_is_let_go_of_is_committed_where_the_work_stands() -> None:
    """The new owner begins there: positions come before on_revoked, and both before the move."""

    async def scenario() -> None:
        async with upgraded() as node, AsyncExitStack() as stack:

            def positions(gone: Sequence[Partition]) -> dict[tuple[str, int], int]:
                return {partition.name: 100 + partition.number for partition in gone}

            first = Member(node.address, group="g", topics=["t"], positions=positions, **CONSUMER)
            await stack.enter_async_context(first)
            await until_async(lambda: len(first.assignment) == PARTITIONS, "all of it")
            second = Member(node.address, group="g", topics=["t"], **CONSUMER)
            await stack.enter_async_context(second)
            await until_async(lambda: len(second.assignment) == PARTITIONS // 2, "half of it")
            done = await second.committed()
            moved = {partition.name for partition in second.assignment}
            assert {name: offset.value for name, offset in done.items()} == {
                name: 100 + name.number for name in moved
            }

    run(scenario())


def test_many_members_of_one_process_and_a_commit_of_each() -> None:
    async def scenario() -> None:
        async with upgraded() as node:
            members = Members(
                node.address, group="g", topics=["t"], count=4, instance_id="p", **CONSUMER
            )
            async with members:
                await until_async(
                    lambda: [len(each.assignment) for each in members] == [3] * 4, "four shares"
                )
                for each in members:
                    await each.commit({partition.name: 1 for partition in each.assignment})
            async with Admin(node.address) as admin:
                assert len(await admin.offsets("g")) == PARTITIONS
                group = (await admin.consumer_group_describe("g"))["g"]
            assert {member.member_epoch for member in group.members} == {-2}

    run(scenario())
