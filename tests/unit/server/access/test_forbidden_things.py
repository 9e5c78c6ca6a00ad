"""Refusals of single things in a call name who was refused, and the command that would help."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.coordinator.model.access import (
    DENY,
    GROUP,
    MEMBER,
    OPERATOR,
    READER,
    TOPIC,
    Acl,
)
from holdfast.coordinator.model.events import AccessModeChanged, AclsChanged
from holdfast.server.config.node_config import ANONYMOUS
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import offset_pb2 as o
from unit.server.consumer_calls import with_topics
from unit.server.nodes import served
from unit.server.session_calls import Stream, call

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from unit.server.nodes import Served

FORBIDDEN = e.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED


def grant(node: Served, *more: Acl) -> None:
    """Deny everything but to be a member of group g, to run topics own*, and what is given."""
    grants = (Acl(ANONYMOUS, MEMBER, GROUP, "g"), Acl(ANONYMOUS, OPERATOR, TOPIC, "own*"), *more)
    node.replica.slip_in("", AclsChanged(grants, ()), AccessModeChanged(DENY))


def told(method: str, role: str, kind: str, name: str) -> str:
    """What ADR 30 has a refusal say: what was refused, to whom, and who can change it."""
    return (
        f"{method} needs the role {role} on {kind} '{name}', and no grant gives it to the "
        "principal 'anonymous'. An administrator can: "
        f"`holdfast acl grant anonymous {role} --{kind} {name}`"
    )


def story(steps: Callable[[Served], Awaitable[None]]) -> None:
    """Run the steps on a node where topics `own` and `secret` are."""

    async def run() -> None:
        async with served() as node:
            with_topics(node, "own", "secret")
            grant(node)
            await steps(node)

    asyncio.run(run())


def commit(*topics: str) -> o.OffsetCommitRequest:
    """Commit an offset of partition 0 of each topic, as no member."""
    request = o.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1)
    for topic in topics:
        request.topics.add(name=topic).partitions.add(partition_index=0, committed_offset=1)
    return request


def codes(response: Any) -> list[int]:  # noqa: ANN401 - a commit's or a deletion's
    """The code of each partition."""
    return [each.error_code for topic in response.topics for each in topic.partitions]


@pytest.mark.parametrize("name", ["secret", "absent"])
@pytest.mark.parametrize("way", ["unary", "session"])
def test_a_commit_of_a_foreign_topic_names_the_principal_and_the_grant(name: str, way: str) -> None:
    """ADR 30: in the same words whether the topic exists or not."""

    async def steps(node: Served) -> None:
        if way == "unary":
            got = await node.offset.OffsetCommit(commit("own", name))
        else:
            stream = Stream(node)
            await stream.send(call(1, commit("own", name)))
            got = (await stream.answer(1)).commit

        assert codes(got) == [e.ERROR_CODE_NONE, FORBIDDEN]
        assert got.holdfast.message == told("OffsetCommit", READER, TOPIC, name)

    story(steps)


def test_a_deletion_of_a_foreign_topics_offsets_names_them_too() -> None:
    """ADR 30: deleting offsets of a topic needs a reader of it."""

    async def steps(node: Served) -> None:
        grant(node, Acl(ANONYMOUS, OPERATOR, GROUP, "g"))
        await node.offset.OffsetCommit(commit("own"))
        request = o.OffsetDeleteRequest(group_id="g")
        request.topics.add(name="secret").partitions.add(partition_index=0)
        got = await node.offset.OffsetDelete(request)

        assert codes(got) == [FORBIDDEN]
        assert got.holdfast.message == told("OffsetDelete", READER, TOPIC, "secret")

    story(steps)


def test_each_topic_that_may_not_be_made_grown_or_deleted_has_its_own_sentence() -> None:
    """ADR 30: what is allowed is done, and each refusal names its own topic."""

    async def steps(node: Served) -> None:
        made = await node.admin.CreateTopics(
            a.CreateTopicsRequest(
                topics=[a.CreatableTopic(name=n, num_partitions=1) for n in ("own2", "x", "y")]
            )
        )
        grown = await node.admin.CreatePartitions(
            a.CreatePartitionsRequest(topics=[a.CreatePartitionsTopic(name="secret", count=9)])
        )
        gone = await node.admin.DeleteTopics(
            a.DeleteTopicsRequest(topics=[a.DeleteTopicState(name="secret")])
        )

        sentences = [told("CreateTopics", OPERATOR, TOPIC, name) for name in ("x", "y")]
        assert [each.error_message for each in made.topics] == ["", *sentences]
        assert made.holdfast.message == sentences[0]
        assert grown.results[0].error_message == told("CreatePartitions", OPERATOR, TOPIC, "secret")
        assert gone.responses[0].error_message == told("DeleteTopics", OPERATOR, TOPIC, "secret")

    story(steps)


def test_a_group_that_may_not_be_seen_or_deleted_names_them_too() -> None:
    """ADR 30: of several groups each is refused by itself."""

    async def steps(node: Served) -> None:
        asked = a.DescribeGroupsRequest(groups=["h"])
        shown = await node.admin.DescribeGroups(asked)
        new = await node.admin.ConsumerGroupDescribe(
            a.ConsumerGroupDescribeRequest(group_ids=["h"])
        )
        gone = await node.admin.DeleteGroups(a.DeleteGroupsRequest(groups_names=["h"]))
        fetched = await node.offset.OffsetFetch(
            o.OffsetFetchRequest(groups=[o.OffsetFetchRequestGroup(group_id="h")])
        )

        assert shown.groups[0].error_message == told("DescribeGroups", READER, GROUP, "h")
        assert new.groups[0].error_message == told("ConsumerGroupDescribe", READER, GROUP, "h")
        assert gone.results[0].holdfast.message == told("DeleteGroups", OPERATOR, GROUP, "h")
        assert fetched.groups[0].error_code == e.ERROR_CODE_GROUP_AUTHORIZATION_FAILED
        assert fetched.holdfast.message == told("OffsetFetch", READER, GROUP, "h")

    story(steps)
