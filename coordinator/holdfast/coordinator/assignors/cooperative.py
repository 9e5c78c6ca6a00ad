"""Cooperative assignment (KIP-429): a partition is given only after its owner has let go of it.

A move takes two rebalances. In the first, a partition that is to move is taken from its owner and
given to no member; the owner lets go of it and joins again. In the second it is free, and goes
where it is wanted. Members keep working, all the time, on everything that does not move.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.coordinator.assignors.base import in_member_order
from holdfast.coordinator.assignors.claims import Slot, owners_by_claim
from holdfast.coordinator.assignors.sticky import StickyAssignor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.coordinator.assignors.base import Assignment, Assignor, MemberSubscription


@dataclass(frozen=True, slots=True)
class CooperativeAssignor:
    """Another assignor, in two rebalances; by default Kafka's cooperative-sticky.

    Its name is `cooperative-` and the name of the assignor `toward`, which decides where partitions
    should end up, and should keep most of them in place.
    """

    toward: Assignor = field(default_factory=StickyAssignor)
    uses_owned: bool = True
    cooperative: bool = True

    @property
    def name(self) -> str:
        """The protocol name that members vote on."""
        return f"cooperative-{self.toward.name}"

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> Assignment:
        """Assign as `toward` does, without partitions that another member still claims."""
        owners = owners_by_claim(in_member_order(members))
        return {
            member_id: _without_claims_of_others(member_id, topics, owners)
            for member_id, topics in self.toward.assign(members, partition_counts).items()
        }


def _without_claims_of_others(
    member_id: str,
    topics: Mapping[str, Sequence[int]],
    owners: Mapping[Slot, MemberSubscription],
) -> dict[str, list[int]]:
    kept: dict[str, list[int]] = {}
    for topic, partitions in topics.items():
        for partition in partitions:
            owner = owners.get(Slot(topic, partition))
            if owner is None or owner.member_id == member_id:
                kept.setdefault(topic, []).append(partition)
    return kept
