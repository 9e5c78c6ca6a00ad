"""The members' partitions while loads are evened out, shared by chains, returns and cycles.

Members are numbers, and sets of members whole numbers with one bit a member, so that a search looks
at a topic with all its subscribers in one step.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from holdfast.coordinator.assignors.claims import Slot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


_TOPICS_EACH = 8


class Step(NamedTuple):
    """One stage of a search: from any of `givers` to all of `takers`."""

    givers: int
    topic: str | None
    """The topic of the partition that moves; None: none, because the two only trade loads."""
    takers: int


class Move(NamedTuple):
    """One link of a chain."""

    giver: int
    topic: str | None
    taker: int


class Holdings:
    """Partitions by member. `owner`: the member whose claim on a partition counts."""

    def __init__(
        self,
        subscribers: Mapping[str, Sequence[str]],
        claims: Mapping[str, Sequence[Slot]],
        held: Mapping[str, Sequence[Slot]],
        costs: Mapping[str, int],
    ) -> None:
        self._ids = list(held)
        numbers = {member_id: number for number, member_id in enumerate(self._ids)}
        self.wanting = {
            topic: sum(1 << numbers[member_id] for member_id in member_ids)
            for topic, member_ids in subscribers.items()
        }
        self.owner = {slot: numbers[m] for m, slots in claims.items() for slot in slots}
        self.holder: dict[Slot, int] = {}
        self.displaced: dict[Slot, None] = {}  # claimed by somebody, held by another; in order
        # Who holds anything of a topic, and who holds something of it that it has not claimed.
        self.holders: dict[str, int] = dict.fromkeys(subscribers, 0)
        self.strangers: dict[str, int] = dict.fromkeys(subscribers, 0)
        # Who carries which burden; and who would carry which with one partition more.
        self.at_burden: dict[int, int] = defaultdict(int)
        self.at_next: dict[int, int] = defaultdict(int)
        self._cost = [costs[member_id] for member_id in self._ids]
        self._load = [0] * len(self._ids)
        self._held: list[dict[str, set[int]]] = [{} for _ in self._ids]
        for member_id, slots in held.items():
            self._fill(numbers[member_id], slots)

    @property
    def members(self) -> Iterable[int]:
        """All members."""
        return range(len(self._ids))

    def burden(self, member: int) -> int:
        """Return a member's burden, in the whole numbers of balance.py."""
        return self._load[member] * self._cost[member]

    def topics_of(self, members: int) -> Iterable[str]:
        """Return topics that these members may hold something of.

        All topics, if that is quicker.
        """
        if members.bit_count() * _TOPICS_EACH > len(self.wanting):
            return self.wanting
        return dict.fromkeys(topic for member in bits(members) for topic in self._held[member])

    def slots(self) -> dict[str, list[Slot]]:
        """Return every member's partitions, by member id."""
        return {
            member_id: [Slot(topic, n) for topic, ns in self._held[number].items() for n in ns]
            for number, member_id in enumerate(self._ids)
        }

    def hand_on(self, move: Move) -> None:
        """Move a partition that the taker had before, else one that the giver had not, else any."""
        giver, topic, taker = move
        if topic is None:
            return
        best = min(self._held[giver][topic], key=lambda n: (self._rank(Slot(topic, n), move), -n))
        self.move(Slot(topic, best), taker)

    def move(self, slot: Slot, taker: int) -> None:
        """Give one partition to another member."""
        giver = self.holder[slot]
        self._held[giver][slot.topic].remove(slot.partition)
        self._mark(giver, slot.topic)
        self._reload(giver, -1)
        self._held[taker].setdefault(slot.topic, set()).add(slot.partition)
        self._hold(taker, slot)
        self._mark(taker, slot.topic)
        self._reload(taker, 1)

    def _rank(self, slot: Slot, move: Move) -> int:
        owner = self.owner.get(slot)
        return 0 if owner == move.taker else 2 if owner == move.giver else 1

    def _fill(self, member: int, slots: Sequence[Slot]) -> None:
        for slot in slots:
            self._held[member].setdefault(slot.topic, set()).add(slot.partition)
            self._hold(member, slot)
        for topic in self._held[member]:
            self._mark(member, topic)
        bit = 1 << member
        self.at_burden[0] |= bit
        self.at_next[self._cost[member]] |= bit
        self._reload(member, len(slots))

    def _hold(self, member: int, slot: Slot) -> None:
        self.holder[slot] = member
        if self.owner.get(slot, member) == member:
            self.displaced.pop(slot, None)
        else:
            self.displaced[slot] = None

    def _mark(self, member: int, topic: str) -> None:
        bit, numbers = 1 << member, self._held[member].get(topic, ())
        strange = any(self.owner.get(Slot(topic, n)) != member for n in numbers)
        self.holders[topic] = self.holders[topic] | bit if numbers else self.holders[topic] & ~bit
        kept = self.strangers[topic]
        self.strangers[topic] = kept | bit if strange else kept & ~bit

    def _reload(self, member: int, partitions: int) -> None:
        bit, cost = 1 << member, self._cost[member]
        for sign in (1, -1):  # out of the old burdens, into the new ones
            self.at_burden[self._load[member] * cost] ^= bit
            self.at_next[(self._load[member] + 1) * cost] ^= bit
            self._load[member] += partitions if sign > 0 else 0


def trace(steps: Sequence[Step], start: int, end: int) -> list[Move]:
    """Return the links that lead from `start` to `end`, the last one first."""
    chain: list[Move] = []
    while end != start:
        step = next(step for step in steps if step.takers >> end & 1)
        giver = start if step.givers >> start & 1 else lowest(step.givers)
        chain.append(Move(giver, step.topic, end))
        end = giver
    return chain


def bits(members: int) -> Iterator[int]:
    """Yield each of a set of members."""
    while members:
        yield lowest(members)
        members &= members - 1


def lowest(members: int) -> int:
    """Return the lowest of a set of members."""
    return (members & -members).bit_length() - 1
