"""The replicated state that the log leads to. Immutable values; only `evolve` makes new ones.

Nothing here is leader-local (that is `volatile`), nothing depends on a clock or on hash order.
Durations are milliseconds; times are log time in milliseconds (S8).
"""

from __future__ import annotations

from typing import Any, Final, Generic, NamedTuple, TypeVar

from holdfast.coordinator.model.access import Acl, Fingerprint, Revocation
from holdfast.coordinator.model.events import HistoryCut, TopicSize
from holdfast.coordinator.model.ids import (
    GroupId,
    Position,
    Principal,
    RequestId,
    TopicName,
    TopicPartition,
)
from holdfast.coordinator.structures.pmap import PMap

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
    """The head of a group, which every type of group has; and its body, which is its type's own."""

    group_id: GroupId
    group_type: str
    body: B
    """Of the class that the type names. Only the type reads it; all other code asks the table
    (`groups.group_type`)."""
    state: str = EMPTY
    generation: int = 0
    """The number of the last generation, or the epoch."""
    offsets: PMap[TopicPartition, Offset] = PMap()
    version: int = 0
    """The index of the last entry that changed the group (S2)."""
    seq: int = 0
    """The group_seq of its last record."""
    state_since_ms: int = 0
    """The log time of the last change of `state`."""
    quarantined: str = ""
    """Why nothing but its deletion is decided for it any more (S6); "" as a rule."""


class RequestKey(NamedTuple):
    """Identifies a request (S15); the group is "" for a call without one."""

    principal: Principal
    group_id: GroupId
    request_id: RequestId


class RequestRecord(NamedTuple):
    """A served request."""

    digest: bytes
    """The digest of its body."""
    answer: bytes
    """The stored answer."""
    log_time_ms: int
    """When it was served."""
    number: int = 0
    """Its number in the order of serving, without gaps, so the oldest is found at once (S15)."""
    position: Position = Position(0, 0)
    """Its place in the log, which a repetition is told."""


class Settings(NamedTuple):
    """Settings that shape answers, cluster-wide, with changes per group on top (S23).

    Values are text as on the log; `settings.py` gives them names, bounds and types.
    """

    cluster: PMap[str, str] = PMap()
    groups: PMap[GroupId, PMap[str, str]] = PMap()


class State(NamedTuple):
    """Everything that is replicated."""

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
    """The number of the next served request; `requests` holds the last ones."""
    requests_floor_ms: int = 0
    """The log time of the youngest request that was dropped for want of room; of older ones it is
    not known whether they were served."""
    requests_by_number: PMap[int, RequestKey] = PMap()
    """The keys of `requests` by number; not stored."""
    raised_to: int = 0
    """The level that was raised last; 0: none ever was, and the bytes are those of level 1."""
    acls: PMap[Acl, Acl] = PMap()
    """The grants, each by itself."""
    access_mode: str = ""
    """`dry-run` or `deny`; "" is `open`, as every cluster was before there were grants."""
    revocations: PMap[Fingerprint, Revocation] = PMap()
    """Certificates that are refused."""
    recovered_at: int = 0
    """Index of the entry that raised the recovery number last; 0: it never was raised. A group that
    nothing has changed since then may have members from before it, whose grants count no more."""
    history_cut: HistoryCut | None = None
    """Where the history begins, if some of it was cut off."""
    backed_up: int = 0
    """Index of the last entry in the newest backup that was verified; 0: none was."""

    @property
    def level(self) -> int:
        """The level in force: what may be written (`model.levels`)."""
        return self.raised_to or 1

    def version_of(self, group_id: GroupId) -> int:
        """Return the version that a part for this group expects (S2); "" is the cluster itself."""
        if not group_id:
            return self.cluster_version
        group = self.groups.get(group_id)
        return group.version if group else 0
