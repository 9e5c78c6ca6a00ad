"""Kafka's sticky assignor for equal subscriptions, told again from its rules, for comparison.

Slow and plain. The rules, as its `constrainedAssign` states them: claims count only if they are of
the newest generation that anybody names; a member keeps what it owned up to the larger quota;
members below the smaller quota are filled with what is free, in turn; when nothing is free any
more, they take from members at the larger quota; what is left goes, one each, to members at the
smaller quota.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.coordinator.assignors import MemberSubscription

Slots: TypeAlias = set[tuple[str, int]]


def kafka_sticky(
    members: Sequence[MemberSubscription], counts: Mapping[str, int]
) -> dict[str, Slots]:
    """What each member gets, if all subscribe to the same topics."""
    if not members:
        return {}
    topics = members[0].topics
    free = [(topic, n) for topic in sorted(topics) for n in range(counts.get(topic, 0))]
    smaller, extra = divmod(len(free), len(members))
    larger = smaller + (extra > 0)
    held = {member_id: slots[:larger] for member_id, slots in _claims(members, set(free)).items()}
    owned = {slot for slots in held.values() for slot in slots}
    pool = deque(slot for slot in free if slot not in owned)
    unfilled = sorted(member_id for member_id, slots in held.items() if len(slots) < smaller)
    _fill_in_turn(held, unfilled, pool, smaller)
    at_larger = deque(member_id for member_id, slots in held.items() if len(slots) == larger)
    for member_id in unfilled:
        while len(held[member_id]) < smaller:
            held[member_id].append(held[at_larger.popleft()].pop(0))
    for slots in held.values():
        if pool and len(slots) == smaller:
            slots.append(pool.popleft())
    assert not pool
    return {member_id: set(slots) for member_id, slots in held.items()}


def _claims(
    members: Sequence[MemberSubscription], there: Slots
) -> dict[str, list[tuple[str, int]]]:
    newest = max(member.generation for member in members)
    claims: dict[str, list[tuple[str, int]]] = {}
    taken: Slots = set()
    for member in members:
        own = [(topic, n) for topic, numbers in member.owned.items() for n in numbers]
        valid = [slot for slot in own if slot in there and slot not in taken]
        claims[member.member_id] = valid if member.generation == newest else []
        taken.update(claims[member.member_id])
    return claims


def _fill_in_turn(
    held: dict[str, list[tuple[str, int]]],
    unfilled: Sequence[str],
    pool: deque[tuple[str, int]],
    smaller: int,
) -> None:
    waiting = deque(unfilled)
    while waiting and pool:
        member_id = waiting.popleft()
        held[member_id].append(pool.popleft())
        if len(held[member_id]) < smaller:
            waiting.append(member_id)
