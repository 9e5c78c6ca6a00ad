"""The calls of the member that computes a target, over a real gRPC server (KIP-848)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from holdfast.coordinator.consumer.client_side.choice import PROBLEM_MAX
from holdfast.coordinator.model.access import DENY, GROUP, MEMBER, READER, TOPIC, Acl
from holdfast.coordinator.model.consumer_events import AssignmentRequested
from holdfast.coordinator.model.events import AccessModeChanged, AclsChanged
from holdfast.server.config.node_config import ANONYMOUS
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from unit.server.consumer_calls import beat, join, places, with_topics
from unit.server.nodes import served

if TYPE_CHECKING:
    from unit.server.nodes import Served

OWN = x.ClientAssignor(
    name="own", minimum_version=1, maximum_version=3, reason=0, version=2, metadata=b"mine"
)


def able(*said: x.ClientAssignor) -> x.RequestExtras:
    """What a heartbeat says of the assignors that its member can run."""
    return x.RequestExtras(client_assignors=x.ClientAssignors(assignors=said or (OWN,)))


def prepared(member_id: str = "m1", epoch: int = 1) -> g.PrepareAssignmentRequest:
    return g.PrepareAssignmentRequest(group_id="g", member_id=member_id, member_epoch=epoch)


def installs(epoch: int, group_epoch: int, **owned: list[int]) -> g.InstallAssignmentRequest:
    """A target of `m1`: the partitions of `t` for each member, with what is said beside them."""
    members = [
        g.InstallAssignmentRequestMember(
            member_id=member_id,
            topic_partitions=[g.ConsumerGroupTopicPartitions(topic="t", partitions=numbers)],
            version=3,
            metadata=f"for {member_id}".encode(),
        )
        for member_id, numbers in owned.items()
    ]
    return g.InstallAssignmentRequest(
        group_id="g", member_id="m1", member_epoch=epoch, group_epoch=group_epoch, members=members
    )


async def joined(node: Served) -> g.ConsumerGroupHeartbeatResponse:
    """Members `m1`, which is chosen, and `m2`."""
    with_topics(node)
    first = await node.group.ConsumerGroupHeartbeat(join("m1", holdfast=able(), rack_id="r"))
    await node.group.ConsumerGroupHeartbeat(join("m2", holdfast=able(), instance_id="i2"))
    return first


def test_from_the_choice_to_what_the_assignor_says_to_each() -> None:
    """KIP-848: should_compute, what is prepared, what is installed, and Assignment.Metadata."""

    async def story() -> None:
        async with served() as node:
            first = await joined(node)
            assert first.holdfast.should_compute
            found = await node.group.PrepareAssignment(prepared())
            described = await node.admin.ConsumerGroupDescribe(
                a.ConsumerGroupDescribeRequest(group_ids=["g"])
            )
            answer = await node.group.InstallAssignment(installs(1, 3, m1=[1], m2=[0]))
            told = await node.group.ConsumerGroupHeartbeat(beat(1))
            other = await node.group.ConsumerGroupHeartbeat(beat(1, "m2", instance_id="i2"))

            assert (found.error_code, found.group_epoch) == (e.ERROR_CODE_NONE, 3)
            assert (found.assignor_name, found.assignor_version) == ("own", 3)
            one, two = found.members
            assert (one.member_id, one.rack_id, one.assignor) == ("m1", "r", OWN)
            assert (two.member_id, two.instance_id) == ("m2", "i2")
            assert (one.topic_list, two.topic_list) == (0, 0)
            assert list(found.topic_lists) == [g.PrepareAssignmentResponseTopicList(topics=[0])]
            assert list(found.topics) == [
                g.PrepareAssignmentResponseTopic(name="t", num_partitions=2)
            ]
            (group,) = described.groups
            assert (group.group_state, group.assignor_name) == ("Assigning", "own")
            assert [each.holdfast.should_compute for each in group.members] == [True, False]
            (shown,) = group.members[0].holdfast.client_assignors
            assert (shown.name, shown.minimum_version, shown.maximum_version) == ("own", 1, 3)
            assert shown.metadata == b"", "that is for assignors alone"
            assert answer.error_code == e.ERROR_CODE_NONE
            assert answer.holdfast.HasField("position")
            assert places(told.assignment) == [("t", 1)]
            assert told.holdfast.assigned_metadata == x.AssignedMetadata(
                assignor="own", version=3, metadata=b"for m1"
            )
            assert not told.holdfast.should_compute
            assert other.holdfast.assigned_metadata.metadata == b"for m2"

    asyncio.run(story())


def test_refusals_have_a_code_and_a_sentence_that_says_what_to_do() -> None:
    """KIP-848's codes; no refusal here ends a member."""

    async def story() -> None:
        async with served() as node:
            await joined(node)
            found = [
                await node.group.PrepareAssignment(asked)
                for asked in (
                    g.PrepareAssignmentRequest(group_id="nowhere", member_id="m1"),
                    prepared("nobody"),
                    prepared(epoch=9),
                    prepared("m2"),
                )
            ]
            stale = await node.group.InstallAssignment(installs(1, 2, m1=[0]))
            twice = await node.group.InstallAssignment(installs(1, 3, m1=[0, 0]))

            assert [each.error_code for each in found] == [
                e.ERROR_CODE_GROUP_ID_NOT_FOUND,
                e.ERROR_CODE_UNKNOWN_MEMBER_ID,
                e.ERROR_CODE_STALE_MEMBER_EPOCH,
                e.ERROR_CODE_UNKNOWN_MEMBER_ID,
            ]
            assert "not the one to compute" in found[3].error_message
            assert stale.error_code == e.ERROR_CODE_STALE_MEMBER_EPOCH
            assert "prepare and compute again" in stale.error_message
            assert twice.error_code == e.ERROR_CODE_INVALID_REQUEST
            assert twice.error_message.startswith("members: a partition of 't' is named twice")

    asyncio.run(story())


def test_a_repeated_request_is_answered_as_the_first_one_was() -> None:
    """S15: the answer was lost; the target is in force."""

    async def story() -> None:
        async with served() as node:
            await joined(node)
            request = installs(1, 3, m1=[0, 1])
            found = await node.group.FindCoordinator(g.FindCoordinatorRequest())
            made_ms = found.holdfast.log_time_ms
            request.holdfast.request_id = (
                f"{made_ms >> 16:08x}-{made_ms & 0xFFFF:04x}-7000-8000-000000000001"
            )
            first = await node.group.InstallAssignment(request)
            again = await node.group.InstallAssignment(request)

            assert first.error_code == again.error_code == e.ERROR_CODE_NONE

    asyncio.run(story())


def test_partitions_that_a_target_leaves_out_are_described() -> None:
    """ADR 53, 7: given to nobody, they are nobody's, and nobody else says so."""

    async def story() -> None:
        async with served() as node:
            await joined(node)
            await node.group.InstallAssignment(installs(1, 3, m1=[1]))
            described = await node.admin.ConsumerGroupDescribe(
                a.ConsumerGroupDescribeRequest(group_ids=["g"])
            )

            assert places(described.groups[0].holdfast.left_out) == [("t", 0)]

    asyncio.run(story())


def failing(**told: Any) -> g.InstallAssignmentRequest:  # noqa: ANN401 - a field of it
    failure = g.AssignmentFailure(**{"group_epoch": 3, **told})
    return g.InstallAssignmentRequest(group_id="g", member_id="m1", member_epoch=1, failure=failure)


def problems(node: Served) -> list[str]:
    """What the log says of those that made no target."""
    events = [record.event for record in node.replica.records]
    return [each.problem for each in events if isinstance(each, AssignmentRequested) and each.late]


def test_adr58_who_makes_no_target_is_relieved_at_once() -> None:
    """Another is asked; the log has the reason on one line, or at least the code."""

    async def story() -> None:
        async with served() as node:
            await joined(node)
            words = failing(error_message="it\nfailed\0")
            first = await node.group.InstallAssignment(words)
            again = await node.group.InstallAssignment(words)
            mine = await node.group.ConsumerGroupHeartbeat(beat(1))
            other = await node.group.ConsumerGroupHeartbeat(beat(1, "m2", instance_id="i2"))

            assert first.error_code == e.ERROR_CODE_NONE
            assert first.holdfast.HasField("position")
            assert again.error_code == e.ERROR_CODE_UNKNOWN_MEMBER_ID
            assert not mine.holdfast.should_compute
            assert other.holdfast.should_compute
            assert problems(node) == [r"it\nfailed\x00"]

    asyncio.run(story())


def test_adr58_a_failure_without_words_is_told_by_its_code() -> None:
    """However long the words, they are cut and never refused: the member would stay chosen."""

    async def story() -> None:
        async with served() as node:
            await joined(node)
            await node.group.InstallAssignment(
                failing(error_code=e.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED, group_epoch=0)
            )
            request = failing(error_message="x" * 60_000)
            request.member_id = "m2"
            await node.group.InstallAssignment(request)

            assert problems(node) == [
                f"it tells no reason but the code {e.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED}",
                "x" * PROBLEM_MAX,
            ]

    asyncio.run(story())


def test_who_may_not_read_all_topics_of_the_group_gets_no_picture_of_it() -> None:
    """No list names what the caller may not read; a target names none of these either."""

    async def story() -> None:
        async with served() as node:
            await joined(node)
            everyone = Acl(ANONYMOUS, MEMBER, GROUP, "g")
            node.replica.slip_in("", AclsChanged((everyone,), ()), AccessModeChanged(DENY))
            found = await node.group.PrepareAssignment(prepared())
            answer = await node.group.InstallAssignment(installs(1, 3, m1=[0]))
            reads = Acl(ANONYMOUS, READER, TOPIC, "t")
            node.replica.slip_in("", AclsChanged((reads,), ()))
            after = await node.group.PrepareAssignment(prepared())

            assert found.error_code == e.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED
            assert not found.members
            assert "'t'" not in found.error_message
            assert answer.error_code == e.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED
            assert after.error_code == e.ERROR_CODE_NONE

    asyncio.run(story())


def test_only_what_says_so_changes_what_a_member_can_run() -> None:
    """Unset and empty differ: a plain heartbeat leaves it, an empty list takes it away."""

    async def story() -> None:
        async with served() as node:
            await joined(node)
            plain = await node.group.ConsumerGroupHeartbeat(beat(1))
            nothing: Any = x.RequestExtras(client_assignors=x.ClientAssignors())
            without = await node.group.ConsumerGroupHeartbeat(beat(1, holdfast=nothing))

            assert plain.holdfast.should_compute
            assert not without.holdfast.should_compute
            assert without.member_epoch == 4, "the service has computed a target"

    asyncio.run(story())
