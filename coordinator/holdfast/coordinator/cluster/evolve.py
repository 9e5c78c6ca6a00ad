"""How the cluster's own events change the state, and how served requests are stored.

Total: an event on the log is a fact. Knows no rules of who may change what; those are in
`cluster.topics` and `cluster.requests`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.model.request_ids import made_at_ms
from holdfast.coordinator.model.state import RequestKey, RequestRecord

if TYPE_CHECKING:
    from holdfast.coordinator.model.events import (
        ClusterFormed,
        PartitionsAdded,
        Record,
        RequestRecorded,
        SegmentSealed,
        SettingsChanged,
        TopicsCreated,
        TopicsDeleted,
        TopicSize,
    )
    from holdfast.coordinator.model.ids import GroupId
    from holdfast.coordinator.model.pmap import PMap
    from holdfast.coordinator.model.state import Group, State

FORGOTTEN_AT_ONCE_MAX: Final = 8
"""How many requests one new one may push out: enough to catch up, too few to make a pause."""

WINDOWS_KEPT: Final = 2
"""Answers are kept for twice the window that an id may be old, so that an id whose time part runs
ahead of log time by up to a window is refused as too old before its answer is forgotten."""


def cluster_formed(state: State, event: ClusterFormed, _record: Record) -> State:
    """Set the cluster's name and its first settings (S23)."""
    chosen = settings.applied(state.settings, "", event.settings)
    return state._replace(cluster_id=event.cluster_id, settings=chosen)


def settings_changed(state: State, event: SettingsChanged, _record: Record) -> State:
    """Change settings of the cluster or of one group, from the next decision on (S23)."""
    chosen = settings.applied(state.settings, event.group_id, event.changes)
    return state._replace(settings=chosen)


def topics_created(state: State, event: TopicsCreated, _record: Record) -> State:
    """Add topics."""
    return _with_sizes(state, event.topics)


def partitions_added(state: State, event: PartitionsAdded, _record: Record) -> State:
    """Set the new sizes of topics."""
    return _with_sizes(state, event.topics)


def _with_sizes(state: State, sizes: tuple[TopicSize, ...]) -> State:
    return state._replace(topics=state.topics.update_all((size.name, size) for size in sizes))


def topics_deleted(state: State, event: TopicsDeleted, _record: Record) -> State:
    """Remove topics; groups' offsets of them are removed by own events of the groups (K-J34)."""
    topics = state.topics
    for name in event.names:
        topics = topics.remove(name)
    return state._replace(topics=topics)


def segment_sealed(state: State, event: SegmentSealed, _record: Record) -> State:
    """Note that all records up to a position belong to sealed segments (S22)."""
    return state._replace(sealed=event.last)


# --- the dedupe table (S15) ---


def request_recorded(state: State, event: RequestRecorded, record: Record) -> State:
    """Store a served request, which outlives its group, and forget some old ones."""
    key = RequestKey(record.principal, record.group_id, event.request_id)
    known = state.requests.get(key)
    number = state.requests_next if known is None else known.number
    made = RequestRecord(event.digest, event.answer, record.log_time_ms, number, record.position)
    state = state._replace(
        groups=_counted(state, record),
        requests=state.requests.set(key, made),
        requests_by_number=state.requests_by_number.set(number, key),
        requests_next=max(state.requests_next, number + 1),
    )
    return _forget(state, record.log_time_ms)


def _counted(state: State, record: Record) -> PMap[GroupId, Group[Any]]:
    """Count the record as one of its group's, if that still exists (S3)."""
    group = state.groups.get(record.group_id)
    if group is None:
        return state.groups
    counted = group._replace(version=record.position.index, seq=record.group_seq)
    return state.groups.set(record.group_id, counted)


def _forget(state: State, log_time_ms: int) -> State:
    """Drop the oldest requests while they are too old or too many."""
    bounds = settings.of_cluster(state)
    too_old_ms = log_time_ms - WINDOWS_KEPT * bounds.dedupe_window_ms
    for _ in range(FORGOTTEN_AT_ONCE_MAX):
        number = state.requests_next - len(state.requests)
        key = state.requests_by_number[number]
        served_ms = state.requests[key].log_time_ms
        if served_ms >= too_old_ms and len(state.requests) <= bounds.dedupe_requests_max:
            break
        state = _without(state, number, key)
        if served_ms >= too_old_ms:
            floor_ms = _floor(key, served_ms, bounds.dedupe_window_ms)
            state = state._replace(requests_floor_ms=max(state.requests_floor_ms, floor_ms))
    return state


def _floor(key: RequestKey, served_ms: int, window_ms: int) -> int:
    """Return the time before which nothing is known of requests once this one is forgotten.

    An id may have been made ahead of the log time at which it was served: log time falls back when
    an idle leader fails over. By a window at most, or one wrong clock would make all be refused.
    """
    made_ms = made_at_ms(key.request_id) or 0
    return max(served_ms, min(made_ms, served_ms + window_ms))


def _without(state: State, number: int, key: RequestKey) -> State:
    return state._replace(
        requests=state.requests.remove(key),
        requests_by_number=state.requests_by_number.remove(number),
    )
