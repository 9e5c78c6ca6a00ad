"""Gives partitions back to members that had them, at no cost to balance.

Evening out looks for short chains, and may move a partition although another one could have gone. A
member that lost a partition gets it back if somebody else can make up for the load: the way leads
from it, over members that hold something they never had, to the one that has the partition now. Two
members may also just trade loads, where one would carry with a partition more what the other does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.assignors.holdings import Step, trace

if TYPE_CHECKING:
    from holdfast.coordinator.assignors.holdings import Holdings, Move


def give_back(holdings: Holdings) -> None:
    """Give back while something can be; each pass keeps at least one partition more in place."""
    while _round(holdings):
        pass


def _round(holdings: Holdings) -> bool:
    given = False
    vain: dict[int, int] = {}
    for slot in sorted(holdings.displaced):
        holder, owner = holdings.holder[slot], holdings.owner[slot]
        if holder == owner or vain.get(owner, 0) >> holder & 1:
            continue
        way, reached = _way(holdings, owner, holder)
        if way is None:
            vain[owner] = ~reached
            continue
        for move in way:
            holdings.hand_on(move)
        holdings.move(slot, owner)
        given = True
    return given


def _way(holdings: Holdings, start: int, end: int) -> tuple[list[Move] | None, int]:
    """Find moves by which `start` makes up for one partition more and `end` for one less.

    None if there are none.
    """
    goal = 1 << end
    reached = edge = 1 << start
    steps: list[Step] = []
    while edge and not reached & goal:
        new = 0
        for topic in holdings.topics_of(edge):
            givers = holdings.strangers[topic] & edge
            takers = holdings.wanting[topic] & ~(reached | new) if givers else 0
            if takers:
                steps.append(Step(givers, topic, takers))
                new |= takers
        for burden, members in holdings.at_next.items():
            givers = members & edge if members else 0
            trading = holdings.at_burden.get(burden, 0) & ~(reached | new) if givers else 0
            if trading:
                steps.append(Step(givers, None, trading))
                new |= trading
        reached |= new
        edge = new
    return (trace(steps, start, end) if reached & goal else None), reached
