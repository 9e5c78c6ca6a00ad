"""Random groups for the tests of the server assignors, and how to read their targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from hypothesis import strategies as st

from holdfast.coordinator.consumer.assignors import GroupSpec, MemberSpec, Target
from holdfast.coordinator.model.ids import TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Iterable

Slots: TypeAlias = frozenset[tuple[str, int]]

TOPICS = ("t", "u", "v", "w")
counts_of_topics = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9))


@st.composite
def server_groups(
    draw: st.DrawFn, *, homogeneous: bool | None = None, fewest: int = 0
) -> GroupSpec:
    """Members with random instance ids, subscriptions and targets, which may be out of date."""
    ids = draw(st.lists(st.integers(0, 40), unique=True, min_size=fewest, max_size=14))
    some_topics = st.frozensets(st.sampled_from(TOPICS))
    common = draw(some_topics)
    equal = draw(st.booleans()) if homogeneous is None else homogeneous
    slot = st.tuples(st.sampled_from(TOPICS), st.integers(0, 10))
    owners = draw(st.dictionaries(slot, st.sampled_from(ids or [0]), max_size=30))
    members = {
        f"m-{number}": MemberSpec(
            f"i-{number}" if draw(st.booleans()) else None,
            None,
            common if equal else draw(some_topics),
            by_topic(held for held, owner in owners.items() if owner == number),
        )
        for number in ids
    }
    return GroupSpec(members, equal)


def by_topic(held: Iterable[tuple[str, int]]) -> tuple[TopicPartitions, ...]:
    numbers: dict[str, list[int]] = {}
    for topic, partition in sorted(held):
        numbers.setdefault(topic, []).append(partition)
    return tuple(TopicPartitions(topic, tuple(ns)) for topic, ns in numbers.items())


def with_target(group: GroupSpec, target: Target) -> GroupSpec:
    """The same group, to which a target has been given; a member that is not in it has nothing."""
    members = {m: spec._replace(current=target.get(m, ())) for m, spec in group.members.items()}
    return group._replace(members=members)


def slots(topics: Iterable[TopicPartitions]) -> Slots:
    return frozenset((topic, n) for topic, partitions in topics for n in partitions)


def assignable(group: GroupSpec, counts: dict[str, int]) -> Slots:
    """Every partition of a topic that exists and that somebody subscribes to."""
    subscribed = {topic for member in group.members.values() for topic in member.topics}
    return frozenset((t, n) for t in subscribed & counts.keys() for n in range(counts[t]))
