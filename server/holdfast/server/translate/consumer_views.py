"""Descriptions of groups of the heartbeat protocol become messages. Decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.rejections import GroupAuthorizationFailed
from holdfast.coordinator.model.text import readable
from holdfast.server.guard.answer_size import Encoded
from holdfast.server.translate import rebalances
from holdfast.server.translate.refusals import code_of, sentence
from holdfast.server.translate.responses import partition_tokens
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.coordinator.model.described import (
        DescribedConsumerGroup,
        DescribedConsumerMember,
    )
    from holdfast.coordinator.model.ids import TopicName, TopicPartitions
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.coordinator.projections.history import History
    from holdfast.server.guard.answer_size import Room
    from holdfast.server.rpc.slices import Slices

CLASSIC, CONSUMER = 0, 1
"""Kafka's numbers of the protocol that a member speaks."""
_UNREADABLE: Final = (
    "the group has topics that no grant lets this principal read. An administrator can give one: "
    "`holdfast acl grant`"
)
"""It names none of them: the caller has not."""


async def described(
    group: DescribedConsumerGroup,
    told: History,
    sees: Callable[[str], bool],
    room: Room,
    slices: Slices,
) -> bytes:
    """Encode a group, its members, and its last epochs. Raises CallFailed if there is no room.

    `sees`: tells whether the caller may read a topic; the group may have had others before.
    """
    head = _head(group)
    left_out = [each for each in group.left_out if sees(each.topic)]
    head.holdfast.left_out.CopyFrom(_partitions(left_out))
    for epoch in told:
        moves = tuple(each for each in epoch.moves if sees(each.topic))
        head.holdfast.epochs.append(rebalances.described(epoch._replace(moves=moves)))
    made = Encoded(head, room)
    async for member in slices.of(group.members):
        made.add(a.ConsumerGroupDescribedGroup.MEMBERS_FIELD_NUMBER, _member(member))
    return made.encoded()


async def topics(group: DescribedConsumerGroup, slices: Slices) -> frozenset[TopicName]:
    """Collect the topics that a description names."""
    names = set[str]()
    async for member in slices.of(group.members):
        names.update(member.topics)
        names.update(each.topic for each in (*member.assignment, *member.target))
    return frozenset(names)


def forbidden(group_id: str, why: str) -> a.ConsumerGroupDescribedGroup:
    """Make the answer about a group that the caller may not see, whether it exists or not."""
    code = code_of(GroupAuthorizationFailed(group_id))
    return a.ConsumerGroupDescribedGroup(
        error_code=code, error_message=readable(why), group_id=group_id
    )


def unreadable(group_id: str) -> a.ConsumerGroupDescribedGroup:
    """Make the answer about a group that has topics which the caller may not read."""
    return a.ConsumerGroupDescribedGroup(
        error_code=e.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED,
        error_message=_UNREADABLE,
        group_id=group_id,
    )


def _refused(group_id: str, error: Rejection) -> a.ConsumerGroupDescribedGroup:
    return a.ConsumerGroupDescribedGroup(
        error_code=code_of(error), error_message=sentence(error), group_id=group_id
    )


def _head(group: DescribedConsumerGroup) -> a.ConsumerGroupDescribedGroup:
    if group.error is not None:
        return _refused(group.group_id, group.error)
    return a.ConsumerGroupDescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        holdfast=a.ConsumerGroupDescribedGroupExtras(passed_over=group.passed_over),
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
        should_compute=member.should_compute,
        client_assignors=[
            x.ClientAssignor(**each._replace(metadata=b"")._asdict())
            for each in member.client_assignors
        ],
    )


def _partitions(given: Iterable[TopicPartitions]) -> g.ConsumerGroupAssignment:
    topics = (
        g.ConsumerGroupTopicPartitions(topic=each.topic, partitions=each.partitions)
        for each in given
    )
    return g.ConsumerGroupAssignment(topic_partitions=topics)
