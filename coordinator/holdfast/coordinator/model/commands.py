"""Commands: what a caller wants of a group or of the cluster. Plain values; no rules.

Time, new ids and everything random come in here, made by the server, so that a decision is a pure
function. `call` names the waiting call on this node. Durations are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from holdfast.coordinator.model.access import OPEN, Acl, Fingerprint, Revocation
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.effects import InstallRegexes, InstallTarget
from holdfast.coordinator.model.events import Assigned, OffsetCommitted, SettingChange, TopicSize
from holdfast.coordinator.model.ids import (
    CallId,
    GroupId,
    InstanceId,
    Life,
    MemberId,
    Position,
    Principal,
    RequestId,
    TopicName,
    TopicPartition,
    TopicPartitions,
)
from holdfast.coordinator.model.member_profile import ClientAssignor, Protocol
from holdfast.coordinator.model.subscriptions import UNSURVEYED, Survey
from holdfast.coordinator.model.volatile import DeadlineKey


class Caller(NamedTuple):
    """The caller of a command."""

    call: CallId
    principal: Principal = ""
    client_id: str = ""
    client_host: str = ""
    request_id: RequestId = ""
    digest: bytes = b""
    """The digest of the request's body, for S15; empty without a request id."""


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """JoinGroup v9.

    A protocol of type `consumer` whose bytes cannot be read has `topics` None.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    instance_id: InstanceId | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    fresh_member_id: MemberId
    """An id never used before, in case one is needed."""
    reason: str = ""
    owned: tuple[TopicPartitions, ...] = ()
    """What it says that it owns, in the metadata of type `consumer`, by topic."""
    rack_id: str | None = None
    """Where it says there that it runs."""


@dataclass(frozen=True, slots=True)
class SyncGroup:
    """SyncGroup v5. A null protocol type or name is refused (K-E8)."""

    caller: Caller
    group_id: GroupId
    generation: int
    member_id: MemberId
    instance_id: InstanceId | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: tuple[Assigned, ...]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Heartbeat v4."""

    caller: Caller
    group_id: GroupId
    generation: int
    member_id: MemberId
    instance_id: InstanceId | None
    release: bool = False
    """It is the last one before a planned restart (S12)."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeat:
    """ConsumerGroupHeartbeat v1 (KIP-848): joins, acknowledges, leaves, or only lives on.

    None stands for "as before" in every field that may be None but `instance_id`.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    member_epoch: int
    """0: join, also again. -1: leave. -2: a static member's process stops, its place is kept."""
    instance_id: InstanceId | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int | None = None
    topics: tuple[TopicName, ...] | None = None
    regex: str | None = None
    """"": none any more."""
    regex_problem: str = ""
    """Why RE2 does not take `regex`, found by the server; "" if it does."""
    server_assignor: str | None = None
    owned: tuple[TopicPartitions, ...] | None = None
    life: Life = ""
    """The life of the process that speaks (S26); "" with `beat` 0."""
    beat: int = 0
    """The number of this heartbeat in that life; 0: it has none."""
    absence_ms: int = 0
    """With epoch -2: for how long its place is to be kept; 0: until its session ends."""
    client_assignors: tuple[ClientAssignor, ...] | None = None
    """Those that the member can run itself (KIP-848); None at a join: none."""


@dataclass(frozen=True, slots=True)
class InstallAssignment:
    """The chosen member hands in its assignor's target, or says that there is none (KIP-848)."""

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    member_epoch: int
    epoch: int
    """The group epoch that it answers."""
    targets: tuple[MemberTarget, ...]
    """As it was sent: a member, or a partition of a topic, may be there twice."""
    problem: str = ""
    """Why it makes no target (ADR 57); "": it does. `epoch` 0 with it: it was told none."""


class LeavingMember(NamedTuple):
    """One entry of a leave: by member id, by instance id, or both (K-G4 to K-G12)."""

    member_id: MemberId
    instance_id: InstanceId | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """LeaveGroup v5, and AdminService.RemoveMembers (KIP-345).

    An operator may name no members, but mean `everyone`, or every static member whose instance id
    begins with `prefix`: the decision finds these members (K-G24).
    """

    caller: Caller
    group_id: GroupId
    members: tuple[LeavingMember, ...]
    operator: bool = False
    """It is RemoveMembers."""
    everyone: bool = False
    prefix: InstanceId = ""
    reason: str = ""
    """Of `everyone` or `prefix`; a named member has its own."""


@dataclass(frozen=True, slots=True)
class TriggerRebalance:
    """An operator opens a join phase, with a reason."""

    caller: Caller
    group_id: GroupId
    reason: str


@dataclass(frozen=True, slots=True)
class DeadlineFired:
    """A deadline fired; whether it still counts is decided here (S9)."""

    group_id: GroupId
    key: DeadlineKey
    arming: int
    renewals: int


@dataclass(frozen=True, slots=True)
class CallBroken:
    """A parked call was cancelled or its connection broke: its member's session runs on (S17)."""

    group_id: GroupId
    call: CallId


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """OffsetCommit v9; `generation` below 0 is a commit from outside a group (K-J1, K-C11)."""

    caller: Caller
    group_id: GroupId
    generation: int
    member_id: MemberId
    instance_id: InstanceId | None
    offsets: tuple[OffsetCommitted, ...]
    forbidden: frozenset[TopicName] = frozenset()
    """The topics that the caller may not touch, found by the server."""


@dataclass(frozen=True, slots=True)
class DeleteOffsets:
    """OffsetDelete v0."""

    caller: Caller
    group_id: GroupId
    partitions: tuple[TopicPartition, ...]
    forbidden: frozenset[TopicName] = frozenset()
    """As in CommitOffsets."""


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """One group of a DeleteGroups call."""

    caller: Caller
    group_id: GroupId


@dataclass(frozen=True, slots=True)
class ExpireOffsets:
    """A sweep over one group at `log_time_ms` (K-J26 to K-J33); the events list what is removed."""

    group_id: GroupId
    log_time_ms: int


@dataclass(frozen=True, slots=True)
class CreateTopics:
    """AdminService.CreateTopics."""

    caller: Caller
    topics: tuple[TopicSize, ...]
    forbidden: frozenset[TopicName] = frozenset()
    """As in CommitOffsets."""


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    """AdminService.CreatePartitions: the new totals; counts only grow."""

    caller: Caller
    topics: tuple[TopicSize, ...]
    forbidden: frozenset[TopicName] = frozenset()
    """As in CommitOffsets."""


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """AdminService.DeleteTopics.

    A topic that groups with members subscribe to is kept, unless `force` is set.
    """

    caller: Caller
    names: tuple[TopicName, ...]
    force: bool = False
    survey: Survey = UNSURVEYED
    """The groups to look at, beside those that have changed since; it spares looking at all."""
    forbidden: frozenset[TopicName] = frozenset()
    """As in CommitOffsets."""


@dataclass(frozen=True, slots=True)
class AlterSettings:
    """AdminService.AlterSettings for the cluster (`group_id` "") or one group (S23)."""

    caller: Caller
    group_id: GroupId
    changes: tuple[SettingChange, ...]


@dataclass(frozen=True, slots=True)
class RaiseLevel:
    """AdminService.FinishUpgrade: each node of the cluster can run at this level."""

    caller: Caller
    level: int
    problem: str = ""
    """Why it may not be raised now, as a sentence; empty: nothing is in the way."""


@dataclass(frozen=True, slots=True)
class ReportBackup:
    """AdminService.ReportBackup: a backup was verified that holds all up to `index`."""

    caller: Caller
    cluster_id: str
    index: int
    recovery_number: int


@dataclass(frozen=True, slots=True)
class SealLog:
    """LogService.SealLog: set a boundary of sealed segments; the fields are `SealSegment`'s."""

    caller: Caller
    last: Position
    behind: Position


@dataclass(frozen=True, slots=True)
class AlterAcls:
    """AdminService.AlterAcls: all or nothing."""

    caller: Caller
    granted: tuple[Acl, ...]
    revoked: tuple[Acl, ...]
    mode: str = ""
    """The new mode; "" keeps the one in force."""


@dataclass(frozen=True, slots=True)
class AlterRevocations:
    """AdminService.AlterRevocations: all or nothing."""

    caller: Caller
    revoked: tuple[Revocation, ...]
    lifted: tuple[Fingerprint, ...]
    wall_ms: int
    """The wall time of the node that leads."""


@dataclass(frozen=True, slots=True)
class GrantAdmin:
    """A node was started with `--grant-admin`: make this principal an administrator."""

    principal: Principal


@dataclass(frozen=True, slots=True)
class FormCluster:
    """The first command of a cluster's life: its name and its settings from the bootstrap."""

    cluster_id: str
    settings: tuple[SettingChange, ...]
    level: int = 1
    """The level that the cluster begins at: each of the nodes that form it can run at it."""
    administrators: tuple[Principal, ...] = ()
    """They may do everything, and say who may do what."""
    access_mode: str = OPEN


@dataclass(frozen=True, slots=True)
class SealSegment:
    """Set a boundary of sealed segments for every node: all records up to `last` (S22)."""

    last: Position
    behind: Position
    """The last boundary when `last` was chosen. If there is another one by now, nothing is set."""


@dataclass(frozen=True, slots=True)
class CutHistory:
    """The leader has made a checkpoint that can stand for all records up to `last` (S24)."""

    last: Position
    log_time_ms: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class RaiseRecoveryNumber:
    """The cluster was restored, or recovered from a survivor: go on above all earlier tokens (S13).

    What its disks say; it may be decided more than once.
    """

    number: int
    kept: int
    """Index of the last entry that was kept."""


GroupCommand: TypeAlias = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | TriggerRebalance
    | DeadlineFired
    | CallBroken
    | CommitOffsets
    | DeleteOffsets
    | DeleteGroup
    | ExpireOffsets
    | ConsumerGroupHeartbeat
    | InstallRegexes
    | InstallTarget
    | InstallAssignment
)
ClusterCommand: TypeAlias = (
    CreateTopics
    | CreatePartitions
    | DeleteTopics
    | AlterSettings
    | RaiseLevel
    | ReportBackup
    | SealLog
    | AlterAcls
    | AlterRevocations
    | GrantAdmin
    | FormCluster
    | SealSegment
    | CutHistory
    | RaiseRecoveryNumber
)
Command: TypeAlias = GroupCommand | ClusterCommand

ForAnyGroup: TypeAlias = (
    CommitOffsets
    | DeleteOffsets
    | DeleteGroup
    | CreateTopics
    | CreatePartitions
    | DeleteTopics
    | AlterSettings
    | RaiseLevel
    | ReportBackup
    | SealLog
    | AlterAcls
    | AlterRevocations
)
"""What is asked of a group of any type, or of the cluster; its answer is stored (S14)."""
OneShot: TypeAlias = LeaveGroup | TriggerRebalance | InstallAssignment | ForAnyGroup
"""Commands whose answers are stored (S14)."""
Growing: TypeAlias = JoinGroup | SyncGroup | ConsumerGroupHeartbeat | OneShot
"""Commands whose growth is looked at. A heartbeat leaves nothing behind, and what nobody asked for
(deadlines, expiry, boundaries) must happen."""
Asked: TypeAlias = Growing | Heartbeat
"""Commands that somebody waits for."""
