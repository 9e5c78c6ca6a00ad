"""The sticky assignor: balance first, then as few moves as that balance allows.

With equal subscriptions the result is balanced within one and keeps the largest number of
partitions in place that any such result can keep. With mixed subscriptions loads are evened out
along chains of moves (a gives to b, b gives to c) until no chain can bring two loads nearer.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from holdfast.coordinator.assignors.base import in_member_order, subscribers_by_topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.coordinator.assignors.base import Assignment, MemberSubscription


class _Slot(NamedTuple):
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class StickyAssignor:
    """Members keep what they own unless balance asks for it."""

    name: str = "sticky"
    uses_owned: bool = True

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> Assignment:
        """Keep owned partitions where balance allows it, hand the rest to the least loaded."""
        ordered = in_member_order(members)
        by_topic = subscribers_by_topic(ordered, partition_counts)
        claims = _valid_claims(ordered, partition_counts)
        sizes = {len(subscribers) for subscribers in by_topic.values()}
        if sizes <= {len(ordered)}:
            held = _balance_equal(claims, _free(by_topic, partition_counts, claims))
        else:
            held = _balance_mixed(by_topic, claims, _free(by_topic, partition_counts, claims))
        return {member.member_id: _by_topic(held[member.member_id]) for member in members}


def _valid_claims(
    ordered: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
) -> dict[str, list[_Slot]]:
    """What each member owns and may keep; of two claims on a partition the newer one counts."""
    owner: dict[_Slot, MemberSubscription] = {}
    for member in ordered:
        for topic in sorted(member.topics.intersection(member.owned)):
            count = partition_counts.get(topic, 0)
            for partition in member.owned[topic]:
                slot = _Slot(topic, partition)
                rival = owner.get(slot)
                if 0 <= partition < count and (
                    rival is None or rival.generation < member.generation
                ):
                    owner[slot] = member
    claims: dict[str, list[_Slot]] = {member.member_id: [] for member in ordered}
    for slot in sorted(owner):
        claims[owner[slot].member_id].append(slot)
    return claims


def _free(
    by_topic: Mapping[str, Sequence[MemberSubscription]],
    partition_counts: Mapping[str, int],
    claims: Mapping[str, Sequence[_Slot]],
) -> list[_Slot]:
    taken = {slot for slots in claims.values() for slot in slots}
    every = (_Slot(topic, n) for topic in by_topic for n in range(partition_counts[topic]))
    return [slot for slot in every if slot not in taken]


def _balance_equal(claims: dict[str, list[_Slot]], free: list[_Slot]) -> dict[str, list[_Slot]]:
    """Cut every member to its share, then fill up; O(partitions + members log members)."""
    if not claims:
        return {}
    total = len(free) + sum(map(len, claims.values()))
    quota, extra = divmod(total, len(claims))
    # Who owns most gets the shares of quota + 1: each such share then saves a move.
    largest_first = sorted(claims, key=lambda member_id: -len(claims[member_id]))
    shares = {m: quota + (place < extra) for place, m in enumerate(largest_first)}
    held = {member_id: slots[: shares[member_id]] for member_id, slots in claims.items()}
    pool = deque(free)
    for member_id, slots in claims.items():
        pool.extend(slots[shares[member_id] :])
    for member_id, slots in held.items():
        while len(slots) < shares[member_id]:
            slots.append(pool.popleft())
    return held


def _balance_mixed(
    by_topic: Mapping[str, Sequence[MemberSubscription]],
    claims: dict[str, list[_Slot]],
    free: list[_Slot],
) -> dict[str, list[_Slot]]:
    """Place what is free with the least loaded, then shorten the distance between loads."""
    held = _Holdings(by_topic, claims)
    # Topics with few subscribers first: their partitions have the least choice.
    for slot in sorted(free, key=lambda slot: (len(by_topic[slot.topic]), slot)):
        ids = held.subscribers[slot.topic]
        held.give(min(ids, key=held.load.__getitem__), slot)
    held.even_out()
    return held.slots()


class _Holdings:
    """Who holds how many partitions of which topic, and moves along chains of members."""

    def __init__(
        self,
        by_topic: Mapping[str, Sequence[MemberSubscription]],
        claims: Mapping[str, Sequence[_Slot]],
    ) -> None:
        self.subscribers = {t: [m.member_id for m in members] for t, members in by_topic.items()}
        self.load = dict.fromkeys(claims, 0)
        self._held: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in claims}
        for member_id, slots in claims.items():
            for slot in slots:
                self.give(member_id, slot)

    def give(self, member_id: str, slot: _Slot) -> None:
        """Add one partition to a member."""
        self._held[member_id].setdefault(slot.topic, []).append(slot.partition)
        self.load[member_id] += 1

    def even_out(self) -> None:
        """Shift along chains until none ends at a member with two partitions fewer.

        Each shift lowers the sum of squared loads, so this ends. A member from which no chain
        starts now can start none later: shifts elsewhere only raise low loads.
        """
        waiting = sorted(self.load, key=lambda member_id: -self.load[member_id])
        progress = True
        while progress:
            progress = False
            for member_id in waiting:
                while chain := self._chain_from(member_id):
                    self._shift(chain)
                    progress = True

    def slots(self) -> dict[str, list[_Slot]]:
        """Every member's partitions."""
        return {
            member_id: [_Slot(topic, n) for topic, ns in by_topic.items() for n in ns]
            for member_id, by_topic in self._held.items()
        }

    def _chain_from(self, start: str) -> list[tuple[str, str, str]]:
        """Shortest chain of (giver, topic, taker) from `start` to a load lower by two or more."""
        reached: dict[str, tuple[str, str]] = {start: ("", "")}
        topics_seen: set[str] = set()
        queue = deque([start])
        while queue:
            giver = queue.popleft()
            for topic in self._held[giver]:
                if topic in topics_seen:
                    continue
                topics_seen.add(topic)
                takers = [m for m in self.subscribers[topic] if m not in reached]
                reached.update(dict.fromkeys(takers, (giver, topic)))
                queue.extend(takers)
                lowest = min(takers, key=self.load.__getitem__, default=start)
                if self.load[lowest] <= self.load[start] - 2:
                    return self._unwind(lowest, reached)
        return []

    @staticmethod
    def _unwind(end: str, reached: Mapping[str, tuple[str, str]]) -> list[tuple[str, str, str]]:
        chain: list[tuple[str, str, str]] = []
        giver, topic = reached[end]
        while giver:
            chain.append((giver, topic, end))
            end = giver
            giver, topic = reached[end]
        return chain

    def _shift(self, chain: Sequence[tuple[str, str, str]]) -> None:
        for giver, topic, taker in chain:
            held = self._held[giver][topic]
            self.give(taker, _Slot(topic, held.pop()))
            self.load[giver] -= 1
            if not held:
                del self._held[giver][topic]


def _by_topic(slots: Sequence[_Slot]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for slot in sorted(slots):
        by_topic.setdefault(slot.topic, []).append(slot.partition)
    return by_topic
