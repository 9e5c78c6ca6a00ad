"""The service's assignors (K-P12 to K-P14): a stand-in with `range` alone, under both names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from holdfast.coordinator.consumer import holdings
from holdfast.coordinator.model.ids import InstanceId, MemberId, TopicName, TopicPartitions


class MemberSpec(NamedTuple):
    """What an assignor knows of a member."""

    instance_id: InstanceId | None
    rack_id: str | None
    topics: frozenset[TopicName]
    current: tuple[TopicPartitions, ...]


class GroupSpec(NamedTuple):
    """What an assignor knows of a group."""

    members: Mapping[MemberId, MemberSpec]
    homogeneous: bool


Assignor: TypeAlias = Callable[
    [GroupSpec, Mapping[TopicName, int]], Mapping[MemberId, tuple[TopicPartitions, ...]]
]


def _range(
    group: GroupSpec, topics: Mapping[TopicName, int]
) -> Mapping[MemberId, tuple[TopicPartitions, ...]]:
    found: dict[MemberId, list[tuple[TopicName, int]]] = {each: [] for each in group.members}
    for topic, size in sorted(topics.items()):
        users = sorted(
            (each for each, spec in group.members.items() if topic in spec.topics),
            key=lambda each: (
                group.members[each].instance_id is None,
                group.members[each].instance_id or each,
            ),
        )
        start = 0
        for at, each in enumerate(users):
            count = size // len(users) + (at < size % len(users))
            found[each] += [(topic, number) for number in range(start, start + count)]
            start += count
    return {each: holdings.by_topic(given) for each, given in found.items()}


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": _range, "range": _range}
