"""Descriptions of groups of the heartbeat protocol become messages. Decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.kernel import queries
from holdfast.coordinator.model.rejections import GroupAuthorizationFailed
from holdfast.server.guard.answer_size import Encoded
from holdfast.server.translate.refusals import code_of, sentence
from holdfast.server.translate.responses import partition_tokens
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model.described import (
        DescribedConsumerGroup,
        DescribedConsumerMember,
    )
    from holdfast.coordinator.model.ids import TopicPartitions
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.coordinator.model.state import State
    from holdfast.server.guard.answer_size import Room
    from holdfast.server.rpc.slices import Slices

CLASSIC, CONSUMER = 0, 1
"""Kafka's numbers of the protocol that a member speaks."""


async def described(state: State, group_id: str, room: Room, slices: Slices) -> bytes:
    """Encode a group and its members. Raises CallFailed if there is no room for it."""
    await slices.done()
    found = queries.describe_consumer_group(state, group_id)
    made = Encoded(_head(group_id, found), room)
    async for member in slices.of(found.members):
        made.add(a.ConsumerGroupDescribedGroup.MEMBERS_FIELD_NUMBER, _member(member))
    return made.encoded()


def forbidden(group_id: str) -> a.ConsumerGroupDescribedGroup:
    """Make the answer about a group that the caller may not see, whether it exists or not."""
    return _refused(group_id, GroupAuthorizationFailed(group_id))


def _refused(group_id: str, error: Rejection) -> a.ConsumerGroupDescribedGroup:
    return a.ConsumerGroupDescribedGroup(
        error_code=code_of(error), error_message=sentence(error), group_id=group_id
    )


def _head(group_id: str, group: DescribedConsumerGroup) -> a.ConsumerGroupDescribedGroup:
    if group.error is not None:
        return _refused(group_id, group.error)
    return a.ConsumerGroupDescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
    )


def _member(member: DescribedConsumerMember) -> a.ConsumerGroupDescribedMember:
    return a.ConsumerGroupDescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        subscribed_topic_regex=member.regex,
        assignment=_partitions(member.assignment),
        target_assignment=_partitions(member.target),
        member_type=CLASSIC if member.classic else CONSUMER,
        holdfast=_extras(member),
    )


def _extras(member: DescribedConsumerMember) -> a.ConsumerGroupDescribedMemberExtras:
    return a.ConsumerGroupDescribedMemberExtras(
        state=member.state,
        revoking=_partitions(member.revoking),
        partition_tokens=partition_tokens(member.owned),
        released=member.released,
        principal=member.principal,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
    )


def _partitions(given: Iterable[TopicPartitions]) -> g.ConsumerGroupAssignment:
    topics = (
        g.ConsumerGroupTopicPartitions(topic=each.topic, partitions=each.partitions)
        for each in given
    )
    return g.ConsumerGroupAssignment(topic_partitions=topics)
