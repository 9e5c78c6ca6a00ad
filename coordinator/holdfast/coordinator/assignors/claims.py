"""Members' claims on partitions, checked against each other and against what exists.

Shared by the assignors that keep partitions in place. Knows nothing of how loads are balanced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.coordinator.assignors.base import MemberSubscription


class Slot(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


def owners_by_claim(members: Iterable[MemberSubscription]) -> dict[Slot, MemberSubscription]:
    """Return the owner of each claimed partition: of two claims the newer one counts.

    Of two equally new ones the first in the order of `members` counts.
    """
    owners: dict[Slot, MemberSubscription] = {}
    for member in members:
        for topic, partitions in member.owned.items():
            for partition in partitions:
                slot = Slot(topic, partition)
                rival = owners.get(slot)
                if rival is None or rival.generation < member.generation:
                    owners[slot] = member
    return owners


def valid_claims(
    ordered: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
) -> dict[str, list[Slot]]:
    """Return what each member may keep, sorted: it still wants the topic, the partition exists."""
    claims: dict[str, list[Slot]] = {member.member_id: [] for member in ordered}
    for slot, owner in sorted(_wanted(ordered, partition_counts).items()):
        claims[owner.member_id].append(slot)
    return claims


def unclaimed(
    topics: Iterable[str],
    partition_counts: Mapping[str, int],
    claims: Mapping[str, Sequence[Slot]],
) -> list[Slot]:
    """Return the partitions of these topics that no member may keep, in the order of the topics."""
    taken = {slot for slots in claims.values() for slot in slots}
    every = (Slot(topic, number) for topic in topics for number in range(partition_counts[topic]))
    return [slot for slot in every if slot not in taken]


def by_topic(slots: Iterable[Slot]) -> dict[str, list[int]]:
    """Sort partitions by topic, each topic's in rising order."""
    numbers: dict[str, list[int]] = {}
    for slot in sorted(slots):
        numbers.setdefault(slot.topic, []).append(slot.partition)
    return numbers


def _wanted(
    ordered: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
) -> dict[Slot, MemberSubscription]:
    owners: dict[Slot, MemberSubscription] = {}
    for member in ordered:
        for topic in member.topics.intersection(member.owned):
            count = partition_counts.get(topic, 0)
            for partition in member.owned[topic]:
                slot = Slot(topic, partition)
                rival = owners.get(slot)
                newer = rival is None or rival.generation < member.generation
                if newer and 0 <= partition < count:
                    owners[slot] = member
    return owners
