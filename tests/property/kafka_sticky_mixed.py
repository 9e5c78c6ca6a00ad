"""Kafka's sticky assignor for mixed subscriptions, told again from its rules, for comparison.

Slow and plain. The rules, as its `generalAssign` states them, for claims of one generation: valid
claims stay; free partitions go, those of topics with few subscribers first, to the least loaded
subscriber; then single partitions are handed from a member to the least loaded subscriber that has
at least two fewer, first only those that were free, then all, until nothing can be handed on; and
if that has not lowered the sum of differences, it is undone. Of partitions that moved between two
members, one that moved the other way is moved back instead.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.coordinator.assignors import MemberSubscription
    from property.kafka_sticky import Slots

Slot = tuple[str, int]


def kafka_sticky_mixed(
    members: Sequence[MemberSubscription], counts: Mapping[str, int]
) -> dict[str, Slots]:
    """What each member gets. Claims must be of one generation, and of one member each."""
    return _General(members, counts).result()


class _General:
    def __init__(self, members: Sequence[MemberSubscription], counts: Mapping[str, int]) -> None:
        self.topics = {member.member_id: member.topics for member in members}
        wanted = frozenset().union(*self.topics.values())
        every = [(t, n) for t, count in counts.items() if t in wanted for n in range(count)]
        self.every = sorted(every, key=lambda slot: (len(self.subscribers(slot)), slot))
        self.held: dict[str, list[Slot]] = {member_id: [] for member_id in self.topics}
        self.moved: dict[Slot, tuple[str, str]] = {}
        for member in members:
            for topic, numbers in member.owned.items():
                mine = [(topic, n) for n in numbers if (topic, n) in set(every)]
                self.held[member.member_id] += mine if topic in member.topics else []

    def result(self) -> dict[str, Slots]:
        if not self.topics:
            return {}
        new = not any(self.held.values())
        taken = {slot for slots in self.held.values() for slot in slots}
        free = [slot for slot in self.every if slot not in taken]
        for slot in free:
            self.held[self.least_loaded(slot)].append(slot)
        before = {member_id: list(slots) for member_id, slots in self.held.items()}
        self.hand_on([slot for slot in free if len(self.subscribers(slot)) > 1])
        changed = self.hand_on([slot for slot in self.every if len(self.subscribers(slot)) > 1])
        if not new and changed and self.score(self.held) >= self.score(before):
            self.held = before
        return {member_id: set(slots) for member_id, slots in self.held.items()}

    def hand_on(self, slots: Sequence[Slot]) -> bool:
        changed, again = False, True
        while again:
            again = False
            for slot in slots:
                giver = next(m for m, held in self.held.items() if slot in held)
                taker = self.least_loaded(slot)
                if len(self.held[giver]) > len(self.held[taker]) + 1:
                    self.move(self.better(slot, giver, taker), taker)
                    changed = again = True
        return changed

    def move(self, slot: Slot, taker: str) -> None:
        giver = next(m for m, held in self.held.items() if slot in held)
        origin = self.moved.pop(slot, (giver, ""))[0]
        if origin != taker:
            self.moved[slot] = (origin, taker)
        self.held[giver].remove(slot)
        self.held[taker].append(slot)

    def better(self, slot: Slot, giver: str, taker: str) -> Slot:
        origin = self.moved.get(slot, (giver, ""))[0]
        back = [
            one
            for one, way in self.moved.items()
            if one[0] == slot[0] and way == (taker, origin) and one in self.held[giver]
        ]
        return back[0] if back else slot

    def subscribers(self, slot: Slot) -> list[str]:
        return [member_id for member_id, topics in self.topics.items() if slot[0] in topics]

    def least_loaded(self, slot: Slot) -> str:
        return min(self.subscribers(slot), key=lambda m: (len(self.held[m]), m))

    @staticmethod
    def score(held: Mapping[str, Sequence[Slot]]) -> int:
        """Kafka's measure of balance: the sum of the differences of all pairs."""
        loads = [len(slots) for slots in held.values()]
        return sum(abs(one - other) for one, other in combinations(loads, 2))
