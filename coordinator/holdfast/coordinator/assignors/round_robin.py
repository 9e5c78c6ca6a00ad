"""The round-robin assignor: deal all partitions of all topics out in turn.

Gives exactly what Kafka's RoundRobinAssignor gives: partitions sorted by topic and number, members
in a circle, and a member that does not subscribe to the topic is passed over without losing its
turn to later topics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.coordinator.assignors.base import in_member_order, subscribers_by_topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.coordinator.assignors.base import Assignment, MemberSubscription


@dataclass(frozen=True, slots=True)
class RoundRobinAssignor:
    """One partition to each member in turn; balance within one when subscriptions are equal."""

    name: str = "roundrobin"
    uses_owned: bool = False
    cooperative: bool = False

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> Assignment:
        """Deal the partitions out in a circle of members, in the order of Kafka's clients."""
        circle = in_member_order(members)
        assignment: Assignment = {member.member_id: {} for member in members}
        turn = 0
        for topic in subscribers_by_topic(circle, partition_counts):
            for partition in range(partition_counts[topic]):
                while topic not in circle[turn].topics:
                    turn = (turn + 1) % len(circle)
                assignment[circle[turn].member_id].setdefault(topic, []).append(partition)
                turn = (turn + 1) % len(circle)
        return assignment
