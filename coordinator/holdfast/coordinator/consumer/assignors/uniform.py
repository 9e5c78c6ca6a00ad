"""The uniform assignor: balance first, then as much of the target until now as balance allows.

This module holds the rule for a homogeneous group (K-P13): every member gets the average, rounded
down or up, and keeps what it had as far as that goes. mixed.py has the rule for all others (K-P14).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from holdfast.coordinator.consumer.assignors.mixed import assign_mixed
from holdfast.coordinator.consumer.assignors.spec import as_walked_by_uniform
from holdfast.coordinator.model.ids import TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.coordinator.consumer.assignors.spec import GroupSpec, Target
    from holdfast.coordinator.model.ids import MemberId, TopicName

_Held: TypeAlias = "tuple[TopicPartitions, ...]"
_Slot: TypeAlias = "tuple[TopicName, int]"


def assign_uniform(group: GroupSpec, counts: Mapping[TopicName, int]) -> Target:
    """Choose the rule by the group's subscriptions."""
    if group.homogeneous:
        return _assign_homogeneous(group, counts)
    return assign_mixed(group, counts)


def _assign_homogeneous(group: GroupSpec, counts: Mapping[TopicName, int]) -> Target:
    """Cut every member to its quota, then fill up those below theirs.

    The first members that are walked have the quota that is rounded up, however much they held.
    """
    walk = as_walked_by_uniform(group.members)
    if not walk:
        return {}
    wanted = _partitions_wanted(group.members[walk[0]].topics, counts)
    taken: dict[TopicName, set[int]] = {topic: set() for topic in wanted}
    held = {m: _still_there(group.members[m].current, wanted, taken) for m in walk}
    free = [(topic, n) for topic in wanted for n in wanted[topic] if n not in taken[topic]]
    average, rest = divmod(sum(map(len, wanted.values())), len(walk))
    missing: list[tuple[MemberId, int]] = []
    for place, member_id in enumerate(walk):
        quota = average + (place < rest)
        surplus = sum(len(partitions) for _, partitions in held[member_id]) - quota
        if surplus > 0:
            held[member_id], cut_off = _cut(held[member_id], quota)
            free += cut_off
        elif surplus < 0:
            missing.append((member_id, -surplus))
    _deal(held, missing, free)
    return held


def _partitions_wanted(
    topics: frozenset[TopicName], counts: Mapping[TopicName, int]
) -> dict[TopicName, range]:
    return {topic: range(counts[topic]) for topic in sorted(topics) if topic in counts}


def _still_there(
    current: _Held, wanted: Mapping[TopicName, range], taken: dict[TopicName, set[int]]
) -> _Held:
    """Return what a member may keep, and add it to `taken`.

    Left out are topics that the group no longer subscribes to, partitions that are no longer there
    (another topic has taken over the name), and those that a member walked before has taken.
    """
    kept: list[TopicPartitions] = []
    for held in current:
        if held.topic in wanted:
            numbers, gone = wanted[held.topic], taken[held.topic]
            there = [n for n in held.partitions if n in numbers and n not in gone]
            gone.update(there)
            if there:
                kept.append(TopicPartitions(held.topic, tuple(there)))
    return tuple(kept)


def _cut(held: _Held, quota: int) -> tuple[_Held, list[_Slot]]:
    """Keep the first partitions, by topic and number; return the kept ones and the others."""
    kept: list[TopicPartitions] = []
    cut_off: list[_Slot] = []
    room = quota
    for topic, partitions in held:
        if partitions[:room]:
            kept.append(TopicPartitions(topic, partitions[:room]))
        cut_off += [(topic, n) for n in partitions[room:]]
        room -= len(partitions[:room])
    return tuple(kept), cut_off


def _deal(
    held: dict[MemberId, _Held], missing: Sequence[tuple[MemberId, int]], free: Sequence[_Slot]
) -> None:
    """Give each member in turn as many as it misses, from the front of `free`."""
    dealt = 0
    for member_id, number in missing:
        held[member_id] = _with(held[member_id], free[dealt : dealt + number])
        dealt += number


def _with(held: _Held, more: Sequence[_Slot]) -> _Held:
    by_topic = {topic: list(partitions) for topic, partitions in held}
    for topic, partition in more:
        by_topic.setdefault(topic, []).append(partition)
    return tuple(
        TopicPartitions(topic, tuple(sorted(by_topic[topic]))) for topic in sorted(by_topic)
    )
