"""The sticky assignor: balance within one, then as few moves as that balance allows.

No result that is balanced as well keeps more partitions in place, whatever the members subscribe
to (balance.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.coordinator.assignors.balance import assign_balanced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.coordinator.assignors.base import Assignment, MemberSubscription


@dataclass(frozen=True, slots=True)
class StickyAssignor:
    """Members keep what they own unless balance requires a move."""

    name: str = "sticky"
    uses_owned: bool = True
    cooperative: bool = False

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> Assignment:
        """Keep owned partitions where balance allows it, hand the rest to the least loaded."""
        weights = {member.member_id: 1 for member in members}
        return assign_balanced(members, partition_counts, weights)
