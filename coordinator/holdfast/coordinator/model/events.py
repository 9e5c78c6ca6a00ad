"""Events: recorded facts in the past tense, each complete, so that `evolve` needs nothing else.

A decision, once made, is a fact: a new version of the code replays old logs to the same state. The
wire form of each event is in `holdfast.v1.events`; add fields there, never renumber. Durations are
milliseconds. This file knows no rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from holdfast.coordinator.model.access import Acl, Fingerprint, Revocation
from holdfast.coordinator.model.consumer_events import (
    AssignmentRequested,
    EpochRaised,
    GroupConverted,
    MemberAdvanced,
    MemberSubscribed,
    RegexResolved,
    TargetStored,
)
from holdfast.coordinator.model.ids import (
    GroupId,
    InstanceId,
    MemberId,
    Position,
    Principal,
    RequestId,
    TopicName,
    TopicPartition,
)
from holdfast.coordinator.model.member_profile import MemberProfile


class OffsetCommitted(NamedTuple):
    """One partition's committed offset (OffsetCommit v9)."""

    topic: TopicName
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class Rejoin(NamedTuple):
    """A member of a new generation, and the request id of the join that is answered (S14)."""

    member_id: MemberId
    request_id: RequestId


class Assigned(NamedTuple):
    """One member's assignment, opaque bytes."""

    member_id: MemberId
    assignment: bytes


class TopicSize(NamedTuple):
    """A topic and its number of partitions."""

    name: TopicName
    num_partitions: int
    created_index: int = 0
    """In the state: the index of the entry that created it, so that it differs from an earlier one
    of its name; 0: it came at level 1. Never on the log."""


class SettingChange(NamedTuple):
    """A setting and its new value; None restores the inherited value."""

    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class GroupCreated:
    """A group came into being: by a first join (K-A1, K-B1, K-M5) or by a simple commit (K-J1)."""

    group_type: str = ""
    """The name of its type; "": classic, as all groups were at level 1."""


@dataclass(frozen=True, slots=True)
class MemberJoined:
    """A member is in the group (K-A5, K-B1). It has no assignment until one is stored."""

    member_id: MemberId
    instance_id: InstanceId | None
    profile: MemberProfile
    protocol_type: str
    request_id: RequestId


@dataclass(frozen=True, slots=True)
class MemberUpdated:
    """A known member rejoined with other protocols, timeouts or client.

    Rules K-A16, K-A18, K-A20, K-B17.
    """

    member_id: MemberId
    profile: MemberProfile
    request_id: RequestId


@dataclass(frozen=True, slots=True)
class StaticMemberReplaced:
    """The whole swap in one event (KIP-345, K-B3): the old id is fenced, the new one bound.

    The assignment goes with the instance.
    """

    instance_id: InstanceId
    old_member_id: MemberId
    new_member_id: MemberId
    profile: MemberProfile
    request_id: RequestId
    predecessor_ms: int
    """How long the old holder may still act on its grant (S12); 0 after a release."""


@dataclass(frozen=True, slots=True)
class InstanceReleased:
    """A planned restart (S12): the member id is fenced, the member stays, its session runs on."""

    instance_id: InstanceId
    member_id: MemberId
    beat: int = 0
    """The number of the heartbeat that said so (S26); 0: it has none, or is a classic one."""
    absence_ms: int = 0
    """For how long its place is kept from then on; 0: until its session ends (K-N3)."""


@dataclass(frozen=True, slots=True)
class RebalanceStarted:
    """A join phase opened."""

    reason: str
    member_id: MemberId
    """The member that caused it; "" for none."""
    initial: bool
    """The group was Empty, so the phase waits out the initial delay (K-D1, K-D4)."""
    timeout_ms: int
    """How long the phase may last at most."""


@dataclass(frozen=True, slots=True)
class GenerationStarted:
    """A join phase closed with members; the number is on the log before a member is told (S16)."""

    generation: int
    protocol_name: str
    leader: MemberId
    rejoined: tuple[Rejoin, ...]
    absent: tuple[MemberId, ...]
    """Static members that did not rejoin and stay (K-D6)."""
    removed: tuple[MemberId, ...]
    """Dynamic members that were removed at the rebalance timeout (K-D5)."""


@dataclass(frozen=True, slots=True)
class GroupEmptied:
    """A join phase closed without members (K-D9); the generation grows, protocol and leader end."""

    generation: int


@dataclass(frozen=True, slots=True)
class AssignmentStored:
    """The group leader's assignment for a generation: the grant of every member (K-E5)."""

    generation: int
    assignments: tuple[Assigned, ...]


@dataclass(frozen=True, slots=True)
class MembersLeft:
    """Members left by themselves, a batch in one event (K-G14)."""

    member_ids: tuple[MemberId, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class MembersRemoved:
    """An operator removed members, a batch in one event (K-G23)."""

    member_ids: tuple[MemberId, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class MemberExpired:
    """A member was too late."""

    member_id: MemberId
    deadline: str
    """`session`, `sync`, `join` or `rebalance` (K-F9, K-E10, K-A21, K-M25)."""


@dataclass(frozen=True, slots=True)
class MemberRefused:
    """A known member was removed because the group is full (K-I10)."""

    member_id: MemberId


@dataclass(frozen=True, slots=True)
class GroupDeleted:
    """The group is gone with everything it held; its requests stay in the dedupe table (S15)."""


@dataclass(frozen=True, slots=True)
class OffsetsCommitted:
    """Offsets of this group; the commit time is the record's log time (S8)."""

    offsets: tuple[OffsetCommitted, ...]


@dataclass(frozen=True, slots=True)
class OffsetsDeleted:
    """Offsets are gone: deleted by a call, expired, or their topic was deleted; all are listed."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class RequestRecorded:
    """The answer of a one-shot request, for its repetition (S14, S15). Group "" for the cluster."""

    request_id: RequestId
    digest: bytes
    answer: bytes


@dataclass(frozen=True, slots=True)
class ClusterFormed:
    """The first record of every log: the cluster's name, its settings, and when log time starts."""

    cluster_id: str
    settings: tuple[SettingChange, ...]


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """Settings of the cluster (`group_id` "") or of one group (S23)."""

    group_id: GroupId
    changes: tuple[SettingChange, ...]


@dataclass(frozen=True, slots=True)
class TopicsCreated:
    """Topics exist from now on."""

    topics: tuple[TopicSize, ...]


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """Topics have grown to the given number of partitions; they never shrink."""

    topics: tuple[TopicSize, ...]


@dataclass(frozen=True, slots=True)
class TopicsDeleted:
    """Topics are gone; each group lists in an event of its own the offsets that went with them."""

    names: tuple[TopicName, ...]


@dataclass(frozen=True, slots=True)
class SegmentSealed:
    """A boundary for every node alike (S22): all records up to `last` belong to sealed segments."""

    last: Position


@dataclass(frozen=True, slots=True)
class LevelRaised:
    """From here on the log may hold what this level holds (`model.levels`); it is never lowered."""

    level: int


@dataclass(frozen=True, slots=True)
class AclsChanged:
    """Grants are in force from here on, and others are not any more."""

    granted: tuple[Acl, ...]
    revoked: tuple[Acl, ...]


@dataclass(frozen=True, slots=True)
class AccessModeChanged:
    """What no grant allows is refused from here on, or only noted, or let through."""

    mode: str
    """`open`, `dry-run` or `deny`."""


@dataclass(frozen=True, slots=True)
class RevocationsChanged:
    """Certificates are revoked from here on, and others are not any more."""

    revoked: tuple[Revocation, ...]
    lifted: tuple[Fingerprint, ...]


@dataclass(frozen=True, slots=True)
class RecoveryNumberRaised:
    """The cluster goes on from an earlier position: whatever followed it then is lost (S13).

    Fencing tokens from here on are above all that were ever given out, also in what was lost.
    """

    number: int
    kept: int
    """Index of the last entry that was kept."""


@dataclass(frozen=True, slots=True)
class HistoryCut:
    """Records up to `last` are history no more: a checkpoint of each node stands for them (S24)."""

    last: Position
    """End of a sealed segment."""
    log_time_ms: int
    """Log time of the record at `last`."""
    digest: bytes
    """Of the checkpoint: the state that these records lead to, and the head of their chain (S3)."""


@dataclass(frozen=True, slots=True)
class BackupVerified:
    """An operator has verified a backup that holds the history up to an entry (S24)."""

    index: int


GroupEvent: TypeAlias = (
    GroupCreated
    | MemberJoined
    | MemberUpdated
    | StaticMemberReplaced
    | InstanceReleased
    | RebalanceStarted
    | GenerationStarted
    | GroupEmptied
    | AssignmentStored
    | MembersLeft
    | MembersRemoved
    | MemberExpired
    | MemberRefused
    | MemberSubscribed
    | EpochRaised
    | RegexResolved
    | AssignmentRequested
    | TargetStored
    | MemberAdvanced
    | GroupConverted
    | GroupDeleted
    | OffsetsCommitted
    | OffsetsDeleted
)
"""What happens to one group; its record names the group."""

ClusterEvent: TypeAlias = (
    ClusterFormed
    | SettingsChanged
    | TopicsCreated
    | PartitionsAdded
    | TopicsDeleted
    | SegmentSealed
    | LevelRaised
    | AclsChanged
    | AccessModeChanged
    | RevocationsChanged
    | RecoveryNumberRaised
    | HistoryCut
    | BackupVerified
)
"""What happens to the cluster; its record names the group ""."""

Event: TypeAlias = GroupEvent | ClusterEvent | RequestRecorded


class Cause(NamedTuple):
    """Why an event was decided: the rule's id (`B3`, `S12`) and the command's name."""

    rule: str
    command: str


QUARANTINE_ENDED: Final = "S6"
"""The rule by which a `GroupDeleted` ends a quarantine.

No other record tells that there was one. Without it, nobody who folds the records would know why a
group was deleted that was not empty.
"""


class Proposed(NamedTuple):
    """An event on its way to the log."""

    event: Event
    cause: Cause
    principal: Principal = ""
    request_id: RequestId = ""


class Part(NamedTuple):
    """One group's share of an entry; applied whole, or skipped by every replica alike (S1, S2)."""

    group_id: GroupId
    term: int
    """The term in which it was decided."""
    expected_version: int
    """The group's version when it was decided; 0: no group."""
    events: tuple[Proposed, ...]


class LogEntry(NamedTuple):
    """The content of one Raft entry."""

    log_time_ms: int
    """The time that counts (S8)."""
    wall_time_ms: int
    """For people."""
    parts: tuple[Part, ...]


class Record(NamedTuple):
    """An event with its place in the log, given at apply (S3)."""

    position: Position
    group_id: GroupId
    group_seq: int
    log_time_ms: int
    wall_time_ms: int
    cause: Cause
    principal: Principal
    request_id: RequestId
    event: Event
