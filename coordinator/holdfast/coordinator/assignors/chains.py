"""Evens out mixed subscriptions along chains of moves: a gives to b, b gives to c.

Where members want different topics, a member with too much may be able to give only to one that has
enough itself; but that one can hand something else on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.assignors.holdings import Step, lowest, trace

if TYPE_CHECKING:
    from holdfast.coordinator.assignors.holdings import Holdings, Move


def even_out(holdings: Holdings) -> None:
    """Shift along chains until none ends at a member that stays below the giver's burden.

    Each shift lowers the sum over all partitions of the burden that each was taken on at, so this
    ends, and no other result has a lower one.
    """
    while _pass(holdings):
        pass


def _pass(holdings: Holdings) -> bool:
    """Shift from every member, the most burdened first; return whether anything was shifted.

    A member that a vain search has reached, and that carries no more than its start, would search
    in vain as well; one that carries more had its turn before.
    """
    shifted, vain = False, 0
    for member in sorted(holdings.members, key=lambda m: -holdings.burden(m)):
        while not vain >> member & 1:
            chain, reached = _chain_from(holdings, member)
            for move in chain:
                holdings.hand_on(move)
            shifted = shifted or bool(chain)
            vain |= reached
    return shifted


def _chain_from(holdings: Holdings, start: int) -> tuple[list[Move], int]:
    """Find a shortest chain from `start` to a lower burden; return it and the members reached."""
    burden = holdings.burden(start)
    low = 0
    for next_burden, members in holdings.at_next.items():
        if next_burden < burden:
            low |= members
    reached = edge = 1 << start
    steps: list[Step] = []
    while edge and low:
        new = 0
        for topic in holdings.topics_of(edge):
            givers = holdings.holders[topic] & edge
            takers = holdings.wanting[topic] & ~(reached | new) if givers else 0
            if takers:
                steps.append(Step(givers, topic, takers))
            if takers & low:
                return trace(steps, start, lowest(takers & low)), 0
            new |= takers
        reached |= new
        edge = new
    return [], reached
