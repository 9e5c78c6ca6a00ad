"""Members' requests are translated to commands, or CallFailed names the field and the limit."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from google.protobuf.message import DecodeError

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.events import Assigned, OffsetCommitted
from holdfast.coordinator.model.ids import TopicPartition, TopicPartitions
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.server.guard.item_bounds import Bounds
from holdfast.server.rpc.errors import malformed
from holdfast.server.translate import assignments, limits
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holdfast.v1 import offset_pb2 as o

CONSUMER = "consumer"
"""The protocol type whose metadata the server reads."""
SUBSCRIBED_MAX: Final = 10_000
"""Topics in one join, summed over its protocols; each protocol usually repeats them."""
_SUBSCRIPTION: Final = Bounds(g.ConsumerProtocolSubscription.DESCRIPTOR, "protocols.metadata")


_UNSET: Final = -1


def join_group(request: g.JoinGroupRequest, caller: c.Caller, fresh_member_id: str) -> c.JoinGroup:
    """Translate JoinGroup to its command; `fresh_member_id` must never have been used before."""
    read = [_subscription(each.metadata) for each in request.protocols if _is_consumer(request)]
    return c.JoinGroup(
        caller=caller,
        group_id=request.group_id,
        member_id=limits.text("member_id", request.member_id),
        instance_id=_instance_id(request),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocol_type=limits.text("protocol_type", request.protocol_type),
        protocols=tuple(_protocols(request, read)),
        fresh_member_id=fresh_member_id,
        reason=limits.text("reason", request.reason),
        owned=_claimed(read),
        rack_id=next((each.rack_id or None for each in read if each is not None), None),
    )


def _is_consumer(request: g.JoinGroupRequest) -> bool:
    return request.protocol_type == CONSUMER


def _claimed(read: Iterable[g.ConsumerProtocolSubscription | None]) -> tuple[TopicPartitions, ...]:
    """Return what a member says that it owns, in any of its protocols, by topic."""
    by_topic: dict[str, set[int]] = {}
    for subscription in read:
        for each in () if subscription is None else subscription.owned_partitions:
            by_topic.setdefault(each.topic, set()).update(each.partitions)
    return tuple(TopicPartitions(name, tuple(sorted(by_topic[name]))) for name in sorted(by_topic))


def _instance_id(
    message: g.JoinGroupRequest
    | g.SyncGroupRequest
    | g.HeartbeatRequest
    | o.OffsetCommitRequest
    | g.LeaveGroupRequestMember,
) -> str | None:
    if not message.HasField("group_instance_id"):
        return None
    return limits.text("group_instance_id", message.group_instance_id)


def _protocols(
    request: g.JoinGroupRequest, read: Sequence[g.ConsumerProtocolSubscription | None]
) -> Iterator[Protocol]:
    left = SUBSCRIBED_MAX
    for item, subscription in zip_longest(request.protocols, read):
        named = None if subscription is None else subscription.topics
        left -= len(named or ())
        if left < 0:
            raise malformed(
                "protocols.metadata.topics",
                f"all protocols together name more than {SUBSCRIBED_MAX} topics, so nothing was "
                "done. Offer fewer protocols, or subscribe to fewer topics",
            )
        topics = None if named is None else tuple(sorted(set(named)))
        yield Protocol(limits.text("protocols.name", item.name), item.metadata, topics)


def subscribed(metadata: bytes) -> tuple[str, ...] | None:
    """Return the topics of a ConsumerProtocolSubscription, sorted; None if it cannot be read.

    Empty bytes are a subscription to nothing: so the contract's message is encoded when a pattern
    matches no topic. Raises CallFailed if there are too many.
    """
    read = _subscription(metadata)
    return None if read is None else tuple(sorted(set(read.topics)))


def _subscription(metadata: bytes) -> g.ConsumerProtocolSubscription | None:
    """Return the subscription as it was sent; None if the bytes cannot be read."""
    _SUBSCRIPTION.check_bytes(metadata)
    try:
        subscription = g.ConsumerProtocolSubscription.FromString(metadata)
    except DecodeError:
        return None
    _SUBSCRIPTION.check(subscription)
    return subscription


def assigned(assignments: Iterable[g.SyncGroupRequestAssignment]) -> Iterator[Assigned]:
    """Yield the assignments that a group's leader sends, one by one: they may be long."""
    for each in assignments:
        yield Assigned(each.member_id, each.assignment)


def sync_group(
    request: g.SyncGroupRequest, caller: c.Caller, assignments: tuple[Assigned, ...]
) -> c.SyncGroup:
    """Translate SyncGroup to its command."""
    named = request.HasField("protocol_name")
    return c.SyncGroup(
        caller=caller,
        group_id=request.group_id,
        generation=request.generation_id,
        member_id=limits.text("member_id", request.member_id),
        instance_id=_instance_id(request),
        protocol_type=request.protocol_type if request.HasField("protocol_type") else None,
        protocol_name=request.protocol_name if named else None,
        assignments=assignments,
    )


def heartbeat(request: g.HeartbeatRequest, caller: c.Caller) -> c.Heartbeat:
    """Translate Heartbeat, alone or one of a batch, to its command."""
    return c.Heartbeat(
        caller,
        request.group_id,
        request.generation_id,
        limits.text("member_id", request.member_id),
        _instance_id(request),
        request.HasField("holdfast") and request.holdfast.release,
    )


def consumer_heartbeat(
    request: g.ConsumerGroupHeartbeatRequest, caller: c.Caller, regex_problem: str = ""
) -> c.ConsumerGroupHeartbeat:
    """Translate ConsumerGroupHeartbeat; `regex_problem`: why its regular expression is no good."""
    return c.ConsumerGroupHeartbeat(
        caller=caller,
        group_id=request.group_id,
        member_id=limits.text("member_id", request.member_id),
        member_epoch=request.member_epoch,
        instance_id=_optional_text(request, "instance_id"),
        rack_id=_optional_text(request, "rack_id"),
        rebalance_timeout_ms=_rebalance_timeout_ms(request),
        topics=_subscribed_names(request),
        regex=_optional_text(request, "subscribed_topic_regex"),
        regex_problem=regex_problem,
        server_assignor=_optional_text(request, "server_assignor"),
        client_assignors=assignments.client_assignors(request.holdfast),
        owned=_owned(request),
        life=limits.life(request.holdfast),
        beat=limits.beat(request.holdfast),
        absence_ms=request.holdfast.absence_ms,
    )


def _rebalance_timeout_ms(request: g.ConsumerGroupHeartbeatRequest) -> int | None:
    """Return the timeout; Kafka's -1 means that it is not set."""
    if not request.HasField("rebalance_timeout_ms") or request.rebalance_timeout_ms == _UNSET:
        return None
    return request.rebalance_timeout_ms


_OptionalText: TypeAlias = Literal[
    "instance_id", "rack_id", "subscribed_topic_regex", "server_assignor"
]


def _optional_text(request: g.ConsumerGroupHeartbeatRequest, field: _OptionalText) -> str | None:
    if not request.HasField(field):
        return None
    return limits.text(field, getattr(request, field))


def _subscribed_names(request: g.ConsumerGroupHeartbeatRequest) -> tuple[str, ...] | None:
    """Return the topics of a subscription, sorted: their order does not count (K-M17)."""
    if not request.HasField("subscribed_topic_names"):
        return None
    names = set(request.subscribed_topic_names.names)
    return tuple(sorted(limits.text("subscribed_topic_names.names", name) for name in names))


def _owned(request: g.ConsumerGroupHeartbeatRequest) -> tuple[TopicPartitions, ...] | None:
    """Return what the member owns, each topic once; None and an empty tuple differ (K-M12)."""
    if not request.HasField("topic_partitions"):
        return None
    by_topic: dict[str, set[int]] = {}
    for each in request.topic_partitions.topic_partitions:
        topic = limits.text("topic_partitions.topic", each.topic)
        by_topic.setdefault(topic, set()).update(each.partitions)
    return tuple(TopicPartitions(name, tuple(sorted(by_topic[name]))) for name in sorted(by_topic))


def leave_group(
    request: g.LeaveGroupRequest, caller: c.Caller, members: tuple[c.LeavingMember, ...]
) -> c.LeaveGroup:
    """Translate LeaveGroup to its command."""
    return c.LeaveGroup(caller, request.group_id, members)


def leaving(members: Iterable[g.LeaveGroupRequestMember]) -> Iterator[c.LeavingMember]:
    """Yield the members that leave, one by one: there may be many."""
    for member in members:
        yield c.LeavingMember(
            limits.text("members.member_id", member.member_id),
            _instance_id(member),
            limits.text("members.reason", member.reason),
        )


def commit_offsets(
    request: o.OffsetCommitRequest, caller: c.Caller, forbidden: frozenset[str] = frozenset()
) -> c.CommitOffsets:
    """Translate OffsetCommit to its command; an unset generation becomes -1: not as a member."""
    outside = not request.HasField("generation_id_or_member_epoch")
    return c.CommitOffsets(
        caller=caller,
        group_id=request.group_id,
        generation=-1 if outside else request.generation_id_or_member_epoch,
        member_id=limits.text("member_id", request.member_id),
        instance_id=_instance_id(request),
        offsets=tuple(_offsets(request)),
        forbidden=forbidden,
    )


def _offsets(request: o.OffsetCommitRequest) -> Iterator[OffsetCommitted]:
    for topic in request.topics:
        name = limits.text("topics.name", topic.name)
        for part in topic.partitions:
            epoch = part.committed_leader_epoch if part.HasField("committed_leader_epoch") else -1
            yield OffsetCommitted(
                name, part.partition_index, part.committed_offset, epoch, part.committed_metadata
            )


def delete_offsets(
    request: o.OffsetDeleteRequest, caller: c.Caller, forbidden: frozenset[str] = frozenset()
) -> c.DeleteOffsets:
    """Translate OffsetDelete to its command."""
    partitions = tuple(
        TopicPartition(limits.text("topics.name", topic.name), part.partition_index)
        for topic in request.topics
        for part in topic.partitions
    )
    return c.DeleteOffsets(caller, request.group_id, partitions, forbidden)
