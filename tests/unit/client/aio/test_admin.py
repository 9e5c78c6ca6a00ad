"""Admin against a real node and its real rules, by both shells; its log alone is in memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import pytest

from harness.poll import until_async
from holdfast.client import (
    Admin,
    GroupNotEmpty,
    GroupNotFound,
    HoldfastError,
    IncompatibleServer,
    InvalidArgument,
    Member,
    Offset,
    OutcomeUnknown,
    TopicExists,
    TopicInUse,
    TopicNotFound,
    TopicPartition,
    UnknownMember,
    sync,
)
from holdfast.client._translate.call_arguments import GROUP_STATES, GROUP_TYPES
from holdfast.client._translate.offset_messages import PARTITIONS_MAX
from holdfast.client.aio import admin as admin_shell
from holdfast.coordinator.classic.transitions import COMPLETING, PREPARING
from holdfast.coordinator.consumer.transitions import ASSIGNING, RECONCILING
from holdfast.coordinator.kernel.group_types import TYPES
from holdfast.coordinator.model.state import EMPTY, STABLE
from unit.client.fake_cluster import fake_cluster
from unit.server.consumer_calls import join as join_consumer
from unit.server.consumer_calls import with_topics
from unit.server.nodes import Served, join, served
from unit.server.nodes import sync as sync_request

if TYPE_CHECKING:
    from collections.abc import Callable

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


async def member(node: Served, instance_id: str = "i1") -> None:
    """One member, alone in group `g`."""
    joined = await node.group.JoinGroup(join(instance_id=instance_id))
    await node.group.SyncGroup(sync_request(joined, instance_id))


def by_both(story: Callable[[sync.Admin], None]) -> None:
    """Run the blocking story against a node; its shell is the asyncio one for threads."""

    async def run() -> None:
        async with served() as node:
            await member(node)
            await asyncio.to_thread(_told, node.address, story)

    asyncio.run(run())


def _told(address: str, story: Callable[[sync.Admin], None]) -> None:
    with sync.Admin(address) as admin:
        story(admin)


def test_offsets_are_set_read_and_forgotten_from_outside() -> None:
    """K-J1, K-J4, K-J24: a simple group; each partition has a result of its own."""

    def story(admin: sync.Admin) -> None:
        admin.create_topics({"t": 2})
        results = admin.commit_offsets(
            "tool", {T0: 5, T1: Offset(7, "note"), TopicPartition("t", 9): 1}
        )
        assert results[T0] is None
        assert results[T1] is None
        assert isinstance(results[TopicPartition("t", 9)], TopicNotFound)
        assert admin.offsets("tool") == {T0: Offset(5), T1: Offset(7, "note")}
        assert admin.offsets("tool", [T1]) == {T1: Offset(7, "note")}
        assert admin.delete_offsets("tool", [T0]) == {T0: None}
        assert admin.offsets("tool") == {T1: Offset(7, "note")}

    by_both(story)


def test_offsets_of_any_number_are_set_and_forgotten_in_as_many_calls_as_it_takes() -> None:
    many: dict[tuple[str, int], Offset | int] = {
        ("t", number): Offset(number) for number in range(PARTITIONS_MAX + 2)
    }

    def story(admin: sync.Admin) -> None:
        admin.create_topics({"t": len(many)})
        assert admin.commit_offsets("tool", many) == dict.fromkeys(many)
        assert admin.offsets("tool") == many
        assert admin.delete_offsets("tool", many) == dict.fromkeys(many)
        assert admin.offsets("tool") == {}

    by_both(story)


def test_j5_a_group_with_members_lets_only_them_commit() -> None:
    def story(admin: sync.Admin) -> None:
        admin.create_topics({"t": 2})
        with pytest.raises(GroupNotEmpty, match=r"'g' has members.*Stop them first"):
            admin.commit_offsets("g", {T0: 5})

    by_both(story)


def test_j22_offsets_of_no_group_cannot_be_deleted() -> None:
    def story(admin: sync.Admin) -> None:
        with pytest.raises(GroupNotFound):
            admin.delete_offsets("nosuch", [T0])

    by_both(story)


def test_members_are_removed_and_each_is_answered() -> None:
    """K-G1, K-G5, K-G23; by prefix and all, those that went are named."""

    def story(admin: sync.Admin) -> None:
        results = admin.remove_members("g", instance_ids=["ghost"], member_ids=["other"])
        assert {name: type(error) for name, error in results.items()} == {
            "ghost": UnknownMember,
            "other": UnknownMember,
        }
        assert admin.remove_members("g", instance_prefix="zz") == {}
        assert admin.remove_members("g", instance_prefix="i", reason="node retired") == {"i1": None}
        assert admin.remove_members("g", everyone=True) == {}
        group = admin.describe_groups("g", rebalances=10)["g"]
        assert group.holdfast.rebalances[0].reason == "node retired"

    by_both(story)


def test_a_group_of_the_heartbeat_protocol_is_looked_for_by_its_own_call() -> None:
    """K-K3: the other call does not know the group, which is there all the same."""

    def story(admin: sync.Admin) -> None:
        results = admin.remove_members("g", instance_ids=["ghost"], member_ids=["other"])
        assert {type(error) for error in results.values()} == {UnknownMember}
        with pytest.raises(GroupNotFound):
            admin.remove_members("nosuch", instance_ids=["ghost"])
        assert len(admin.consumer_group_describe("g", epochs=10)["g"].holdfast.epochs) == 1
        assert not admin.consumer_group_describe("g", epochs=0)["g"].holdfast.epochs

    async def run() -> None:
        async with served() as node:
            with_topics(node)
            await node.group.ConsumerGroupHeartbeat(join_consumer())
            await asyncio.to_thread(_told, node.address, story)

    asyncio.run(run())


def test_groups_are_deleted_and_each_is_answered() -> None:
    def story(admin: sync.Admin) -> None:
        results = admin.delete_groups("g", "nosuch")
        assert isinstance(results["g"], GroupNotEmpty)
        assert isinstance(results["nosuch"], GroupNotFound)
        assert "members" in str(results["g"])
        admin.remove_members("g", everyone=True)
        assert admin.delete_groups("g") == {"g": None}

    by_both(story)


def test_lists_of_any_length_come_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to know how many there are; filters and names hold for all pages."""
    monkeypatch.setattr(admin_shell, "PAGE_SIZE", 2)
    names = [f"t-{n}" for n in range(5)]

    def story(admin: sync.Admin) -> None:
        admin.create_topics(dict.fromkeys(names, 1))
        for name in names:
            admin.commit_offsets(name, {(names[0], 0): 1})
        assert list(admin.list_topics()) == names
        assert list(admin.list_topics(*names[1:4])) == names[1:4]
        assert [group.group_id for group in admin.list_groups()] == ["g", *names]
        empty = admin.list_groups(states=["empty"])
        assert [group.group_id for group in empty] == names

    by_both(story)


def test_an_older_service_that_knows_no_pages_is_asked_once() -> None:
    """It ignores what it does not know, and answers with the whole list."""

    async def story() -> None:
        async with fake_cluster() as (group, nodes), Admin(nodes[0].address) as admin:
            assert await admin.list_topics() == {"t": 4}
            assert len(group.requests["ListTopics"]) == 1

    asyncio.run(story())


def test_s23_a_setting_may_be_given_as_a_number_and_is_kept_as_text() -> None:
    def story(admin: sync.Admin) -> None:
        assert admin.alter_settings({"group.max_size": 5}) == {"group.max_size": None}
        assert [one.value for one in admin.describe_settings("group.max_size")] == ["5"]

    by_both(story)


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"everyone": True, "instance_prefix": "i"},
        {"everyone": True, "instance_ids": ["i1"]},
        {"instance_prefix": "i", "member_ids": ["m"]},
    ],
)
def test_g25_a_removal_names_members_in_one_way(named: dict[str, object]) -> None:
    """Refused before anything is sent: there is no cluster to ask."""

    async def story() -> None:
        async with Admin("127.0.0.1:1") as admin:
            with pytest.raises(ValueError, match="one of the three"):
                await admin.remove_members("g", **named)  # type: ignore[arg-type]  # known keywords

    asyncio.run(story())


def test_an_older_service_is_incompatible() -> None:
    """KIP-345: a service without the call answers UNIMPLEMENTED; no retry can help."""

    async def story() -> None:
        async with fake_cluster() as (group, (node,)):
            group.refuse["RemoveMembers"].append((grpc.StatusCode.UNIMPLEMENTED, ()))
            async with Admin(node.address) as admin:
                with pytest.raises(IncompatibleServer, match="upgrade"):
                    await admin.remove_members("g", everyone=True)

    asyncio.run(story())


def test_a_topic_that_live_members_own_is_kept_and_force_takes_it_from_them() -> None:
    """GROUP_SUBSCRIBED_TO_TOPIC; afterwards nobody owns what does not exist."""

    async def run() -> None:
        async with served() as node, Admin(node.address) as admin:
            await admin.create_topics({"t": 3, "u": 1})
            times = {"heartbeat_interval_ms": 20, "topics_refresh_ms": 20}
            async with Member(node.address, group="workers", topics=["t"], **times) as member:  # type: ignore[arg-type]  # Member's own
                await until_async(lambda: member.health().owned == 3, "the first assignment")
                results = await admin.delete_topics("t", "u")
                assert isinstance(results["t"], TopicInUse)
                assert "'workers'" in str(results["t"])
                assert "--force" in str(results["t"])
                assert results["u"] is None

                assert await admin.delete_topics("t", force=True) == {"t": None}
                await until_async(lambda: member.health().owned == 0, "the loss of the topic")
                await admin.create_topics({"t": 3})
                await until_async(lambda: member.health().owned == 3, "the topic's return")
                await admin.delete_topics("t", force=True)
                await admin.create_topics({"t": 2})
                await until_async(lambda: member.health().owned == 2, "its return, smaller")

    asyncio.run(run())


# --- one name raises, several are answered by name ---


def test_a_single_name_that_is_refused_raises_and_several_are_answered_by_name() -> None:
    """One rule for all calls: a refusal that stands alone must not look like a result."""

    def story(admin: sync.Admin) -> None:
        admin.create_topics({"t": 1, "u": 1})
        for error, call in (
            (GroupNotFound, lambda: admin.describe_groups("nope")),
            (GroupNotFound, lambda: admin.delete_groups("nope")),
            (GroupNotEmpty, lambda: admin.delete_groups("g")),
            (TopicNotFound, lambda: admin.list_topics("nope")),
            (TopicNotFound, lambda: admin.delete_topics("nope")),
            (TopicExists, lambda: admin.create_topics({"t": 1})),
            (InvalidArgument, lambda: admin.create_partitions({"t": 1})),
            (TopicNotFound, lambda: admin.commit_offsets("tool", {TopicPartition("nope", 0): 1})),
            (UnknownMember, lambda: admin.remove_members("g", instance_ids=["ghost"])),
        ):
            with pytest.raises(error):
                call()
        described = admin.describe_groups("g", "nope")
        assert isinstance(described["nope"], GroupNotFound)
        assert not isinstance(described["g"], HoldfastError)
        counted = admin.list_topics("t", "nope")
        assert counted["t"] == 1
        assert isinstance(counted["nope"], TopicNotFound)
        assert isinstance(admin.create_topics({"t": 1, "new": 1})["t"], TopicExists)
        assert isinstance(admin.delete_topics("u", "nope")["nope"], TopicNotFound)

    by_both(story)


def test_a_group_that_does_not_exist_is_said_by_each_call_about_one() -> None:
    """K-G1, K-J16: the service answers as if it were there, or names a member."""

    def story(admin: sync.Admin) -> None:
        for call in (
            lambda: admin.remove_members("nogroup", everyone=True),
            lambda: admin.remove_members("nogroup", instance_prefix="i"),
            lambda: admin.remove_members("nogroup", instance_ids=["a", "b"]),
            lambda: admin.remove_members("nogroup", member_ids=["a"]),
            lambda: admin.offsets("nogroup"),
            lambda: admin.offsets("nogroup", [T0]),
            lambda: admin.trigger_rebalance("nogroup"),
            lambda: admin.delete_offsets("nogroup", [T0]),
        ):
            with pytest.raises(GroupNotFound, match="nogroup"):
                call()
        assert admin.offsets("g") == {}

    by_both(story)


@pytest.mark.parametrize(
    ("wrong", "error"), [("", ValueError), ("a\n", ValueError), (3, TypeError)]
)
def test_what_no_group_can_be_called_is_told_before_anything_is_sent(
    wrong: str, error: type[Exception]
) -> None:
    """One answer for all calls; the service has two codes for the empty id, by the call."""
    with sync.Admin("127.0.0.1:1", timeout_ms=200) as admin:
        for call in (
            lambda: admin.describe_groups(wrong),
            lambda: admin.describe_groups("g", wrong),
            lambda: admin.delete_groups(wrong),
            lambda: admin.remove_members(wrong, everyone=True),
            lambda: admin.trigger_rebalance(wrong),
            lambda: admin.offsets(wrong),
            lambda: admin.commit_offsets(wrong, {T0: 1}),
            lambda: admin.delete_offsets(wrong, [T0]),
            lambda: admin.describe_settings(group=wrong),
            lambda: admin.alter_settings({"group.max_size": 5}, group=wrong),
        ):
            with pytest.raises(error):
                call()


def test_k8_a_word_that_is_no_state_is_told_and_case_does_not_matter() -> None:
    """The service takes it for a state that no group is in, as Kafka does."""

    def story(admin: sync.Admin) -> None:
        with pytest.raises(ValueError, match=r"'Bogus'.*Empty, PreparingRebalance"):
            admin.list_groups(states=["Bogus"])
        with pytest.raises(ValueError, match=r"'Bogus'.*classic"):
            admin.list_groups(types=["Bogus"])
        assert [group.group_id for group in admin.list_groups(states=["stable"])] == ["g"]
        assert admin.list_groups(states=["Empty"]) == []

    by_both(story)


def test_the_words_for_states_and_types_are_the_service_s() -> None:
    """The client has no server's code, so they stand twice."""
    of_classic, of_consumer = {PREPARING, COMPLETING}, {ASSIGNING, RECONCILING}
    assert set(GROUP_STATES) == {EMPTY, STABLE} | of_classic | of_consumer
    assert set(TYPES) <= set(GROUP_TYPES)


def test_s5_a_hand_over_that_may_have_happened_is_not_repeated() -> None:
    """The service does not remember it by a request id, and a second one would hand it on."""

    async def story() -> int:
        async with fake_cluster() as (group, nodes), Admin(nodes[0].address) as admin:
            unknown = (("holdfast-outcome", "unknown"),)
            group.refuse["TransferLeadership"] = [(grpc.StatusCode.UNAVAILABLE, unknown)]
            with pytest.raises(OutcomeUnknown):
                await admin.transfer_leadership("node-2")
            return len(group.requests["TransferLeadership"])

    assert asyncio.run(story()) == 1
