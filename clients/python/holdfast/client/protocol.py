"""The bytes of protocol type "consumer": subscriptions, assignments, and the group leader's work.

The group leader writes into each assignment which partition counts it assigned from. Members keep
it, and a group leader that restarts (it is told not to assign: KIP-814) can so see that a topic has
grown while it was away, which its own memory could not tell. No IO, no clock.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf.message import DecodeError

from holdfast.client.errors import AssignmentFailed, IncompatibleServer
from holdfast.coordinator.assignors import GENERATION_UNKNOWN, MemberSubscription
from holdfast.v1 import group_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.coordinator.assignors import Assignor

PROTOCOL_TYPE = "consumer"


class TopicPartition(NamedTuple):
    """One partition by name."""

    topic: str
    number: int


class Claim(NamedTuple):
    """What a member last owned, and in which generation."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = GENERATION_UNKNOWN


class Share(NamedTuple):
    """One member's assignment, and the partition counts that it was made from (None: not said)."""

    partitions: tuple[TopicPartition, ...]
    counts: Mapping[str, int] | None


def subscription_bytes(topics: Sequence[str], claim: Claim) -> bytes:
    """A serialised ConsumerProtocolSubscription; an empty claim leaves no trace in the bytes."""
    message = group_pb2.ConsumerProtocolSubscription(topics=topics)
    if claim.partitions:
        message.owned_partitions.extend(_grouped(claim.partitions))
        message.generation_id = claim.generation
    return message.SerializeToString(deterministic=True)


def read_subscription(member: group_pb2.JoinGroupResponseMember) -> MemberSubscription:
    """What one member asks for. Raises IncompatibleServer on unreadable bytes."""
    message = group_pb2.ConsumerProtocolSubscription()
    try:
        message.ParseFromString(member.metadata)
    except DecodeError as error:
        raise IncompatibleServer(
            f"The subscription of member {member.member_id!r} cannot be read: another kind of "
            "client is in this group. Give it a group of its own."
        ) from error
    return MemberSubscription(
        member_id=member.member_id,
        instance_id=member.group_instance_id if member.HasField("group_instance_id") else None,
        topics=frozenset(message.topics),
        owned={owned.topic: tuple(owned.partitions) for owned in message.owned_partitions},
        generation=message.generation_id
        if message.HasField("generation_id")
        else GENERATION_UNKNOWN,
    )


def read_share(assignment: bytes) -> Share:
    """The own assignment, from a sync's answer. Raises IncompatibleServer on unreadable bytes."""
    message = group_pb2.ConsumerProtocolAssignment()
    try:
        message.ParseFromString(assignment)
        counts = json.loads(message.user_data)["counts"] if message.user_data else None
    except (DecodeError, ValueError, KeyError, TypeError) as error:
        raise IncompatibleServer(
            "The assignment cannot be read: the group leader is another kind of client. "
            "Give it a group of its own."
        ) from error
    partitions = (
        TopicPartition(given.topic, number)
        for given in message.assigned_partitions
        for number in given.partitions
    )
    return Share(tuple(sorted(partitions)), counts)


def assign(
    assignor: Assignor, members: Sequence[MemberSubscription], counts: Mapping[str, int]
) -> list[group_pb2.SyncGroupRequestAssignment]:
    """The group leader's work: every member's assignment, ready to be handed in.

    Raises AssignmentFailed when the assignor does, whatever that raises: it is the user's code.
    """
    try:
        shares = assignor.assign(members, counts)
    except Exception as error:
        raise AssignmentFailed(
            f"Assignor {assignor.name!r} failed on {len(members)} members: {error!r}. "
            "Nobody gets an assignment until this is repaired."
        ) from error
    user_data = json.dumps({"counts": counts}, sort_keys=True).encode()
    return [
        group_pb2.SyncGroupRequestAssignment(
            member_id=member_id,
            assignment=group_pb2.ConsumerProtocolAssignment(
                assigned_partitions=_grouped(
                    TopicPartition(topic, number)
                    for topic, numbers in topics.items()
                    for number in numbers
                ),
                user_data=user_data,
            ).SerializeToString(deterministic=True),
        )
        for member_id, topics in sorted(shares.items())
    ]


def _grouped(
    partitions: Iterable[TopicPartition],
) -> list[group_pb2.ConsumerProtocolTopicPartitions]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    return [
        group_pb2.ConsumerProtocolTopicPartitions(topic=topic, partitions=numbers)
        for topic, numbers in by_topic.items()
    ]
