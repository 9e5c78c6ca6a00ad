"""Sets of partitions, in the three forms that they have: plain pairs, by topic, and with grants.

Pairs are for computing, lists by topic for events and targets, holdings for what a member owns. All
that are stored are sorted. Knows no group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from holdfast.coordinator.consumer.state import Holding
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.ids import TopicName, TopicPartitions

Pairs: TypeAlias = AbstractSet[tuple[TopicName, int]]
Grant: TypeAlias = tuple[int, int]
"""Epoch and entry index of one partition's grant."""


def by_topic(pairs: Iterable[tuple[TopicName, int]]) -> tuple[TopicPartitions, ...]:
    """Return partitions by topic, sorted."""
    found: dict[TopicName, list[int]] = {}
    for topic, partition in sorted(pairs):
        found.setdefault(topic, []).append(partition)
    return tuple(TopicPartitions(topic, tuple(numbers)) for topic, numbers in found.items())


def pairs(held: Iterable[Holding | TopicPartitions]) -> frozenset[tuple[TopicName, int]]:
    """Return the partitions of holdings, or of lists by topic."""
    return frozenset([(each.topic, number) for each in held for number in each.partitions])


def listed(held: Iterable[Holding]) -> tuple[TopicPartitions, ...]:
    """Return the partitions of holdings by topic."""
    return tuple(TopicPartitions(each.topic, each.partitions) for each in held)


def without(held: tuple[Holding, ...], gone: Iterable[TopicPartitions]) -> tuple[Holding, ...]:
    """Return the holdings without these partitions; those that are not there are passed over."""
    lost: dict[TopicName, frozenset[int]] = {}
    for topic, partitions in gone:
        lost[topic] = lost.get(topic, frozenset()).union(partitions)
    if not lost:
        return held
    kept = [_less(each, lost[each.topic]) if each.topic in lost else each for each in held]
    return tuple(each for each in kept if each.partitions)


def only(held: tuple[Holding, ...], wanted: Iterable[TopicPartitions]) -> tuple[Holding, ...]:
    """Return the holdings of these partitions. Raises InvariantBroken if one is not held."""
    named = {each.topic: frozenset(each.partitions) for each in wanted}
    found = tuple(
        _less(each, frozenset(each.partitions) - named[each.topic])
        for each in held
        if each.topic in named
    )
    if sum(len(each.partitions) for each in found) != sum(map(len, named.values())):
        raise InvariantBroken("O15", f"{sorted(named)} are not all held")
    return tuple(each for each in found if each.partitions)


def joined(held: tuple[Holding, ...], more: Iterable[Holding]) -> tuple[Holding, ...]:
    """Return the union of holdings that have no partition in common."""
    found = {each.topic: each for each in held}
    for each in more:
        known = found.get(each.topic)
        found[each.topic] = each if known is None else _merged(known, each)
    return tuple(found[topic] for topic in sorted(found))


def granted(new: Iterable[TopicPartitions], epoch: int, index: int) -> tuple[Holding, ...]:
    """Return holdings of partitions that are granted now."""
    return tuple(
        Holding(
            each.topic,
            each.partitions,
            (epoch,) * len(each.partitions),
            (index,) * len(each.partitions),
        )
        for each in new
    )


def grants(held: Iterable[Holding]) -> Mapping[tuple[TopicName, int], Grant]:
    """Return the grant of each partition."""
    return {
        (each.topic, number): (epoch, index)
        for each in held
        for number, epoch, index in zip(each.partitions, each.epochs, each.granted, strict=True)
    }


def regranted(held: tuple[Holding, ...], index: int) -> tuple[Holding, ...]:
    """Return the holdings as granted anew by an entry; their epochs stay."""
    return tuple(each._replace(granted=(index,) * len(each.partitions)) for each in held)


def with_epoch(held: tuple[Holding, ...], epoch: int) -> tuple[Holding, ...]:
    """Return the holdings as got at an epoch; their grants stay."""
    return tuple(each._replace(epochs=(epoch,) * len(each.partitions)) for each in held)


def _less(holding: Holding, gone: frozenset[int]) -> Holding:
    rows = zip(holding.partitions, holding.epochs, holding.granted, strict=True)
    return _of_rows(holding.topic, [row for row in rows if row[0] not in gone])


def _merged(one: Holding, other: Holding) -> Holding:
    rows = (
        *zip(one.partitions, one.epochs, one.granted, strict=True),
        *zip(other.partitions, other.epochs, other.granted, strict=True),
    )
    return _of_rows(one.topic, sorted(rows))


def _of_rows(topic: TopicName, rows: list[tuple[int, int, int]]) -> Holding:
    if not rows:
        return Holding(topic, (), (), ())
    partitions, epochs, indexes = zip(*rows, strict=True)
    return Holding(topic, partitions, epochs, indexes)
