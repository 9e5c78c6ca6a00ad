"""What goes into and comes out of a member's session: plain data, no behaviour.

A session (member_session.py says what each can do) is told what happened and answers with these
outputs; a shell (aio, sync) performs them. The session does not know how, nor the shell why.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from holdfast.v1 import admin_pb2, group_pb2

if TYPE_CHECKING:
    from holdfast.client._session.loss import LostReason
    from holdfast.client.errors import HoldfastError
    from holdfast.coordinator.assignors import Assignor

Request: TypeAlias = (
    group_pb2.FindCoordinatorRequest
    | group_pb2.JoinGroupRequest
    | group_pb2.SyncGroupRequest
    | group_pb2.HeartbeatRequest
    | group_pb2.ConsumerGroupHeartbeatRequest
    | group_pb2.PrepareAssignmentRequest
    | group_pb2.InstallAssignmentRequest
    | group_pb2.LeaveGroupRequest
    | admin_pb2.ListTopicsRequest
)
Response: TypeAlias = (
    group_pb2.FindCoordinatorResponse
    | group_pb2.JoinGroupResponse
    | group_pb2.SyncGroupResponse
    | group_pb2.HeartbeatResponse
    | group_pb2.ConsumerGroupHeartbeatResponse
    | group_pb2.PrepareAssignmentResponse
    | group_pb2.InstallAssignmentResponse
    | group_pb2.LeaveGroupResponse
    | admin_pb2.ListTopicsResponse
)


class TopicPartition(NamedTuple):
    """One partition by name."""

    topic: str
    number: int


GENERATION_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the member is to the group at the moment.

    An empty id: the group does not know it yet. GENERATION_NONE: it is in no generation, so it
    cannot send heartbeats.
    """

    member_id: str = ""
    generation: int = GENERATION_NONE
    protocol: str = ""

    @property
    def can_heartbeat(self) -> bool:
        """Whether the group would know a heartbeat of this identity."""
        return bool(self.member_id) and self.generation != GENERATION_NONE


class Stage(enum.Enum):
    """How far a session has come in its life, whatever its protocol calls the steps between."""

    NEW = enum.auto()
    """Made, and not started."""
    RUNNING = enum.auto()
    """On the way into its group, or in it."""
    FAILED = enum.auto()
    """Refused for good, and owns nothing; only `subscribe` would bring it back."""
    LEAVING = enum.auto()
    """Owns nothing any more, and waits for the group to hear that it goes."""
    STOPPED = enum.auto()
    """Over. No input changes anything any more."""


GroupProtocol: TypeAlias = Literal["classic", "consumer"]
"""Which session a member needs (member_session.py has the table)."""


class Subscription(NamedTuple):
    """What a member of the heartbeat protocol wants: topics by name, by pattern, or both."""

    topics: tuple[str, ...] = ()
    regex: str = ""
    """In RE2's syntax; topics match it whole. "": none."""


class SaidByAssignor(NamedTuple):
    """What a member says of an assignor that it can run itself (KIP-848)."""

    name: str
    minimum_version: int = 0
    maximum_version: int = 0
    version: int = 0
    """Of its metadata; it understands those from the oldest to the newest."""
    metadata: bytes = b""
    reason: int = 0
    """Why another target is wanted, by the assignor's own numbers; 0: it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a member wants. Times are milliseconds; names and defaults are Kafka's.

    `rebalance_timeout_ms` bounds how long on_revoked may take (Kafka: max.poll.interval.ms).
    `takeover` "wait": after a swap, act only once the old holder must have stopped (S12).
    `weight`: how much this member can carry beside others (the weighted assignor asks).
    `start_timeout_ms`: until when a leading node must have answered first; None: whenever it may.
    `group_protocol`: how members and group agree on who gets what (Kafka: group.protocol).

    For the heartbeat protocol ("consumer") alone: `member_id` is made by whoever makes the member
    (KIP-1082); `topic_regex`, `rack_id` and `server_assignor` go to the service as they are;
    `work_timeout_ms`: how long the program may go without `working()`, None: for ever;
    `absence_ms`: for how long the place of a static member is kept that stops, None: until its
    session ends; `client_assignors`: what the member can compute itself, the most wanted first.
    There the session timeout and the heartbeat interval are the group's: what stands here counts
    until the group has told them.
    """

    group: str
    topics: tuple[str, ...]
    assignors: tuple[Assignor, ...]
    instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3_000
    request_timeout_ms: int = 30_000
    topics_refresh_ms: int = 5_000
    leave_timeout_ms: int = 5_000
    start_timeout_ms: int | None = None
    takeover: Literal["now", "wait"] = "now"
    weight: int = 1
    group_protocol: GroupProtocol = "classic"
    member_id: str = ""
    topic_regex: str = ""
    rack_id: str | None = None
    server_assignor: str | None = None
    work_timeout_ms: int | None = None
    absence_ms: int | None = None
    client_assignors: tuple[SaidByAssignor, ...] = ()


@dataclass(frozen=True, slots=True)
class Grant:
    """What gave the member partitions. Storage compares the token per partition (S13)."""

    member_id: str
    generation: int
    fencing_token: int
    predecessor_ms: int


@dataclass(frozen=True, slots=True)
class Send:
    """Perform this call once. `elsewhere`: the present node is silent, try another."""

    call: int
    request: Request
    timeout_ms: int
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Cancel:
    """The answer to this call no longer matters; the server un-parks what is cancelled (S17)."""

    call: int


@dataclass(frozen=True, slots=True)
class Assigned:
    """These partitions, too, are owned from now on; none: the group has nothing (new) for us."""

    partitions: tuple[TopicPartition, ...]
    grant: Grant


@dataclass(frozen=True, slots=True)
class Revoke:
    """Finish work on the partitions, then tell the session `revoked`; commits still succeed.

    Of none: tell the session so when the user has heard all that was told before.
    """

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """The partitions are not owned any more; they may have another owner. No commit succeeds."""

    partitions: tuple[TopicPartition, ...]
    reason: LostReason
    after_revoked: bool = False
    """Whether on_lost is called also for what on_revoked runs for, when that has returned."""


@dataclass(frozen=True, slots=True)
class Compute:
    """Have the assignor of this name make a target of what `picture` tells; then `computed`."""

    number: int
    assignor: str
    picture: group_pb2.PrepareAssignmentResponse


@dataclass(frozen=True, slots=True)
class StopComputing:
    """The target of this number is not wanted any more."""

    number: int


@dataclass(frozen=True, slots=True)
class ToldByAssignor:
    """What the assignor of the target in force says to this member; `on_assignment` hears it.

    `metadata` None: the target is not this assignor's any more.
    """

    assignor: str
    partitions: tuple[TopicPartition, ...]
    metadata: bytes | None
    version: int


@dataclass(frozen=True, slots=True)
class AssignorFailed:
    """The group asked this member for a target and has none of it; nothing else changes."""

    error: HoldfastError


@dataclass(frozen=True, slots=True)
class Missing:
    """The group leader has seen that these topics, which the group asks for, do not exist."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A line for people that is no news to the program: what the member does next."""

    words: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The member is in no group any more, for this reason; it can be given another subscription."""

    error: HoldfastError


@dataclass(frozen=True, slots=True)
class Stopped:
    """The session is over: as asked (None), or for a reason that the user must hear."""

    error: HoldfastError | None


Output: TypeAlias = (
    Send | Cancel | Assigned | Revoke | Lost | Missing | Note | Refused | Stopped
) | (Compute | StopComputing | ToldByAssignor | AssignorFailed)


class FailureKind(enum.Enum):
    """What a failed call means to the session."""

    RETRY = "no usable answer: send it again with the same request id"
    SUPERSEDED = "a later attempt of the same call took its place (S17)"
    FATAL = "trying again cannot help"


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that ended without an answer of the protocol."""

    kind: FailureKind
    error: HoldfastError
    retry_in_ms: int = 0
