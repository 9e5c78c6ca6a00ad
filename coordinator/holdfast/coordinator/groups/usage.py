"""The size of a cluster's state: counts, and about how many bytes of a node's memory.

`of` counts anew; `difference` compares two states in time proportional to their difference. The
bytes are about what a leading node holds for each thing, with its share of the persistent maps,
measured in CPython; a text counts one byte a character, or four if it is not ASCII. Nothing here is
replicated, and no answer depends on an exact number. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from holdfast.coordinator.model.usage import NOTHING, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.coordinator.groups.group_type import GroupType, Types
    from holdfast.coordinator.model.events import TopicSize
    from holdfast.coordinator.model.ids import GroupId, TopicPartition
    from holdfast.coordinator.model.state import Group, Offset, RequestKey, RequestRecord, State
    from holdfast.coordinator.structures.pmap import PMap

K = TypeVar("K")
V = TypeVar("V")

GROUP_BYTES: Final = 2_000
MEMBER_BYTES: Final = 3_000
"""One member with its ids and those of the processes it replaced: a restart is no growth."""
PENDING_BYTES: Final = 1_300
"""A member id that was given out and not used yet; it is leader-local."""
REBALANCE_BYTES: Final = 5_000
"""One rebalance of a history, with its lists: more than in small groups, a fifth of the most.

Rebalances are kept by a projection, which the state does not know and on which nothing may depend.
So each generation counts as one rebalance, up to as many as are kept: never fewer than have ended.
"""
REBALANCES_MAX: Final = 10
"""Rebalances of a group that are kept."""
LISTED_BYTES: Final = 100
"""One name in a list, beside its text."""
OFFSET_BYTES: Final = 350
TOPIC_BYTES: Final = 400
REQUEST_BYTES: Final = 1_200
SETTING_BYTES: Final = 400
SIGN_BYTES_MAX: Final = 4
"""One character of a text that is not ASCII."""


def of(state: State, types: Types) -> Usage:
    """Count everything in a state."""
    groups = state.groups.values()
    size = sum(_whole(group, types[group.group_type]) for group in groups)
    size += sum(_request(*each) for each in state.requests.items())
    size += sum(_topic(*each) for each in state.topics.items())
    size += sum(_settings(*each) for each in state.settings.groups.items())
    return Usage(
        groups=len(state.groups),
        topics=len(state.topics),
        partitions=sum(topic.num_partitions for topic in state.topics.values()),
        members=sum(_count(group, types) for group in groups),
        state_bytes=size,
    )


def difference(before: State, after: State, types: Types) -> Usage:
    """Return what `after` takes more than `before`, in time proportional to the change."""
    names = after.groups.changed_since(before.groups)
    changes = [Change(before.groups.get(name), after.groups.get(name)) for name in names]
    return _difference(before, after, types, changes)


class Change(NamedTuple):
    """What one group was and is; None: there was none, or is none any more."""

    old: Group[Any] | None
    new: Group[Any] | None
    places: Iterable[TopicPartition] | None = None
    """The only partitions whose offsets may differ; None: that is to be found out."""


def difference_by(change: Change, before: State, after: State, types: Types) -> Usage:
    """Return the difference of two states in which no other group differs."""
    return NOTHING if before is after else _difference(before, after, types, (change,))


def _difference(before: State, after: State, types: Types, changes: Iterable[Change]) -> Usage:
    members, size = 0, 0
    for change in changes:
        old, new, places = change
        if old is not new:
            members += _count(new, types) - _count(old, types)
            size += _of_group(old, new, types, places)
    size += _grown(before.requests, after.requests, _request)
    more_groups = len(after.groups) - len(before.groups)
    if before.topics is after.topics and before.settings is after.settings:  # as in most changes
        return Usage(more_groups, 0, 0, members, size)
    size += _grown(before.topics, after.topics, _topic)
    size += _grown(before.settings.groups, after.settings.groups, _settings)
    return Usage(
        groups=more_groups,
        topics=len(after.topics) - len(before.topics),
        partitions=_grown(before.topics, after.topics, _partitions),
        members=members,
        state_bytes=size,
    )


def _count(group: Group[Any] | None, types: Types) -> int:
    return 0 if group is None else len(types[group.group_type].members(group))


def _of_group(
    old: Group[Any] | None,
    new: Group[Any] | None,
    types: Types,
    places: Iterable[TopicPartition] | None,
) -> int:
    if old is None or new is None or old.group_type != new.group_type:
        was = 0 if old is None else _whole(old, types[old.group_type])
        return (0 if new is None else _whole(new, types[new.group_type])) - was
    kind = types[new.group_type]
    size = 0
    were, are = kind.members(old), kind.members(new)
    if were is not are:
        size += _grown(were, are, lambda _, each: kind.weigh_member(each))
    size += _grown(old.offsets, new.offsets, _offset, places)
    if old.generation != new.generation:
        size += _weight_of_group(new) - _weight_of_group(old)
    return size


def _whole(group: Group[Any], kind: GroupType[Any]) -> int:
    size = _weight_of_group(group) + sum(map(kind.weigh_member, kind.members(group).values()))
    return size + sum(_offset(*each) for each in group.offsets.items())


def _grown(
    before: PMap[K, V],
    after: PMap[K, V],
    weigh: Callable[[K, V], int],
    keys: Iterable[K] | None = None,
) -> int:
    """Return how many more bytes the entries of `after` take than those of `before`.

    `keys`: all that may differ, if they are known.
    """
    if before is after:
        return 0
    size = 0
    for key in after.changed_since(before) if keys is None else keys:
        old, new = before.get(key), after.get(key)
        size += (0 if new is None else weigh(key, new)) - (0 if old is None else weigh(key, old))
    return size


# --- what one thing weighs ---


def of_text(text: str) -> int:
    """Return about how many bytes a text takes."""
    return len(text) if text.isascii() else SIGN_BYTES_MAX * len(text)


def of_texts(texts: Iterable[str]) -> int:
    """Return about how many bytes a list of texts takes."""
    return sum(LISTED_BYTES + of_text(text) for text in texts)


def _weight_of_group(group: Group[Any]) -> int:
    """Return the bytes of a group without its members and offsets."""
    told = min(group.generation, REBALANCES_MAX) * REBALANCE_BYTES
    return GROUP_BYTES + of_text(group.group_id) + told


def _offset(place: TopicPartition, offset: Offset) -> int:
    return OFFSET_BYTES + of_text(place.topic) + of_text(offset.metadata)


def _request(key: RequestKey, record: RequestRecord) -> int:
    return REQUEST_BYTES + of_text(key.principal) + of_text(key.group_id) + len(record.answer)


def _topic(name: str, _topic_size: TopicSize) -> int:
    return TOPIC_BYTES + of_text(name)


def _partitions(_name: str, topic: TopicSize) -> int:
    return topic.num_partitions


def _settings(group_id: GroupId, own: PMap[str, str]) -> int:
    return SETTING_BYTES * (1 + len(own)) + of_text(group_id)
