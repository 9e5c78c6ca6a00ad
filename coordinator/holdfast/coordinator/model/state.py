"""What the log says, folded: the replicated state. Immutable values; only `evolve` makes new ones.

Nothing here is leader-local (that is `volatile`), nothing depends on a clock or on hash order.
Durations are milliseconds; times are log time in milliseconds (S8).
"""

from __future__ import annotations

from typing import Any, Final, Generic, NamedTuple, TypeVar

from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.ids import (
    GroupId,
    Position,
    Principal,
    RequestId,
    TopicName,
    TopicPartition,
)
from holdfast.coordinator.model.pmap import PMap

EMPTY: Final = "Empty"
STABLE: Final = "Stable"
DEAD: Final = "Dead"
"""States of every type of group, by Kafka's names; Dead is only ever shown (K-K3), never stored.

Each type has some of its own, in its room.
"""

ABSENT: Final = "-"
"""Stands for the state of a group that does not exist."""

B = TypeVar("B")
"""The body of a group."""


class Offset(NamedTuple):
    """A committed offset and the log time of its commit."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int


class Group(NamedTuple, Generic[B]):
    """The head of a group: what every type of group has; and its body, which is its type's own.

    `body`: of the class that the type names, and read by nothing but the type (`groups.group_type`
    is the table that everything else asks). `generation`: the number of the last one, or the epoch.
    `version`: index of the last entry that changed the group (S2). `seq`: of its last record.
    `state_since_ms`: log time of the last change of state. `quarantined`: why nothing but its
    deletion is decided for it any more (S6); "" as a rule.
    """

    group_id: GroupId
    group_type: str
    body: B
    state: str = EMPTY
    generation: int = 0
    offsets: PMap[TopicPartition, Offset] = PMap()
    version: int = 0
    seq: int = 0
    state_since_ms: int = 0
    quarantined: str = ""


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
    groups: PMap[GroupId, Group[Any]] = PMap()
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
