"""The uniform assignor's rule for members with different subscriptions (K-P14).

Members keep what they still subscribe to. What is free goes to the subscriber with the fewest
partitions. Then topic after topic is levelled: the subscribers with the most partitions hand some
of this topic on to those with the fewest, until the two differ by one at most. This is repeated
until a whole round moves nothing; it balances groups in which the subscribers of a topic subscribe
to the same topics, and comes near to it in all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from holdfast.coordinator.consumer.assignors.spec import as_walked_by_uniform, subscribers_by_topic
from holdfast.coordinator.model.ids import TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.coordinator.consumer.assignors.spec import GroupSpec, MemberSpec, Target
    from holdfast.coordinator.model.ids import MemberId, TopicName

_Owners: TypeAlias = "dict[TopicName, list[MemberId | None]]"
"""Who has each partition in the new target; None: nobody yet."""
_Loads: TypeAlias = "dict[MemberId, int]"
"""How many partitions each member has in the new target."""

_ROUNDS_MAX = 16
"""Bounds the time that levelling takes where subscriptions overlap in chains."""


def assign_mixed(group: GroupSpec, counts: Mapping[TopicName, int]) -> Target:
    """Keep, place, level. Each step looks at topics in the same order, the tightest first."""
    walk = as_walked_by_uniform(group.members)
    subscribers = _tightest_first(subscribers_by_topic(walk, group.members, counts), counts)
    owners: _Owners = {topic: [None] * counts[topic] for topic in subscribers}
    loads: _Loads = {}
    for member_id in walk:
        loads[member_id] = _keep(member_id, group.members[member_id], owners)
    for topic, members in subscribers.items():
        _place(owners[topic], members, loads)
    _level_all(subscribers, owners, loads)
    return _by_member(walk, owners)


def _tightest_first(
    subscribers: Mapping[TopicName, list[MemberId]], counts: Mapping[TopicName, int]
) -> dict[TopicName, list[MemberId]]:
    """Sort by partitions for each subscriber, falling; then by subscribers, rising; then by name.

    Topics in front leave their subscribers the least choice.
    """

    def tightness(topic: TopicName) -> tuple[float, int, TopicName]:
        number = len(subscribers[topic])
        return (-counts[topic] / number, number, topic)

    return {topic: subscribers[topic] for topic in sorted(subscribers, key=tightness)}


def _keep(member_id: MemberId, member: MemberSpec, owners: _Owners) -> int:
    """Leave with a member what it had, where it still subscribes and the partition is there.

    Returns how many that are. What a member walked before has kept is not there any more.
    """
    kept = 0
    for topic, partitions in member.current:
        if topic in member.topics and topic in owners:
            slots = owners[topic]
            there = [n for n in partitions if n < len(slots) and slots[n] is None]
            for n in there:
                slots[n] = member_id
            kept += len(there)
    return kept


def _place(owners: list[MemberId | None], members: Sequence[MemberId], loads: _Loads) -> None:
    """Give the free partitions of one topic to the subscribers with the fewest partitions."""
    if None not in owners:
        return
    free = [n for n, owner in enumerate(owners) if owner is None]
    lowest = _lowest(_by_load(members, loads), loads)
    for partition, (_, taker) in zip(free, lowest, strict=False):
        owners[partition] = taker
        loads[taker] += 1


def _level_all(
    subscribers: Mapping[TopicName, Sequence[MemberId]], owners: _Owners, loads: _Loads
) -> None:
    """Level topic after topic, round after round, until all were levelled since the last move."""
    shared = [topic for topic, members in subscribers.items() if len(members) > 1]
    levelled = 0
    for _ in range(_ROUNDS_MAX):
        for topic in shared:
            moved = _level(owners[topic], subscribers[topic], loads)
            levelled = 1 if moved else levelled + 1
            if levelled == len(shared):
                return


def _level(owners: list[MemberId | None], members: Sequence[MemberId], loads: _Loads) -> bool:
    """Hand partitions of one topic on until its subscribers are level; tell whether any moved."""
    levels = [loads[member_id] for member_id in members]
    if max(levels) - min(levels) <= 1:
        return False
    held: dict[MemberId | None, list[int]] = {}
    for partition, owner in enumerate(owners):
        held.setdefault(owner, []).append(partition)
    order = _by_load(members, loads)
    lowest = _lowest(order, loads)
    moved = False
    for giver_load, giver in _highest(order, loads, held):
        taker_load, taker = next(lowest)
        if giver_load - taker_load <= 1:
            break
        owners[held[giver].pop()] = taker
        loads[giver] -= 1
        loads[taker] += 1
        moved = True
    return moved


def _by_load(members: Sequence[MemberId], loads: _Loads) -> list[MemberId]:
    return sorted(members, key=loads.__getitem__)


def _lowest(order: Sequence[MemberId], loads: _Loads) -> Iterator[tuple[int, MemberId]]:
    """Yield who shall take the next partition, with the load that it has before; without end.

    Each yield takes for granted that the taker's load rises by one. Those with the lowest load take
    one each, in turn; then they, and those that had as much before, take the next one.
    """
    load = loads[order[0]]
    end = 0
    while True:
        while end < len(order) and loads[order[end]] == load:
            end += 1
        for member_id in order[:end]:
            yield load, member_id
        load += 1


def _highest(
    order: Sequence[MemberId], loads: _Loads, held: Mapping[MemberId | None, Sequence[int]]
) -> Iterator[tuple[int, MemberId]]:
    """Yield who shall give the next partition, with the load that it has before.

    Each yield takes for granted that the giver's load falls by one. Those with the highest load
    give one each, the last one first; then they, and those that had as much before, give the next
    one. A member without a partition to give drops out, and the last one takes its place: this
    changes the order of the next turn, as in Kafka.
    """
    givers: list[MemberId] = []
    start = len(order)
    load = 0
    while givers or start:
        load = load - 1 if givers else loads[order[start - 1]]
        end = start
        while start and loads[order[start - 1]] == load:
            start -= 1
        givers[:0] = order[start:end]
        for place in range(len(givers) - 1, -1, -1):
            if held.get(givers[place]):
                yield load, givers[place]
            else:
                givers[place] = givers[-1]
                givers.pop()


def _by_member(walk: Sequence[MemberId], owners: _Owners) -> Target:
    target: dict[MemberId, list[TopicPartitions]] = {member_id: [] for member_id in walk}
    for topic in sorted(owners):
        held: dict[MemberId, list[int]] = {}
        for partition, owner in enumerate(owners[topic]):
            if owner is not None:
                held.setdefault(owner, []).append(partition)
        for member_id, partitions in held.items():
            target[member_id].append(TopicPartitions(topic, tuple(partitions)))
    return {member_id: tuple(topics) for member_id, topics in target.items()}
