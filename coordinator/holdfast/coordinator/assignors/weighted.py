"""The weighted assignor: a member that can carry more gets more.

Each member states a weight, 1 or more (Member(weight=3)); all partitions count alike. The result is
balanced by weight in the sense of balance.py: no partition could be handed on to a member that
would then carry less for its weight than the giver did. With equal subscriptions a member of weight
w among weights that sum up to W gets at least the whole part of N x w / W of N partitions. Within
that as few partitions move as can be. With equal weights it does what the sticky assignor does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.coordinator.assignors.balance import assign_balanced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.coordinator.assignors.base import Assignment, MemberSubscription


@dataclass(frozen=True, slots=True)
class WeightedAssignor:
    """Balance by weight, then stickiness."""

    name: str = "weighted"
    uses_owned: bool = True
    cooperative: bool = False

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> Assignment:
        """Assign in proportion to weights; a weight below 1, which no client sends, counts as 1."""
        weights = {member.member_id: max(1, member.weight) for member in members}
        return assign_balanced(members, partition_counts, weights)
