"""The range assignor: topic by topic, a contiguous run of partitions for each subscriber (K-P12).

It is not sticky: the result depends on who is there and what they subscribe to, not on the target
until now. Topics with equally many partitions and the same subscribers are cut at the same places,
so that partition n of each goes to one member (co-partitioning).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from holdfast.coordinator.consumer.assignors.spec import as_walked_by_range, subscribers_by_topic
from holdfast.coordinator.model.ids import TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.coordinator.consumer.assignors.spec import GroupSpec, Target
    from holdfast.coordinator.model.ids import TopicName


def assign_range(group: GroupSpec, counts: Mapping[TopicName, int]) -> Target:
    """Give the first subscribers of each topic one partition more where a cut leaves a rest."""
    walk = as_walked_by_range(group.members)
    target: dict[str, list[TopicPartitions]] = {member_id: [] for member_id in walk}
    cuts: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for topic, subscribers in subscribers_by_topic(walk, group.members, counts).items():
        cut = (counts[topic], len(subscribers))
        if cut not in cuts:
            cuts[cut] = _runs(*cut)
        for member_id, run in zip(subscribers, cuts[cut], strict=False):
            target[member_id].append(TopicPartitions(topic, run))
    return {member_id: tuple(topics) for member_id, topics in target.items()}


def _runs(partitions: int, members: int) -> list[tuple[int, ...]]:
    """Cut 0, 1, ... into runs, one a member; without those of the last members that get nothing."""
    size, rest = divmod(partitions, members)
    served = members if size else rest
    starts = [place * size + min(place, rest) for place in range(served + 1)]
    return [tuple(range(start, end)) for start, end in pairwise(starts)]
