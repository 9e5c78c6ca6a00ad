"""What the log says, folded: the replicated state. Immutable values; only `evolve` makes new ones.

Nothing here is leader-local (that is `volatile`), nothing depends on a clock or on hash order.
Durations are milliseconds; times are log time in milliseconds (S8).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from holdfast.coordinator.model.events import TopicSize
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
from holdfast.coordinator.model.pmap import PMap

EMPTY: Final = "Empty"
STABLE: Final = "Stable"
DEAD: Final = "Dead"
"""States of every type of group, by Kafka's names; Dead is only ever shown (K-K3), never stored.

Each type has some of its own, in its room.
"""

ABSENT: Final = "-"
"""Stands for the state of a group that does not exist."""

CLASSIC: Final = "classic"
"""The group type of the classic protocol."""


class Member(NamedTuple):
    """One member. `instance_id` makes it static (KIP-345).

    `joined_seq`: the group_seq of its joining, the order that breaks ties; a swap keeps it.
    `granted_index`: entry of the event that last granted its assignment (S13), 0 before the first.
    `released`: its id is fenced by a planned restart (S12). `predecessor_ms`: how long an older
    holder may still act on the present grant (S12). `request_id`: of the join last served (S14).
    `since_ms`: log time at which this member id took its place. `abandoned`: what it held until its
    assignment was abandoned (K-D10), until the next one: it counts like an assignment (S23), and
    projections tell by it what moved.
    `replaced_requests`: of the joins whose members this one has replaced, the last ones (S14).
    """

    member_id: MemberId
    instance_id: InstanceId | None
    profile: MemberProfile
    request_id: RequestId
    joined_seq: int
    since_ms: int
    assignment: bytes = b""
    granted_index: int = 0
    predecessor_ms: int = 0
    released: bool = False
    abandoned: bytes = b""
    replaced_requests: tuple[RequestId, ...] = ()


class Offset(NamedTuple):
    """A committed offset and the log time of its commit."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int


class Group(NamedTuple):
    """One group. `version`: index of the last entry that changed it (S2). `seq`: of its last one.

    `initial`: the open join phase began from Empty (K-D4). `round_timeout_ms`: how long it may
    last. `rejoined`: until the assignment is stored, who was answered when the generation began
    (S16).
    `state_since_ms`: log time of the last change of state. `predecessors_until_ms`: until when, in
    log time, a member that was replaced or removed may still act on an old grant (S12). Ids of
    replaced members are not kept: an unknown id is simply unknown, an instance id tells whom it
    belongs to now.
    `quarantined`: why nothing but its deletion is decided for it any more (S6); "" as a rule.
    """

    group_id: GroupId
    state: str = EMPTY
    protocol_type: str | None = None
    protocol_name: str | None = None
    generation: int = 0
    leader: MemberId | None = None
    members: PMap[MemberId, Member] = PMap()
    instances: PMap[InstanceId, MemberId] = PMap()
    offsets: PMap[TopicPartition, Offset] = PMap()
    rejoined: tuple[MemberId, ...] = ()
    initial: bool = False
    round_timeout_ms: int = 0
    version: int = 0
    seq: int = 0
    state_since_ms: int = 0
    group_type: str = CLASSIC
    predecessors_until_ms: int = 0
    quarantined: str = ""

    def is_leader(self, member_id: MemberId) -> bool:
        """Whether this member assigns in the present generation."""
        return self.leader == member_id


class RequestKey(NamedTuple):
    """Whose request (S15). The group is "" for a call without one."""

    principal: Principal
    group_id: GroupId
    request_id: RequestId


class RequestRecord(NamedTuple):
    """A served request: digest of its body, the frozen answer, and when.

    `number`: in the order of serving, without gaps, so that the oldest is found at once (S15).
    `position`: where the log holds it, so that a repetition is told where it was done.
    """

    digest: bytes
    answer: bytes
    log_time_ms: int
    number: int = 0
    position: Position = Position(0, 0)


class Settings(NamedTuple):
    """Settings that shape answers, cluster-wide, with changes per group on top (S23).

    Values are text as on the log; `settings.py` gives them names, bounds and types.
    """

    cluster: PMap[str, str] = PMap()
    groups: PMap[GroupId, PMap[str, str]] = PMap()


class State(NamedTuple):
    """Everything that is replicated.

    `requests_next`: number of the next served request; the table holds the last `len(requests)` of
    them. `requests_floor_ms`: log time of the youngest that was dropped for want of room, before
    which nobody can tell whether a request was served. `requests_by_number` is `requests` turned
    round; it is not stored.
    """

    cluster_id: str = ""
    groups: PMap[GroupId, Group] = PMap()
    topics: PMap[TopicName, TopicSize] = PMap()
    settings: Settings = Settings()
    requests: PMap[RequestKey, RequestRecord] = PMap()
    log_time_ms: int = 0
    applied_index: int = 0
    cluster_version: int = 0
    cluster_seq: int = 0
    recovery_number: int = 0
    sealed: Position = Position(0, 0)
    requests_next: int = 0
    requests_floor_ms: int = 0
    requests_by_number: PMap[int, RequestKey] = PMap()

    def version_of(self, group_id: GroupId) -> int:
        """The version that a part for this group expects (S2); "" is the cluster itself."""
        if not group_id:
            return self.cluster_version
        group = self.groups.get(group_id)
        return group.version if group else 0
