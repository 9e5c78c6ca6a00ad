"""Folds recorded events into the state. Pure, and total over all events that can be true.

Nothing is decided here: an event is complete. The fold takes the record, not the bare event, since
an entry's index becomes a fencing token (S13) and log time is kept (S8). An event that cannot be
true of the state that it meets raises InvariantBroken (S6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.coordinator.cluster import evolve as evolve_cluster
from holdfast.coordinator.cluster import settings
from holdfast.coordinator.cluster.request_table import RequestTable
from holdfast.coordinator.kernel.conversion_fold import converted
from holdfast.coordinator.kernel.group_types import new_group, type_of
from holdfast.coordinator.model.consumer_events import GroupConverted
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    QUARANTINE_ENDED,
    AccessModeChanged,
    AclsChanged,
    BackupVerified,
    ClusterFormed,
    GroupCreated,
    GroupDeleted,
    GroupEvent,
    HistoryCut,
    LevelRaised,
    OffsetsCommitted,
    OffsetsDeleted,
    PartitionsAdded,
    Record,
    RecoveryNumberRaised,
    RequestRecorded,
    RevocationsChanged,
    SegmentSealed,
    SettingsChanged,
    TopicsCreated,
    TopicsDeleted,
)
from holdfast.coordinator.model.ids import GroupId
from holdfast.coordinator.model.levels import PRINCIPALS
from holdfast.coordinator.model.membership import COMING, line_of
from holdfast.coordinator.model.state import ABSENT, Group, State
from holdfast.coordinator.offsets import evolve as evolve_offsets
from holdfast.coordinator.structures.copies import with_one, with_two

CLUSTER: Final[Mapping[type, Callable[[State, Any, Record], State]]] = {
    ClusterFormed: evolve_cluster.cluster_formed,
    SettingsChanged: evolve_cluster.settings_changed,
    TopicsCreated: evolve_cluster.topics_created,
    PartitionsAdded: evolve_cluster.partitions_added,
    TopicsDeleted: evolve_cluster.topics_deleted,
    SegmentSealed: evolve_cluster.segment_sealed,
    LevelRaised: evolve_cluster.level_raised,
    AclsChanged: evolve_cluster.acls_changed,
    AccessModeChanged: evolve_cluster.access_mode_changed,
    RevocationsChanged: evolve_cluster.revocations_changed,
    RecoveryNumberRaised: evolve_cluster.recovery_number_raised,
    HistoryCut: evolve_cluster.history_cut,
    BackupVerified: evolve_cluster.backup_verified,
}
"""The folds of the cluster's own events, by the event's class."""

OF_ANY: Final[dict[type, Callable[[Group[Any], Any, Record], Group[Any]]]] = {
    OffsetsCommitted: evolve_offsets.offsets_committed,
    OffsetsDeleted: evolve_offsets.offsets_deleted,
    GroupConverted: converted,
}
"""The folds of events that groups of all types have."""

_counted: Final = with_two(Group, "version", "seq")
_moved: Final = with_two(Group, "state", "state_since_ms")
_with_groups: Final = with_one(State, "groups")


class Fold:
    """A state while records are folded into it, part by part; one part is open at a time.

    What the records of a part change is open until the part is complete, and is then kept, or
    dropped if the part cannot be true: it leaves no trace (S6). `state` puts all that was kept into
    the state, each map at once.
    """

    __slots__ = ("_changed", "_group_id", "_head", "_kept", "_requests", "group")

    def __init__(self, state: State) -> None:
        self.group: Group[Any] | None = None
        """The group of the open part; None if it does not exist, or the part is the cluster's."""
        self._group_id: GroupId = ""
        self._changed: dict[GroupId, Group[Any] | None] = {}
        self._head = self._kept = state  # without looking at its groups and requests again
        self._requests: RequestTable | None = None

    @property
    def log_time_ms(self) -> int:
        """The log time of the entry (S8)."""
        return self._head.log_time_ms

    @property
    def version(self) -> int:
        """The version that the open part should expect (S2)."""
        if not self._group_id:
            return self._head.cluster_version
        return self.group.version if self.group else 0

    @property
    def seq(self) -> int:
        """The group_seq of the last record before the open part (S3)."""
        if not self._group_id:
            return self._head.cluster_seq
        return self.group.seq if self.group else 0

    def open(self, group_id: GroupId) -> None:
        """Begin the part of a group; "" is the cluster itself."""
        self._group_id = group_id
        self.group = self._found(group_id)

    def _found(self, group_id: GroupId) -> Group[Any] | None:
        if group_id in self._changed:
            return self._changed[group_id]
        return self._kept.groups.get(group_id)

    def add(self, record: Record) -> None:
        """Fold a record of the open part. Raises InvariantBroken if it cannot be true.

        A group's version becomes the index of the record's entry (S2).
        """
        event = record.event
        cluster = CLUSTER.get(type(event))
        if cluster is not None:
            self._head = cluster(self._head, event, record)
        elif isinstance(event, RequestRecorded):
            self._add_request(event, record)
        else:
            group = evolve_group(self.group, event, record)  # type: ignore[arg-type]  # what is left
            self.group = _owned(group, record, self._head.level)

    def _add_request(self, event: RequestRecorded, record: Record) -> None:
        """Store a served request; its record counts for its group, if that still exists (S3)."""
        if self._requests is None:
            self._requests = RequestTable(self._kept)
        self._requests.add(event, record, settings.of_cluster(self._head))
        if self.group is not None:
            self.group = _counted(self.group, record.position.index, record.group_seq)

    def count(self, index: int, seq: int) -> None:
        """Count the records of the open part, if it is the cluster's; a group counts its own."""
        if not self._group_id:
            self._head = self._head._replace(cluster_version=index, cluster_seq=seq)

    def quarantine(self, index: int, why: str) -> None:
        """Put an end to the open part's group until an operator deletes it (S6).

        The cluster's own part has no quarantine: one that could not be applied is only skipped.
        """
        if self._group_id:
            group = self.group or new_group(self._group_id)
            self.group = group._replace(quarantined=why, version=index)

    def keep(self) -> None:
        """Keep what the open part has changed: it is complete."""
        self._kept = self._head
        self._changed[self._group_id] = self.group
        if self._requests is not None:
            self._requests.keep()

    def drop(self) -> None:
        """Forget what the open part has changed; it is open as if nothing had been added."""
        self._head = self._kept
        self.group = self._found(self._group_id)
        if self._requests is not None:
            self._requests.drop()

    def state(self) -> State:
        """Return the state with everything that was kept."""
        state = self._kept._replace(groups=self._kept.groups.changed(self._changed))
        return state if self._requests is None else self._requests.put_into(state)


def evolve(state: State, record: Record) -> State:
    """Return the state after one record. Raises as `Fold.add` does.

    A decision takes this way once for each event: one of a group changes that group alone.
    """
    event, group_id = record.event, record.group_id
    if type(event) not in CLUSTER and not isinstance(event, RequestRecorded):
        group = evolve_group(state.groups.get(group_id), event, record)  # type: ignore[arg-type]  # what is left
        group = _owned(group, record, state.level)
        return _with_groups(state, state.groups.changed({group_id: group}))
    fold = Fold(state)
    fold.open(record.group_id)
    fold.add(record)
    fold.keep()
    return fold.state()


def evolve_apart(group: Group[Any] | None, record: Record, level: int) -> Group[Any] | None:
    """Return a group after one of its records, folded apart from the rest of the state.

    A served request only counts for its group: the table of them is not the group's. `level`: the
    one in force. Raises as `Fold.add` does, and for an event of the cluster, which no group has.
    """
    event = record.event
    if isinstance(event, RequestRecorded):
        return group and _counted(group, record.position.index, record.group_seq)
    changed = evolve_group(group, event, record)  # type: ignore[arg-type]  # it refuses all others
    return _owned(changed, record, level)


def _owned(group: Group[Any] | None, record: Record, level: int) -> Group[Any] | None:
    """Note to whom the members belong that came by an event, at a level that keeps it."""
    event = record.event
    if group is None or type(event) not in COMING or level < PRINCIPALS:
        return group
    for member_id in line_of(event).came(event):
        group = type_of(group).own(group, member_id, record.principal)
    return group


def _ends_quarantine(group: Group[Any] | None, record: Record) -> bool:
    """Return whether an operator ends a quarantine by this deletion (S6).

    Who folds records knows it by their cause alone; version 0.1.0 recorded none.
    """
    known = group is not None and bool(group.quarantined)
    return known or record.cause.rule == QUARANTINE_ENDED


def evolve_group(group: Group[Any] | None, event: GroupEvent, record: Record) -> Group[Any] | None:
    """Return the group after its event; None if it is gone. Raises as `Fold.add` does."""
    if isinstance(event, GroupDeleted) and _ends_quarantine(group, record):
        return None  # whatever state it caught the group in (S6)
    if group is None:
        return _created(event, record)
    kind = type_of(group)
    to = kind.target(group.state, event)
    if record.group_seq != group.seq + 1:
        raise InvariantBroken("S3", f"record {record.group_seq} follows {group.seq}")
    if isinstance(event, GroupDeleted):
        return None
    fold = OF_ANY.get(type(event)) or kind.evolve
    changed = fold(group, event, record)
    if changed.group_type != group.group_type:
        kind, to = type_of(changed), changed.state
    if kind.derived is not None:
        to = kind.derived(changed)
    counted = _counted(changed, record.position.index, record.group_seq)
    if to == group.state:
        return counted
    return _moved(counted, to, record.log_time_ms)


def _created(event: GroupEvent, record: Record) -> Group[Any] | None:
    """Return a new group. Raises InvariantBroken for an event of a group that does not exist."""
    type_of(None).target(ABSENT, event)
    group_type = event.group_type if isinstance(event, GroupCreated) else ""
    return new_group(record.group_id, group_type)._replace(
        version=record.position.index, seq=record.group_seq, state_since_ms=record.log_time_ms
    )
