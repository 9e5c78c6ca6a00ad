"""Balance first, then as few moves as that balance allows: the engine of the sticky assignors.

A member's *burden* is its number of partitions divided by its weight. A result is balanced when no
single partition, handed on by a giver to a taker that wants its topic, would leave the taker with
less burden than the giver had: load(giver) / weight(giver) <= (load(taker) + 1) / weight(taker).
For equal weights that is Kafka's "within one". Burdens are kept as whole numbers: a partition costs
a member lcm(all weights) / its own weight, so nothing is ever rounded.

With equal subscriptions such shares are computed outright (they are the divisor method of D'Hondt).
With mixed subscriptions loads are evened out in chains.py; returns.py gives back what moved without
need, and cycles.py the last of it. In both cases no result that is balanced as well keeps more
partitions in place.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heapreplace
from math import lcm
from typing import TYPE_CHECKING

from holdfast.coordinator.assignors.base import in_member_order, subscribers_by_topic
from holdfast.coordinator.assignors.chains import even_out
from holdfast.coordinator.assignors.claims import Slot, by_topic, unclaimed, valid_claims
from holdfast.coordinator.assignors.cycles import exchange
from holdfast.coordinator.assignors.holdings import Holdings
from holdfast.coordinator.assignors.returns import give_back

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.coordinator.assignors.base import Assignment, MemberSubscription


def assign_balanced(
    members: Sequence[MemberSubscription],
    partition_counts: Mapping[str, int],
    weights: Mapping[str, int],
) -> Assignment:
    """Keep owned partitions where balance allows it. `weights`, by member id, are 1 or more."""
    ordered = in_member_order(members)
    subscribers = subscribers_by_topic(ordered, partition_counts)
    claims = valid_claims(ordered, partition_counts)
    free = unclaimed(subscribers, partition_counts, claims)
    costs = _costs([member.member_id for member in ordered], weights)
    if {len(wanting) for wanting in subscribers.values()} <= {len(ordered)}:
        held = _cut_and_fill(claims, free, costs)
    else:
        held = _place_and_even_out(subscribers, claims, free, costs)
    return {member.member_id: by_topic(held[member.member_id]) for member in members}


def _costs(member_ids: Sequence[str], weights: Mapping[str, int]) -> dict[str, int]:
    whole = lcm(*(weights[member_id] for member_id in member_ids))
    return {member_id: whole // weights[member_id] for member_id in member_ids}


def _cut_and_fill(
    claims: Mapping[str, list[Slot]], free: Sequence[Slot], costs: Mapping[str, int]
) -> dict[str, list[Slot]]:
    """Cut every member to its share, then fill up, in O(partitions log members)."""
    total = len(free) + sum(map(len, claims.values()))
    owned = {member_id: len(slots) for member_id, slots in claims.items()}
    shares = _shares(owned, total, costs)
    held = {member_id: slots[: shares[member_id]] for member_id, slots in claims.items()}
    pool = deque(free)
    for member_id, slots in claims.items():
        pool.extend(slots[shares[member_id] :])
    for member_id, slots in held.items():
        while len(slots) < shares[member_id]:
            slots.append(pool.popleft())
    return held


def _shares(owned: Mapping[str, int], total: int, costs: Mapping[str, int]) -> dict[str, int]:
    """Give each partition in turn to the member whose burden it would raise to the least.

    Of equals, one that owns more than it has so far comes first: its share then saves a move. No
    other choice saves more, because a member meets each burden once.
    """
    shares = dict.fromkeys(owned, 0)
    waiting = [
        (costs[member_id], not count, place, member_id)
        for place, (member_id, count) in enumerate(owned.items())
    ]
    heapify(waiting)
    for _ in range(total if owned else 0):
        burden, _, place, member_id = waiting[0]
        share = shares[member_id] = shares[member_id] + 1
        gives_up = owned[member_id] <= share
        heapreplace(waiting, (burden + costs[member_id], gives_up, place, member_id))
    return shares


def _place_and_even_out(
    subscribers: Mapping[str, Sequence[MemberSubscription]],
    claims: Mapping[str, Sequence[Slot]],
    free: Sequence[Slot],
    costs: Mapping[str, int],
) -> dict[str, list[Slot]]:
    """Place free partitions where the burden stays least, even out, then give back."""
    wanting = {topic: [m.member_id for m in members] for topic, members in subscribers.items()}
    loads = {member_id: len(slots) for member_id, slots in claims.items()}
    held = {member_id: list(slots) for member_id, slots in claims.items()}
    places = {member_id: place for place, member_id in enumerate(claims)}
    queues: dict[str, list[tuple[int, int, str]]] = {}
    # Topics with few subscribers first: their partitions have the least choice.
    for slot in sorted(free, key=lambda slot: (len(wanting[slot.topic]), slot)):
        if slot.topic not in queues:
            queues[slot.topic] = [
                ((loads[m] + 1) * costs[m], places[m], m) for m in wanting[slot.topic]
            ]
            heapify(queues[slot.topic])
        member_id = _least_burdened(queues[slot.topic], loads, costs)
        held[member_id].append(slot)
        loads[member_id] += 1
    holdings = Holdings(wanting, claims, held, costs)
    even_out(holdings)
    give_back(holdings)
    exchange(holdings)
    return holdings.slots()


def _least_burdened(
    queue: list[tuple[int, int, str]], loads: Mapping[str, int], costs: Mapping[str, int]
) -> str:
    """Return the front of a queue whose entries may be out of date: loads only rise meanwhile."""
    while True:
        burden, place, member_id = queue[0]
        true = (loads[member_id] + 1) * costs[member_id]
        if true == burden:
            return member_id
        heapreplace(queue, (true, place, member_id))
