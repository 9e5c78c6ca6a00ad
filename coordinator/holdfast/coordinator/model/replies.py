"""Answers to commands, as values. Either `error` is None or the rest is as Kafka leaves it.

The server translates them to messages and adds nothing of its own. Durations are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from holdfast.coordinator.model.ids import (
    UNCOMMITTED,
    InstanceId,
    MemberId,
    TopicName,
    TopicPartition,
)
from holdfast.coordinator.model.rejections import Rejection


@dataclass(frozen=True, slots=True)
class Grant:
    """What a member holds beside its assignment: token (S13), timeouts (S11), predecessor (S12)."""

    fencing_token: int = 0
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0
    predecessor_ms: int = 0


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """One line of the member list that the group leader is given."""

    member_id: MemberId
    instance_id: InstanceId | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinReply:
    """JoinGroup v9. `member_id` of an error answer is what a real broker answers."""

    error: Rejection | None
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: MemberId = ""
    skip_assignment: bool = False
    member_id: MemberId = ""
    members: tuple[JoinedMember, ...] = ()
    grant: Grant = Grant()


@dataclass(frozen=True, slots=True)
class SyncReply:
    """SyncGroup v5."""

    error: Rejection | None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
    grant: Grant = Grant()


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """Heartbeat v4."""

    error: Rejection | None
    grant: Grant = Grant()


class OwnedPartition(NamedTuple):
    """A partition that a member of the heartbeat protocol owns."""

    topic: TopicName
    partition: int
    fencing_token: int
    """Of the grant that gave it to this member, or to this instance (S13)."""


class AssignedMetadata(NamedTuple):
    """What an assignor that ran in a member says to a member beside its partitions (KIP-848)."""

    assignor: str
    """"": the target in force is of none, so nothing is said."""
    version: int = 0
    metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeatReply:
    """ConsumerGroupHeartbeat v1."""

    error: Rejection | None
    member_id: MemberId = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: tuple[OwnedPartition, ...] | None = None
    """What the member is to own, by topic and partition; None: as before."""
    grant: Grant = Grant()
    """Timeouts in force, and `predecessor_ms`; its token is 0, for each partition has its own."""
    should_compute: bool = False
    """The member is the one to compute the target of its group (KIP-848)."""
    assigned: AssignedMetadata | None = None
    """With an assignment, once the member is at the target's epoch; None: as before, or never."""


@dataclass(frozen=True, slots=True)
class MemberResult:
    """One entry of a leave or of a removal, in the order of the request (K-G16)."""

    member_id: MemberId
    instance_id: InstanceId | None
    error: Rejection | None


@dataclass(frozen=True, slots=True)
class LeaveReply:
    """LeaveGroup v5 and RemoveMembers."""

    error: Rejection | None
    members: tuple[MemberResult, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """One partition of a commit or of a deletion of offsets."""

    partition: TopicPartition
    error: Rejection | None


@dataclass(frozen=True, slots=True)
class OffsetsReply:
    """OffsetCommit v9 (per partition) and OffsetDelete v0 (top level and per partition)."""

    error: Rejection | None
    partitions: tuple[PartitionResult, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedResult:
    """One name's result: a group of DeleteGroups, a topic, or a setting's key."""

    name: str
    error: Rejection | None


@dataclass(frozen=True, slots=True)
class NamedReply:
    """DeleteGroups, CreateTopics, CreatePartitions, DeleteTopics, AlterSettings."""

    results: tuple[NamedResult, ...]


@dataclass(frozen=True, slots=True)
class DoneReply:
    """TriggerRebalance and other calls that either do it or refuse."""

    error: Rejection | None


Reply: TypeAlias = (
    JoinReply
    | SyncReply
    | HeartbeatReply
    | ConsumerHeartbeatReply
    | LeaveReply
    | OffsetsReply
    | NamedReply
    | DoneReply
)


def with_token(reply: Reply, token: int) -> Reply:
    """Return the reply with this fencing token in place of `UNCOMMITTED` (S13)."""
    if isinstance(reply, ConsumerHeartbeatReply):
        return _with_tokens(reply, token)
    if not isinstance(reply, JoinReply | SyncReply | HeartbeatReply):
        return reply
    if reply.grant.fencing_token != UNCOMMITTED:
        return reply
    return replace(reply, grant=replace(reply.grant, fencing_token=token))


def _with_tokens(reply: ConsumerHeartbeatReply, token: int) -> ConsumerHeartbeatReply:
    """Return the reply with this token for each partition whose grant has none yet."""
    owned = reply.assignment
    if not owned or UNCOMMITTED not in [place.fencing_token for place in owned]:
        return reply
    settled = [
        place._replace(fencing_token=token) if place.fencing_token == UNCOMMITTED else place
        for place in owned
    ]
    return replace(reply, assignment=tuple(settled))
