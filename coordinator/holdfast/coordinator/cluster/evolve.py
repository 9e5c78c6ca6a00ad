"""How the cluster's own events change the state: name, settings, topics, segments, level.

Total: an event on the log is a fact. Knows no rules of who may change what; those are in
`cluster.topics`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.model.access import OPEN
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.levels import GROUP_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.coordinator.model.events import (
        AccessModeChanged,
        AclsChanged,
        BackupVerified,
        ClusterFormed,
        HistoryCut,
        LevelRaised,
        PartitionsAdded,
        Record,
        RecoveryNumberRaised,
        RevocationsChanged,
        SegmentSealed,
        SettingsChanged,
        TopicsCreated,
        TopicsDeleted,
        TopicSize,
    )
    from holdfast.coordinator.model.ids import TopicName
    from holdfast.coordinator.model.state import State


def cluster_formed(state: State, event: ClusterFormed, _record: Record) -> State:
    """Set the cluster's name and its first settings (S23)."""
    chosen = settings.applied(state.settings, "", event.settings)
    return state._replace(cluster_id=event.cluster_id, settings=chosen)


def settings_changed(state: State, event: SettingsChanged, _record: Record) -> State:
    """Change settings of the cluster or of one group, from the next decision on (S23)."""
    chosen = settings.applied(state.settings, event.group_id, event.changes)
    return state._replace(settings=chosen)


def topics_created(state: State, event: TopicsCreated, record: Record) -> State:
    """Add topics; from level 2 on they tell when they were created."""
    index = record.position.index if state.level >= GROUP_TYPES else 0
    made = ((size.name, size._replace(created_index=index)) for size in event.topics)
    return state._replace(topics=state.topics.update_all(made))


def partitions_added(state: State, event: PartitionsAdded, _record: Record) -> State:
    """Set the new sizes of topics."""
    return state._replace(topics=state.topics.update_all(_grown(state, event)))


def _grown(state: State, event: PartitionsAdded) -> Iterator[tuple[TopicName, TopicSize]]:
    for size in event.topics:
        known = state.topics.get(size.name, size)
        yield size.name, known._replace(num_partitions=size.num_partitions)


def topics_deleted(state: State, event: TopicsDeleted, _record: Record) -> State:
    """Remove topics; groups' offsets of them are removed by own events of the groups (K-J34)."""
    topics = state.topics
    for name in event.names:
        topics = topics.remove(name)
    return state._replace(topics=topics)


def segment_sealed(state: State, event: SegmentSealed, _record: Record) -> State:
    """Note that all records up to a position belong to sealed segments (S22)."""
    return state._replace(sealed=event.last)


def level_raised(state: State, event: LevelRaised, _record: Record) -> State:
    """Note the level in force from here on. Raises InvariantBroken if it would not grow."""
    if event.level <= state.level:
        raise InvariantBroken("S6", f"level {event.level} is raised at level {state.level}")
    return state._replace(raised_to=event.level)


def acls_changed(state: State, event: AclsChanged, _record: Record) -> State:
    """Add and remove grants."""
    acls = state.acls.update_all((acl, acl) for acl in event.granted)
    for acl in event.revoked:
        acls = acls.remove(acl)
    return state._replace(acls=acls)


def access_mode_changed(state: State, event: AccessModeChanged, _record: Record) -> State:
    """Note what becomes of calls that no grant allows; `open` is stored as nothing."""
    return state._replace(access_mode="" if event.mode == OPEN else event.mode)


def revocations_changed(state: State, event: RevocationsChanged, _record: Record) -> State:
    """Add and remove revocations."""
    revocations = state.revocations.update_all((it.fingerprint, it) for it in event.revoked)
    for each in event.lifted:
        revocations = revocations.remove(each)
    return state._replace(revocations=revocations)


def recovery_number_raised(state: State, event: RecoveryNumberRaised, record: Record) -> State:
    """Lift every token from here on (S13). Raises InvariantBroken if the number would not grow."""
    if event.number <= state.recovery_number:
        problem = f"recovery number {event.number} is raised at {state.recovery_number}"
        raise InvariantBroken("S13", problem)
    return state._replace(recovery_number=event.number, recovered_at=record.position.index)


def history_cut(state: State, event: HistoryCut, _record: Record) -> State:
    """Note where the history begins (S24). Raises InvariantBroken for a cut that cannot be true."""
    if event.last > state.sealed:
        problem = f"the history is cut at {event.last}, and sealed up to {state.sealed} only"
        raise InvariantBroken("S24", problem)
    if state.history_cut is not None and event.last <= state.history_cut.last:
        problem = f"the history is cut at {event.last} after {state.history_cut.last}"
        raise InvariantBroken("S24", problem)
    return state._replace(history_cut=event)


def backup_verified(state: State, event: BackupVerified, _record: Record) -> State:
    """Note how far a verified backup reaches (S24)."""
    return state._replace(backed_up=max(state.backed_up, event.index))
