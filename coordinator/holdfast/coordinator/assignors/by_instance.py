"""The by-instance assignor: the place of a partition depends on the set of instance ids alone.

No memory is needed: the same instances get the same partitions in every generation, in every
process and after a loss of all state, so warm disks stay warm. Instances lie on a ring of hashed
points, a partition goes to the next instance on the ring that has room; when an instance comes or
goes, mostly its own partitions move. A dynamic member is placed by its member id.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from holdfast.coordinator.assignors.base import identity, in_member_order, subscribers_by_topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.coordinator.assignors.base import Assignment, MemberSubscription

_POINTS_PER_MEMBER = 32


@dataclass(frozen=True, slots=True)
class ByInstanceAssignor:
    """A hash ring with bounded loads: within one among members that share all their topics."""

    name: str = "by-instance"
    uses_owned: bool = False
    cooperative: bool = False

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> Assignment:
        """Place each partition on the ring of the members that subscribe to its topic."""
        assignment: Assignment = {member.member_id: {} for member in members}
        by_topic = subscribers_by_topic(in_member_order(members), partition_counts)
        circle = _Circle(members)
        for topics in _topics_with_equal_subscribers(by_topic):
            slots = [(topic, n) for topic in topics for n in range(partition_counts[topic])]
            ring = _Ring(circle, by_topic[topics[0]], len(slots))
            # In the order of their hashes: no topic is served first by its name.
            for point, topic, partition in sorted((_point(f"{t}\0{n}"), t, n) for t, n in slots):
                member_id = ring.take(point)
                assignment[member_id].setdefault(topic, []).append(partition)
        return {member_id: _sorted(topics) for member_id, topics in assignment.items()}


class _Circle:
    """The points of all members, sorted once: the rings of all topics are walks along it."""

    def __init__(self, members: Sequence[MemberSubscription]) -> None:
        ids = {identity(member): member.member_id for member in members}
        points = sorted((_point(f"{n}\0{i}"), n) for n in ids for i in range(_POINTS_PER_MEMBER))
        self.hashes = [point for point, _ in points]
        self.owners = [ids[name] for _, name in points]


class _Ring:
    """The points of some members on the circle; `take` finds the next one with room, near O(1)."""

    def __init__(self, circle: _Circle, members: Sequence[MemberSubscription], slots: int) -> None:
        self._hashes, self._owners = circle.hashes, circle.owners
        self._quota, self._extra = divmod(slots, len(members))
        self._load = {member.member_id: 0 for member in members}
        self._open = set(self._load)
        # From a place that is not open to a later one; no place between them is open, or opens.
        self._later: dict[int, int] = {}

    def take(self, point: int) -> str:
        """Name the member for a hashed partition, and count it there."""
        place = self._open_from(bisect_left(self._hashes, point) % len(self._hashes))
        owner = self._owners[place]
        self._load[owner] += 1
        if self._load[owner] > self._quota:
            self._open.discard(owner)
            self._extra -= 1
            if self._extra == 0:
                self._close_all_at_quota()
        elif self._load[owner] == self._quota and self._extra == 0:
            self._open.discard(owner)
        return owner

    def _close_all_at_quota(self) -> None:
        """Close all members at the quota, because the shares of quota + 1 are given out."""
        self._open -= {member_id for member_id, n in self._load.items() if n == self._quota}

    def _open_from(self, place: int) -> int:
        passed: list[int] = []
        while self._owners[place] not in self._open:
            passed.append(place)
            place = self._later.get(place, (place + 1) % len(self._owners))
        for behind in passed:
            self._later[behind] = place
        return place


def _topics_with_equal_subscribers(
    by_topic: Mapping[str, Sequence[MemberSubscription]],
) -> list[list[str]]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for topic, subscribers in by_topic.items():
        groups.setdefault(tuple(member.member_id for member in subscribers), []).append(topic)
    return list(groups.values())


def _point(text: str) -> int:
    # blake2b and not hash(): the same in every process and under any PYTHONHASHSEED.
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def _sorted(topics: Mapping[str, list[int]]) -> dict[str, list[int]]:
    return {topic: sorted(topics[topic]) for topic in sorted(topics)}
