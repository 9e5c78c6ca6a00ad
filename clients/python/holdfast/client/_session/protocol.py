"""The bytes of protocol type "consumer": subscriptions, assignments, and the group leader's work.

The group leader writes into each assignment which partition counts it assigned from. Members keep
it, and a group leader that restarts (it is told not to assign: KIP-814) can so see that a topic has
grown while it was away, which its own memory could not tell. A cooperative assignment also says who
must join again because others wait for what it claimed: whoever then holds the member's place knows
it, also a process that was started again meanwhile. No IO, no clock.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf.message import DecodeError

from holdfast.client._session.session_io import TopicPartition
from holdfast.client.errors import AssignmentFailed, IncompatibleServer
from holdfast.coordinator.assignors import GENERATION_UNKNOWN, MemberSubscription
from holdfast.v1 import group_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.coordinator.assignors import Assignor

PROTOCOL_TYPE = "consumer"
WEIGHT_MAX = 1_000_000
"""A larger one counts as this: beyond it, sharing out would take longer the more absurd it is."""

_UNREADABLE = (
    *(DecodeError, ValueError, KeyError, TypeError),
    *(AttributeError, OverflowError, RecursionError),
)
"""What reading somebody else's protobuf and JSON may raise."""


class Claim(NamedTuple):
    """What a member last owned, and in which generation."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = GENERATION_UNKNOWN


class Assignment(NamedTuple):
    """One member's assignment."""

    partitions: tuple[TopicPartition, ...]
    counts: Mapping[str, int] | None
    """The partition counts that it was made from; None: not said."""
    join_again: bool = False
    """Others wait for something that this member claimed (KIP-429)."""


def subscription_bytes(
    topics: Sequence[str], claim: Claim, *, weight: int = 1, cooperative: bool = False
) -> bytes:
    """Serialise a ConsumerProtocolSubscription.

    An empty claim leaves no trace in the bytes, but for a cooperative assignor: there even "I own
    nothing now" is news, and only changed bytes begin a rebalance (K-A14, K-A16).
    """
    message = group_pb2.ConsumerProtocolSubscription(topics=topics)
    if claim.partitions or (cooperative and claim.generation != GENERATION_UNKNOWN):
        message.owned_partitions.extend(_grouped(claim.partitions))
        message.generation_id = claim.generation
    if weight != 1:
        message.user_data = json.dumps({"weight": weight}).encode()
    return message.SerializeToString(deterministic=True)


def read_subscription(member: group_pb2.JoinGroupResponseMember) -> MemberSubscription:
    """Read what one member asks for. Raises IncompatibleServer on unreadable bytes."""
    message = group_pb2.ConsumerProtocolSubscription()
    try:
        message.ParseFromString(member.metadata)
    except DecodeError as error:
        raise IncompatibleServer(
            f"The subscription of member {member.member_id!r} cannot be read: another kind of "
            "client is in this group. Give it a group of its own."
        ) from error
    owned: dict[str, list[int]] = {}
    for claimed in message.owned_partitions:  # a topic may be named more than once
        owned.setdefault(claimed.topic, []).extend(claimed.partitions)
    return MemberSubscription(
        member_id=member.member_id,
        instance_id=member.group_instance_id if member.HasField("group_instance_id") else None,
        topics=frozenset(message.topics),
        owned={topic: tuple(numbers) for topic, numbers in owned.items()},
        generation=message.generation_id
        if message.HasField("generation_id")
        else GENERATION_UNKNOWN,
        weight=_weight(message.user_data),
    )


def _weight(user_data: bytes) -> int:
    """Read what a member of ours states; another assignor's own bytes state nothing."""
    try:
        return min(int(json.loads(user_data)["weight"]), WEIGHT_MAX)
    except _UNREADABLE:
        return 1


def read_assignment(assignment: bytes) -> Assignment:
    """Read the own assignment in a sync's answer. Raises IncompatibleServer on unreadable bytes."""
    message = group_pb2.ConsumerProtocolAssignment()
    try:
        message.ParseFromString(assignment)
        said = json.loads(message.user_data) if message.user_data else {"counts": None}
        counts, join_again = said["counts"], bool(said.get("join_again"))
        counts = counts and {topic: int(count) for topic, count in counts.items()}
    except _UNREADABLE as error:
        raise IncompatibleServer(
            "The assignment cannot be read: the group leader is another kind of client. "
            "Give it a group of its own."
        ) from error
    partitions = (
        TopicPartition(given.topic, number)
        for given in message.assigned_partitions
        for number in given.partitions
    )
    return Assignment(tuple(sorted(partitions)), counts, join_again)


def assign(
    assignor: Assignor, members: Sequence[MemberSubscription], counts: Mapping[str, int]
) -> list[group_pb2.SyncGroupRequestAssignment]:
    """Do the group leader's work: every member's assignment, ready to be handed in.

    Raises AssignmentFailed when the assignor does, whatever that raises: it is the user's code.
    """
    try:
        shares = assignor.assign(members, counts)
    except Exception as error:
        raise AssignmentFailed(
            f"Assignor {assignor.name!r} failed on {len(members)} members: {error!r}. "
            "Nobody gets an assignment until this is repaired."
        ) from error
    claims = {member.member_id: member.owned for member in members}
    assignments = []
    for member_id, topics in sorted(shares.items()):
        said: dict[str, object] = {"counts": counts}
        if assignor.cooperative and _left_out(claims.get(member_id, {}), topics):
            said["join_again"] = True
        assignment = group_pb2.ConsumerProtocolAssignment(
            assigned_partitions=_grouped(_flat(topics)),
            user_data=json.dumps(said, sort_keys=True).encode(),
        ).SerializeToString(deterministic=True)
        assignments.append(
            group_pb2.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
        )
    return assignments


def _left_out(claimed: Mapping[str, Sequence[int]], given: Mapping[str, Sequence[int]]) -> bool:
    return not set(_flat(claimed)) <= set(_flat(given))


def _flat(topics: Mapping[str, Sequence[int]]) -> list[TopicPartition]:
    return [TopicPartition(topic, n) for topic, numbers in topics.items() for n in numbers]


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
