"""The table of running deadlines of one node: plain data; callers pass the time.

`decide` arms, cancels and renews by effects; the node asks what is due and proposes a command for
each, which is judged again (S9). Renewals are lazy: a heartbeat changes one number, and the heap is
corrected when the old time comes. Times are milliseconds of one monotonic clock. Knows no rules.

Inside, time stops while the process stands still: the sum of all stalls is subtracted from every
time that callers pass. So a stall costs the same with one deadline and with a hundred thousand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from holdfast.coordinator.model.effects import Arm, Cancel, Effect, Renew
from holdfast.coordinator.model.ids import GroupId
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey


class Due(NamedTuple):
    """A deadline that fired, with what `DeadlineFired` must carry (S9)."""

    group_id: GroupId
    key: DeadlineKey
    arming: int
    renewals: int


class _Place(NamedTuple):
    group_id: GroupId
    key: DeadlineKey


@dataclass(slots=True)
class _Running:
    """A running deadline. Times are the table's own, without stalls."""

    at_ms: int
    arming: int
    renewals: int = 0
    queued_ms: int = 0


@dataclass(slots=True)
class DeadlineTable:
    """All deadlines that run on this node."""

    _running: dict[_Place, _Running] = field(default_factory=dict)
    _heap: list[tuple[int, int, _Place]] = field(default_factory=list)
    _count: int = 0
    _put_off_ms: int = 0

    def __len__(self) -> int:
        """Return how many run."""
        return len(self._running)

    def carry_out(self, group_id: GroupId, effect: Effect, now_ms: int) -> None:
        """Carry out an effect, if it is about a deadline."""
        if isinstance(effect, Renew):
            self.renew(group_id, effect, now_ms)
        elif isinstance(effect, Arm):
            self.arm(group_id, effect, now_ms)
        elif isinstance(effect, Cancel):
            self._running.pop(_Place(group_id, effect.key), None)

    def arm(self, group_id: GroupId, effect: Arm, now_ms: int) -> None:
        """Start a deadline, or start it over."""
        at_ms = now_ms - self._put_off_ms + effect.after_ms
        place = _Place(group_id, effect.key)
        self._running[place] = _Running(at_ms, effect.arming, queued_ms=at_ms)
        self._push(at_ms, place)

    def renew(self, group_id: GroupId, effect: Renew, now_ms: int) -> bool:
        """Renew a session, if it runs; return whether it is due earlier than it was."""
        place = _Place(group_id, DeadlineKey(SESSION, effect.member_id))
        running = self._running.get(place)
        if running is None:
            return False
        running.renewals = effect.renewals
        at_ms = running.at_ms = now_ms - self._put_off_ms + effect.session_timeout_ms
        if at_ms >= running.queued_ms:
            return False
        running.queued_ms = at_ms  # the session timeout has become shorter
        self._push(at_ms, place)
        return True

    def at_ms(self, group_id: GroupId, key: DeadlineKey) -> int | None:
        """Return when a deadline fires, unless it is renewed; None if it does not run."""
        running = self._running.get(_Place(group_id, key))
        return running.at_ms + self._put_off_ms if running else None

    def due(self, now_ms: int) -> list[Due]:
        """Remove and return all deadlines whose time has come."""
        found: list[Due] = []
        ran_ms = now_ms - self._put_off_ms
        while self._heap and self._heap[0][0] <= ran_ms:
            queued_ms, _, place = heappop(self._heap)
            running = self._running.get(place)
            if running is None or running.queued_ms != queued_ms:
                continue
            if running.at_ms > ran_ms:
                running.queued_ms = running.at_ms
                self._push(running.at_ms, place)
                continue
            del self._running[place]
            found.append(Due(place.group_id, place.key, running.arming, running.renewals))
        return found

    def next_due_ms(self) -> int | None:
        """Return when to call `due` again at the latest; it may find nothing then."""
        return self._heap[0][0] + self._put_off_ms if self._heap else None

    def shift(self, by_ms: int) -> None:
        """Put all deadlines off: the process stood still for so long and heard nobody (S9)."""
        self._put_off_ms += by_ms

    def forget_group(self, group_id: GroupId) -> None:
        """Drop all deadlines of a group, as when the leadership is lost."""
        for place in [place for place in self._running if place.group_id == group_id]:
            del self._running[place]

    def clear(self) -> None:
        """Drop everything, as when the leadership is lost."""
        self._running.clear()
        self._heap.clear()

    def _push(self, at_ms: int, place: _Place) -> None:
        self._count += 1
        heappush(self._heap, (at_ms, self._count, place))
