"""Intervals of ownership, and the grants in force that they are made of.

Knows no events. Times are log time in milliseconds (S8). Plain Python: no Spark, no files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import MemberId, TopicPartition

OPEN: Final = "open"
"""How an interval ended that had not ended when the log did."""


class Interval(NamedTuple):
    """One owner's time with one partition, from one grant."""

    group: str
    topic: str
    partition: int
    owner: str  # the instance of a static member, else the member id
    member_id: str
    token: int  # index of the granting entry, the low part of the fencing token (S13)
    start_ms: int
    end_ms: int
    ended: str
    """generation, freed, released, replaced, left, removed, expired, refused, deleted, or open."""
    predecessor_ms: int  # for how long an earlier holder could still act (S12)


class Held(NamedTuple):
    """A grant in force."""

    owner: str
    token: int
    start_ms: int
    predecessor_ms: int


@dataclass(slots=True)
class Ledger:
    """The grants of one group that are in force."""

    group: str
    held: dict[tuple[TopicPartition, MemberId], Held] = field(default_factory=dict)

    def of(self, member_id: MemberId) -> dict[TopicPartition, Held]:
        """Return what a member holds."""
        return {place: held for (place, whose), held in self.held.items() if whose == member_id}

    def end(self, member_ids: Collection[MemberId], ended: str, now_ms: int) -> Iterator[Interval]:
        """Yield the intervals of members, ended now."""
        ending = [key for key in self.held if key[1] in member_ids]
        return self._ended(ending, ended, now_ms)

    def end_all(self, ended: str, now_ms: int) -> Iterator[Interval]:
        """Yield all intervals, ended now."""
        return self._ended(list(self.held), ended, now_ms)

    def end_some(
        self, member_id: MemberId, places: Collection[TopicPartition], ended: str, now_ms: int
    ) -> Iterator[Interval]:
        """Yield a member's intervals with some partitions, ended now."""
        ending = [(place, member_id) for place in places if (place, member_id) in self.held]
        return self._ended(ending, ended, now_ms)

    def _ended(
        self, keys: Iterable[tuple[TopicPartition, MemberId]], ended: str, now_ms: int
    ) -> Iterator[Interval]:
        for key in sorted(keys):
            (topic, partition), member_id = key
            owner, token, start_ms, predecessor_ms = self.held.pop(key)
            yield Interval(
                self.group,
                topic,
                partition,
                owner,
                member_id,
                token,
                start_ms,
                now_ms,
                ended,
                predecessor_ms,
            )
