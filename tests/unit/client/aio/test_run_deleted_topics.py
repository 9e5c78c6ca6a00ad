"""`Member.run` when a topic was deleted by force: a handler whose commit is refused for it."""

from __future__ import annotations

import asyncio

import pytest

from harness.poll import until_async
from holdfast.client import Member, Partition, TopicNotFound
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client.fake_cluster import fake_cluster, said
from unit.client.run_parts import QUICK, run


def test_a_commit_for_a_topic_that_was_deleted_ends_the_handler_and_not_the_member(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An operator's forced deletion must not take the other topics' partitions along."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            ended: list[int] = []

            async def handler(partition: Partition) -> None:
                if partition.number == 2:
                    await member.commit({partition.name: 1})
                await partition.wait_revoked()
                ended.append(partition.number)

            group.commit_code = ErrorCode.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
            async with Member(node.address, **QUICK) as member:
                running = asyncio.create_task(member.run(handler))
                await until_async(
                    lambda: any("t/2 has ended" in one.getMessage() for one in said(caplog)),
                    "the handler's end",
                )
                assert member.health().ready
                assert not ended
                await member.leave()
                await running
            assert sorted(ended) == [0, 1, 3]

    run(scenario())


def test_a_commit_for_a_topic_of_others_that_is_not_there_ends_the_member() -> None:
    """It is no deletion but a mistake of the program, and must not pass in silence."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):

            async def handler(_: Partition) -> None:
                await member.commit({("typo", 0): 1})

            group.commit_code = ErrorCode.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
            async with Member(node.address, **QUICK) as member:
                with pytest.raises(TopicNotFound, match="typo/0"):
                    await member.run(handler)

    run(scenario())
