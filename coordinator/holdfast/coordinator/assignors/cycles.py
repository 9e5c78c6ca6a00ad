"""Exchanges along circles of moves that keep one partition more in place than they disturb.

What returns.py cannot give back alone may come back together with another one, at the price of one
that stays now. Every such exchange is a circle of members, each of which hands one partition to the
next, or trades loads with it. A move costs 1 if the giver had the partition before, and -1 if the
taker had; a circle below zero is worth it. None is left exactly when no result that is balanced as
well keeps more in place (the criterion of Bellman and Ford, and of Klein for flows).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from holdfast.coordinator.assignors.holdings import Move, bits, lowest

if TYPE_CHECKING:
    from holdfast.coordinator.assignors.holdings import Holdings


def exchange(holdings: Holdings) -> None:
    """Exchange along circles until none is worth it; each keeps at least one more in place."""
    while circle := _Search(holdings).circle():
        for move in circle:
            holdings.hand_on(move)


class _Search:
    """Shortest ways from anywhere, of which only those below zero are followed.

    `_below[d]`: members reached at a distance of d or less. A way that comes back to one of its own
    members from below has closed a circle that is worth it.
    """

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._came: dict[int, Move] = {}
        self._distance: dict[int, int] = {}
        self._below: dict[int, int] = defaultdict(int)
        self._edges: dict[int, int] = defaultdict(int)
        self._circle: list[Move] = []
        self._displaced: dict[int, list[Move]] = defaultdict(list)
        for slot in holdings.displaced:
            holder = holdings.holder[slot]
            self._displaced[holder].append(Move(holder, slot.topic, holdings.owner[slot]))

    def circle(self) -> list[Move]:
        """Find a circle that is worth it; empty: there is none."""
        for moves in self._displaced.values():
            for move in moves:
                self._reach(move, -1)
        while self._edges and not self._circle:
            distance = min(self._edges)
            edge = self._edges.pop(distance)
            self._follow(edge & ~self._below[distance - 1], distance)
        return self._circle

    def _follow(self, edge: int, distance: int) -> None:
        holdings = self._holdings
        topics = holdings.topics_of(edge)
        for topic in topics:
            if givers := holdings.strangers[topic] & edge:
                self._reach_all(givers, topic, holdings.wanting[topic], distance)
        for burden, members in holdings.at_next.items():
            if members & edge:
                takers = holdings.at_burden.get(burden, 0)
                self._reach_all(members & edge, None, takers, distance)
        for topic in topics if distance < -1 else ():
            if givers := holdings.holders[topic] & edge:
                self._reach_all(givers, topic, holdings.wanting[topic], distance + 1)
        for holder in bits(edge):
            for move in self._displaced.get(holder, ()):
                self._reach(move, distance - 1)

    def _reach_all(self, givers: int, topic: str | None, takers: int, distance: int) -> None:
        giver = lowest(givers)
        for taker in bits(takers & ~self._below[distance] & ~(1 << giver)):
            self._reach(Move(giver, topic, taker), distance)

    def _reach(self, move: Move, distance: int) -> None:
        taker = move.taker
        if self._circle or distance >= self._distance.get(taker, 0):
            return
        back = [move]
        while back[-1].giver != taker and back[-1].giver in self._came:
            back.append(self._came[back[-1].giver])
        if back[-1].giver == taker:
            self._circle = back
            return
        for at in range(distance, self._distance.get(taker, 0)):
            self._below[at] |= 1 << taker
        self._distance[taker] = distance
        self._came[taker] = move
        self._edges[distance] |= 1 << taker
