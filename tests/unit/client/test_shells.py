"""The shells over real gRPC on 127.0.0.1: walking, parking, pushes, offsets, both shells alike."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import grpc
import pytest

from harness.poll import until_async
from holdfast.client import (
    Admin,
    Fenced,
    IllegalGeneration,
    Member,
    Offset,
    OutcomeUnknown,
    OwnershipLost,
    Partition,
    Rejected,
    TopicPartition,
    Unavailable,
    UnknownMember,
)
from holdfast.client._translate.offset_messages import PARTITIONS_MAX
from holdfast.server.guard.item_bounds import OFFSETS_MAX
from holdfast.v1 import group_pb2
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client.fake_cluster import fake_cluster

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

ResultT = TypeVar("ResultT")
WITHIN_S = 20


def run(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run with a limit that only a hang reaches."""

    async def limited() -> ResultT:
        async with asyncio.timeout(WITHIN_S):
            return await work

    return asyncio.run(limited())


async def take(member: Member, count: int) -> list[Partition]:
    taken: list[Partition] = []
    while len(taken) < count:
        partition = await member.next_owned()
        assert partition is not None
        taken.append(partition)
    return taken


def member_of(addresses: Sequence[str], **settings: Any) -> Member:  # noqa: ANN401 - Member's own
    quick = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 20}
    return Member(addresses, group="g", topics=["t"], **(quick | settings))


def test_a_member_owns_checks_and_restarts() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            async with member_of([node.address], instance_id="i-1", client_id="me") as member:
                partitions = await take(member, 4)
                assert [partition.number for partition in partitions] == [0, 1, 2, 3]
                assert {partition.fencing_token for partition in partitions} == {77}
                partitions[0].check()
                assert len(member.assignment) == 4
                await until_async(lambda: len(group.requests["HeartbeatStream"]) > 2, "heartbeats")
            with pytest.raises(OwnershipLost):
                partitions[0].check()
            (release,) = group.requests["Heartbeat"]
            assert release.holdfast.release  # S12: leaving the block is a planned restart
            assert group.requests["LeaveGroup"] == []
            assert group.client_ids == {"me"}

    run(scenario())


def test_owned_ends_when_the_member_leaves() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            async with member_of([node.address]) as member:
                async for partition in member.owned():
                    if partition.number == 3:
                        await member.leave()
            (leave,) = group.requests["LeaveGroup"]
            assert leave.holdfast.request_id

    run(scenario())


def test_the_walk_follows_the_leader_and_repeats_with_the_same_request_id() -> None:
    """A redirect by answer, then UNAVAILABLE and an unasked CANCELLED at the leader."""

    async def scenario() -> None:
        async with fake_cluster(3) as (group, nodes):
            addresses = [node.address for node in nodes]
            group.refuse["SyncGroup"] = [
                (grpc.StatusCode.UNAVAILABLE, ()),
                (grpc.StatusCode.CANCELLED, ()),
            ]
            async with member_of(addresses) as member:
                await take(member, 4)
            joins = {request.holdfast.request_id for request in group.requests["JoinGroup"]}
            assert len(group.requests["JoinGroup"]) == 2  # the first node, then the leader
            assert len(group.requests["SyncGroup"]) >= 3
            syncs = {request.holdfast.request_id for request in group.requests["SyncGroup"]}
            assert len(joins) == len(syncs) == 1
            assert "" not in joins | syncs

    run(scenario())


def test_a_node_that_is_not_there_is_passed_over() -> None:
    async def scenario() -> None:
        async with (
            fake_cluster() as (_, (node,)),
            member_of(["127.0.0.1:1", node.address]) as member,
        ):
            await take(member, 4)

    run(scenario())


def test_s17_a_parked_first_join_is_repeated_with_its_request_id() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            group.join_gate.clear()
            async with member_of([node.address], session_timeout_ms=400) as member:
                await until_async(
                    lambda: len(group.requests["JoinGroup"]) >= 2, "the repeated join"
                )
                group.join_gate.set()
                await take(member, 4)
            assert (
                len({request.holdfast.request_id for request in group.requests["JoinGroup"]}) == 1
            )

    run(scenario())


@pytest.mark.parametrize("has_stream", [True, False])
def test_fenced_stops_the_member_loudly(has_stream: bool) -> None:  # noqa: FBT001 - a table of cases
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            group.has_stream = has_stream
            lost: list[int] = []
            member = member_of(
                [node.address],
                instance_id="i-1",
                on_lost=lambda gone: lost.extend(p.number for p in gone),
            )
            member.start()
            await take(member, 4)
            group.heartbeat_code = ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID
            with pytest.raises(Fenced):
                await member.next_owned()
            with pytest.raises(Fenced):
                await member.restart()  # what `async with` calls at its end
            assert lost == [0, 1, 2, 3]
            assert len(group.requests["JoinGroup"]) == 1

    run(scenario())


def test_a_pushed_rebalance_is_followed_at_once_and_revoked_before_the_join() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            seen: list[str] = []

            async def on_revoked(partitions: Sequence[Partition]) -> None:
                assert all(partition.owned for partition in partitions)
                seen.append(f"revoked with {len(group.requests['JoinGroup'])} join")

            member = member_of([node.address], heartbeat_interval_ms=100, on_revoked=on_revoked)
            async with member:
                await take(member, 4)
                await until_async(lambda: group.requests["HeartbeatStream"], "a heartbeat")
                group.partitions = 5
                push = group_pb2.HeartbeatPush(
                    group_id="g",
                    member_id=member.member_id,
                    generation_id=member.generation,
                    error_code=ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS,
                )
                await group.pushes.put(push)
                assert len(await take(member, 5)) == 5
                assert seen == ["revoked with 1 join"]

    run(scenario())


def test_t2_after_unknown_member_id_the_member_comes_back_by_itself() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), member_of([node.address]) as member:
            (old, *_) = await take(member, 4)
            group.heartbeat_code = ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID
            await until_async(lambda: not old.owned, "the loss")
            group.heartbeat_code = ErrorCode.ERROR_CODE_NONE
            await until_async(lambda: len(member.assignment) == 4, "the return")
            assert not old.owned  # another grant: the old object stays dead

    run(scenario())


def test_a_callback_that_raises_stops_the_member_with_its_error() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (_, (node,)):

            def on_assigned(_: Sequence[Partition]) -> None:
                raise RuntimeError("no room on the disk")

            with pytest.raises(RuntimeError, match="no room"):
                async with member_of([node.address], on_assigned=on_assigned) as member:
                    await member.next_owned()

    run(scenario())


def test_offsets_are_committed_and_fetched() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), member_of([node.address]) as member:
            (partition, *_) = await take(member, 4)
            await member.commit({partition.name: Offset(41, "half"), ("t", 1): 7})
            assert await member.committed() == {
                TopicPartition("t", 0): Offset(41, "half"),
                TopicPartition("t", 1): Offset(7, ""),
            }
            (commit,) = group.requests["OffsetCommit"]
            assert commit.generation_id_or_member_epoch == 1
            assert commit.holdfast.request_id

    run(scenario())


def test_t3_a_commit_of_an_older_generation_raises_and_the_member_rejoins() -> None:
    async def scenario() -> None:
        async with (
            fake_cluster() as (group, (node,)),
            member_of([node.address], heartbeat_interval_ms=5_000) as member,
        ):
            await take(member, 4)
            group.commit_code = ErrorCode.ERROR_CODE_ILLEGAL_GENERATION
            about = "^Member 'member-1' of group 'g', commit of t/0: ILLEGAL_GENERATION"
            with pytest.raises(IllegalGeneration, match=about):
                await member.commit({("t", 0): 1})
            await take(member, 4)
            assert group.requests["JoinGroup"][1].member_id == "member-1"

    run(scenario())


def test_s5_a_commit_of_unknown_outcome_is_repeated_with_its_id_and_then_told() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), member_of([node.address]) as member:
            await take(member, 4)
            group.refuse["OffsetCommit"] = [(grpc.StatusCode.UNAVAILABLE, ())] * 1_000
            with pytest.raises(OutcomeUnknown) as caught:
                await member.commit({("t", 0): 1}, timeout_ms=300)
            ids = {request.holdfast.request_id for request in group.requests["OffsetCommit"]}
            assert len(group.requests["OffsetCommit"]) > 1
            assert ids == {caught.value.request_id}

    run(scenario())


def test_s14_a_commit_in_several_calls_is_repeated_with_the_same_ids() -> None:
    """One call takes so many partitions. Each call has an id of its own, and of the same moment."""
    many = {("t", number): number for number in range(2 * PARTITIONS_MAX + 1)}

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), member_of([node.address]) as member:
            await take(member, 4)
            given = str(UUID(int=7 << 80 | 0x7 << 76 | 0b10 << 62))
            for _ in range(2):
                await member.commit(many, request_id=given)
            sent = group.requests["OffsetCommit"]
            sizes = [sum(len(topic.partitions) for topic in each.topics) for each in sent]
            assert sizes == 2 * [PARTITIONS_MAX, PARTITIONS_MAX, 1]
            ids = [UUID(each.holdfast.request_id) for each in sent]
            assert str(ids[0]) == given
            assert ids[:3] == ids[3:]
            assert len(set(ids)) == 3
            assert {each.int >> 80 for each in ids} == {7}
            assert {each.version for each in ids} == {7}
            assert len(await member.committed()) == len(many)

    run(scenario())


def test_s14_a_later_part_of_unknown_outcome_names_the_id_of_the_whole() -> None:
    many = {("t", number): number for number in range(PARTITIONS_MAX + 1)}

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), member_of([node.address]) as member:
            await take(member, 4)
            group.commits_taken = 1
            with pytest.raises(OutcomeUnknown) as caught:
                await member.commit(many, timeout_ms=500)
            first, second, *_ = [
                each.holdfast.request_id for each in group.requests["OffsetCommit"]
            ]
            assert caught.value.request_id == first != second

    run(scenario())


def test_s5_a_later_part_that_was_not_taken_leaves_the_outcome_of_the_whole_unknown() -> None:
    """Parts before it are recorded, so nobody may say that nothing happened."""
    many = {("t", number): number for number in range(PARTITIONS_MAX + 1)}

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), member_of([node.address]) as member:
            await take(member, 4)
            group.commits_taken = 1
            group.commits_end_as = (("holdfast-outcome", "not-applied"),)
            with pytest.raises(OutcomeUnknown, match="1 of 2 parts of the commit are recorded"):
                await member.commit(many, timeout_ms=500)

    run(scenario())


def test_s5_a_later_part_without_an_answer_says_how_much_is_recorded() -> None:
    """Its caller reads in one sentence what happened, whichever part had no answer."""
    many = {("t", number): number for number in range(PARTITIONS_MAX + 1)}

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), member_of([node.address]) as member:
            await take(member, 4)
            group.commits_taken = 1
            with pytest.raises(OutcomeUnknown, match=r"1 of 2 parts .* nothing is known") as caught:
                await member.commit(many, timeout_ms=500)
            assert caught.value.request_id is not None

    run(scenario())


def test_a_part_that_is_refused_is_the_last() -> None:
    many = {("t", number): number for number in range(2 * PARTITIONS_MAX)}

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), member_of([node.address]) as member:
            await take(member, 4)
            group.commit_code = ErrorCode.ERROR_CODE_OFFSET_METADATA_TOO_LARGE
            with pytest.raises(Rejected):
                await member.commit(many)
            assert len(group.requests["OffsetCommit"]) == 1

    run(scenario())


def test_parts_are_as_large_as_one_call_may_be() -> None:
    """The client knows no module of the server, so only a test can hold the two together."""
    assert PARTITIONS_MAX == OFFSETS_MAX


def test_s13_a_commit_is_repeated_as_whom_it_was_sent_and_not_as_who_one_has_become() -> None:
    """Its partitions may have another owner: the present generation must not vouch for it."""

    async def scenario() -> None:
        async with (
            fake_cluster() as (group, (node,)),
            member_of([node.address], heartbeat_interval_ms=5_000) as member,
        ):
            await take(member, 4)
            group.refuse["OffsetCommit"] = [(grpc.StatusCode.UNAVAILABLE, ())] * 1_000
            with pytest.raises(OutcomeUnknown) as caught:
                await member.commit({("t", 0): 1}, timeout_ms=300)
            group.refuse["OffsetCommit"] = []
            group.commit_code = ErrorCode.ERROR_CODE_ILLEGAL_GENERATION
            with pytest.raises(IllegalGeneration):
                await member.commit({("t", 1): 1})
            await take(member, 4)
            group.commit_code = ErrorCode.ERROR_CODE_NONE
            await member.commit({("t", 0): 1}, request_id=caught.value.request_id)
            sent = group.requests["OffsetCommit"]
            repeated = (sent[-1].member_id, sent[-1].generation_id_or_member_epoch)
            assert repeated == (sent[0].member_id, sent[0].generation_id_or_member_epoch)
            assert sent[-1].holdfast.request_id == sent[0].holdfast.request_id

    run(scenario())


def test_s5_what_was_not_applied_is_unavailable() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), Admin(node.address, timeout_ms=300) as admin:
            refusal = (grpc.StatusCode.UNAVAILABLE, (("holdfast-outcome", "not-applied"),))
            group.refuse["RemoveMembers"] = [refusal] * 1_000
            with pytest.raises(Unavailable):
                await admin.remove_members("g", instance_ids=["i-1"])

    run(scenario())


def test_s5_nobody_there_is_unavailable() -> None:
    async def scenario() -> None:
        async with Admin("127.0.0.1:1", timeout_ms=200) as admin:
            with pytest.raises(Unavailable, match="Could not connect"):
                await admin.list_topics()

    run(scenario())


def test_admin_answers_per_member() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)), Admin(node.address) as admin:
            results = await admin.remove_members(
                "g", instance_ids=["i-1", "ghost"], member_ids=["m"]
            )
            assert results.keys() == {"i-1", "ghost", "m"}
            assert results["i-1"] is None
            assert results["m"] is None
            assert isinstance(results["ghost"], UnknownMember)
            assert group.requests["RemoveMembers"][0].holdfast.request_id
            with pytest.raises(ValueError, match="Name members"):  # K-G25
                await admin.remove_members("g")

    run(scenario())
