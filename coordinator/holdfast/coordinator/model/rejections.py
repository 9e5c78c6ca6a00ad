"""Refusals. A refusal is a value, never an exception; each has exactly one error code.

`server.translate` maps them to `ErrorCode` and to a sentence for people in one table that a test
proves total. The fields are what such a sentence needs. No rules here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from holdfast.coordinator.model.ids import GroupId, InstanceId, Life, MemberId


@dataclass(frozen=True, slots=True)
class InvalidGroupId:
    """The group id is empty (K-I6), too long, or has control characters."""

    group_id: GroupId
    problem: str


@dataclass(frozen=True, slots=True)
class InvalidRequest:
    """A field breaks its bounds; which, and what would be right."""

    field: str
    problem: str


@dataclass(frozen=True, slots=True)
class InvalidSessionTimeout:
    """Outside the bounds of the settings (K-I5)."""

    session_timeout_ms: int
    least_ms: int
    most_ms: int


@dataclass(frozen=True, slots=True)
class MemberIdRequired:
    """Join again with this id (KIP-394, K-A1)."""

    member_id: MemberId


@dataclass(frozen=True, slots=True)
class UnknownMemberId:
    """No such member; the client joins anew with an empty id (K-A12, K-F1)."""

    member_id: MemberId


@dataclass(frozen=True, slots=True)
class FencedInstanceId:
    """Another process holds the instance id now; this one must stop (KIP-345, K-C1)."""

    instance_id: InstanceId
    holder: MemberId
    holder_client_id: str
    holder_since_ms: int
    holder_life: Life = ""
    """The life of the holder's process (S26), if it has told one."""


@dataclass(frozen=True, slots=True)
class IllegalGeneration:
    """The call speaks of another generation (K-E2, K-F4)."""

    sent: int
    current: int


@dataclass(frozen=True, slots=True)
class RebalanceInProgress:
    """A join phase is open: join again (K-F5), or sync first (K-J9)."""


@dataclass(frozen=True, slots=True)
class InconsistentGroupProtocol:
    """No protocol in common, another protocol type, or bytes that cannot be read (K-I1 to K-I4)."""

    problem: str


@dataclass(frozen=True, slots=True)
class GroupMaxSizeReached:
    """The group is full (K-I10, K-I11, K-M8)."""

    group_size_max: int
    setting: str = "group.max_size"
    """What says so."""


@dataclass(frozen=True, slots=True)
class GroupIdNotFound:
    """There is no such group (K-K13)."""

    group_id: GroupId


@dataclass(frozen=True, slots=True)
class OtherGroupType:
    """There is one, but this call is of the other protocol (GROUP_ID_NOT_FOUND: K-K6, K-Q3)."""

    group_id: GroupId
    problem: str
    """What it is, and what to do."""


@dataclass(frozen=True, slots=True)
class NonEmptyGroup:
    """The group still has members (K-K12, K-J23)."""

    members: int


@dataclass(frozen=True, slots=True)
class GroupSubscribedToTopic:
    """A member subscribes to the topic whose offsets are to be deleted (K-J24)."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicInUse:
    """Groups with members subscribe to the topic to delete (GROUP_SUBSCRIBED_TO_TOPIC)."""

    topic: str
    group_ids: tuple[GroupId, ...]
    """The first few of them."""
    count: int
    """How many there are."""


@dataclass(frozen=True, slots=True)
class OffsetMetadataTooLarge:
    """The text beside an offset is over the limit, counted in characters (K-J14)."""

    length: int
    most: int


@dataclass(frozen=True, slots=True)
class InvalidCommitOffsetSize:
    """One commit is larger than an entry of the log may be, in bytes (S7)."""

    size: int
    most: int


@dataclass(frozen=True, slots=True)
class UnknownTopic:
    """There is no such topic or partition (UNKNOWN_TOPIC_OR_PARTITION)."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicExists:
    """A topic of this name is there already (TOPIC_ALREADY_EXISTS)."""

    topic: str


@dataclass(frozen=True, slots=True)
class InvalidTopic:
    """A name that no topic can have (INVALID_TOPIC_EXCEPTION)."""

    topic: str
    problem: str


@dataclass(frozen=True, slots=True)
class InvalidPartitions:
    """A number of partitions that cannot be: below one, above the limit, or shrinking."""

    topic: str
    problem: str


@dataclass(frozen=True, slots=True)
class InvalidConfig:
    """A setting with an unknown name or a value out of bounds (INVALID_CONFIG)."""

    key: str
    problem: str


@dataclass(frozen=True, slots=True)
class PolicyViolation:
    """The cluster as a whole would have more than a setting allows (POLICY_VIOLATION, S7)."""

    setting: str
    most: int
    what: str
    counted: int
    """How much there is, with what is under way."""
    more: int
    """How much was asked for."""


@dataclass(frozen=True, slots=True)
class UnsupportedVersion:
    """The cluster's level does not hold yet what the call would write (UNSUPPORTED_VERSION)."""

    what: str
    needed: int
    level: int
    """The level in force."""


@dataclass(frozen=True, slots=True)
class TopicAuthorizationFailed:
    """The caller may not touch this topic, if it exists at all (TOPIC_AUTHORIZATION_FAILED)."""

    topic: str


@dataclass(frozen=True, slots=True)
class GroupAuthorizationFailed:
    """The caller may not touch this group, if it exists at all (GROUP_AUTHORIZATION_FAILED)."""

    group_id: GroupId


@dataclass(frozen=True, slots=True)
class InstanceForbidden:
    """The instance id belongs to another principal while its member exists."""

    instance_id: InstanceId


@dataclass(frozen=True, slots=True)
class Superseded:
    """A later call of the same member took this one's place (S17); gRPC ABORTED."""


@dataclass(frozen=True, slots=True)
class RequestIdReused:
    """The same request id with another body (S15); gRPC INVALID_ARGUMENT."""

    request_id: str


@dataclass(frozen=True, slots=True)
class RequestTooOld:
    """A request id older than the dedupe window: whether it was done cannot be known (S15)."""

    request_id: str
    window_ms: int


@dataclass(frozen=True, slots=True)
class NotCoordinator:
    """This node lost the leadership while the call was parked (K-L16, S5); nothing was applied."""


@dataclass(frozen=True, slots=True)
class UnknownServerError:
    """A rule was broken inside (S6); nothing was applied, and an alarm was raised."""

    problem: str


@dataclass(frozen=True, slots=True)
class FencedMemberEpoch:
    """The heartbeat speaks of another epoch: drop everything, join with 0 (K-M10, K-M12)."""

    sent: int
    current: int


@dataclass(frozen=True, slots=True)
class PastHeartbeat:
    """The heartbeat comes after a later one of its member: it changes nothing (S26)."""

    member_id: MemberId
    sent: int
    highest: int
    """The highest number that was heard; 0: that of another life, so there is none to compare."""


@dataclass(frozen=True, slots=True)
class StaleMemberEpoch:
    """The commit or the read speaks of another epoch: try again after a heartbeat (K-J39)."""

    sent: int
    current: int


@dataclass(frozen=True, slots=True)
class NotChosen:
    """It is not this member that computes the target of its group, or not any more (KIP-848)."""

    member_id: MemberId
    chosen: MemberId
    """"": nobody is asked."""


@dataclass(frozen=True, slots=True)
class StaleAssignment:
    """A target was computed for a group that has changed meanwhile (KIP-848)."""

    sent: int
    current: int
    """The group epoch."""


@dataclass(frozen=True, slots=True)
class UnreleasedInstanceId:
    """The instance id is in use by another process, which has not released it (K-N11)."""

    instance_id: InstanceId
    holder: MemberId
    holder_client_id: str
    holder_since_ms: int
    is_waited_for: bool = False
    """By the group's policy whoever asks again gets it, once the holder's session is over."""


@dataclass(frozen=True, slots=True)
class UnsupportedAssignor:
    """The service has no assignor of this name (K-M3)."""

    name: str
    known: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InvalidRegularExpression:
    """RE2 does not take the regular expression (K-P1)."""

    regex: str
    problem: str


Rejection: TypeAlias = (
    InvalidGroupId
    | InvalidRequest
    | InvalidSessionTimeout
    | MemberIdRequired
    | UnknownMemberId
    | FencedInstanceId
    | IllegalGeneration
    | RebalanceInProgress
    | InconsistentGroupProtocol
    | GroupMaxSizeReached
    | GroupIdNotFound
    | OtherGroupType
    | NonEmptyGroup
    | GroupSubscribedToTopic
    | TopicInUse
    | OffsetMetadataTooLarge
    | InvalidCommitOffsetSize
    | UnknownTopic
    | TopicExists
    | InvalidTopic
    | InvalidPartitions
    | InvalidConfig
    | PolicyViolation
    | UnsupportedVersion
    | TopicAuthorizationFailed
    | GroupAuthorizationFailed
    | InstanceForbidden
    | Superseded
    | RequestIdReused
    | RequestTooOld
    | NotCoordinator
    | UnknownServerError
    | FencedMemberEpoch
    | PastHeartbeat
    | StaleMemberEpoch
    | NotChosen
    | StaleAssignment
    | UnreleasedInstanceId
    | UnsupportedAssignor
    | InvalidRegularExpression
)
