"""The range assignor: topic by topic, a contiguous run of partitions for each member.

Gives exactly what Kafka's RangeAssignor gives when no racks are known. Topics with equal counts
and equal subscribers are cut at the same places, so partition n of each lands on one member.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.coordinator.assignors.base import in_member_order, subscribers_by_topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.coordinator.assignors.base import Assignment, MemberSubscription


@dataclass(frozen=True, slots=True)
class RangeAssignor:
    """Contiguous runs; the first members of a topic get the remainder, one each."""

    name: str = "range"
    uses_owned: bool = False
    cooperative: bool = False

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> Assignment:
        """Cut each topic into runs, in the member order of Kafka's clients."""
        assignment: Assignment = {member.member_id: {} for member in members}
        by_topic = subscribers_by_topic(in_member_order(members), partition_counts)
        for topic, subscribers in by_topic.items():
            quota, extra = divmod(partition_counts[topic], len(subscribers))
            first = 0
            for place, member in enumerate(subscribers):
                after = first + quota + (place < extra)
                if after > first:
                    assignment[member.member_id][topic] = list(range(first, after))
                first = after
        return assignment
