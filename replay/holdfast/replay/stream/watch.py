"""Alerts from a log that is followed: restless instances, partitions without owner, storms.

What it says is a function of the records alone, however they are cut into batches: time is log time
in milliseconds (S8), and passes with the records of all groups. Plain Python: no Spark, no files.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from holdfast.coordinator.model.consumer_events import EpochRaised
from holdfast.coordinator.model.events import GroupDeleted, RebalanceStarted, Record
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.membership import REPLACED, line_of
from holdfast.replay.analyse.departures import departures
from holdfast.replay.analyse.ownership import OwnershipTimeline

WINDOW_MS: Final = 600_000
"""Within how long turns and rebalances are counted."""
NAMED_MAX: Final = 100
"""Partitions that an alert names; it counts all."""
_LOST: Final = ("expired", "refused")


class Limits(NamedTuple):
    """What is too much."""

    ownerless_ms: int = 60_000  # that a partition may be without owner
    turns: int = 3  # of an instance within the window: swapped, expired, or refused
    rebalances: int = 10  # of a group within the window


@dataclass(frozen=True, slots=True)
class Alert:
    """A line of an alert file. What a kind does not tell is empty, or 0."""

    kind: str
    """restless, ownerless, storm."""
    group: str
    at_ms: int
    """When it became too much."""
    since_ms: int
    """Since when nobody owned them, or when what is counted began."""
    owner: str = ""
    """The restless instance, or dynamic member."""
    count: int = 0
    """Of turns, rebalances, or partitions."""
    partitions: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass(slots=True)
class GroupWatch:
    """What is remembered of one group."""

    timeline: OwnershipTimeline
    free: dict[TopicPartition, int] = field(default_factory=dict)
    """Partitions whose owner's time ended, and when; as long as nothing was said of it."""
    times: dict[str, list[int]] = field(default_factory=dict)
    """When owners had their turns; rebalances have the name ""."""
    loud: set[str] = field(default_factory=set)
    """What is over its limit, and was told."""

    def count(self, name: str, now_ms: int, most: int) -> list[int] | None:
        """Count one more; returns the times within the window if that is newly too much."""
        times = [each for each in self.times.get(name, ()) if each >= now_ms - WINDOW_MS]
        self.times[name] = [*times, now_ms]
        if len(self.times[name]) < most:
            self.loud.discard(name)
            return None
        if name in self.loud:
            return None
        self.loud.add(name)
        return self.times[name]


@dataclass(slots=True)
class Watch:
    """Follows the records of all groups, in the order of the log."""

    limits: Limits
    groups: dict[str, GroupWatch] = field(default_factory=dict)
    _due: list[tuple[int, str, int]] = field(default_factory=list)
    """When to look, at which group, for what is free since when; a heap."""

    def begin(self, group: GroupWatch) -> None:
        """Follow a group from where it is."""
        name = group.timeline.group
        self.groups[name] = group
        for since_ms in set(group.free.values()):
            heapq.heappush(self._due, (since_ms + self.limits.ownerless_ms, name, since_ms))

    def take(self, record: Record) -> Iterator[Alert]:
        """Take in a record; yield what is too much by then."""
        now_ms, name = record.log_time_ms, record.group_id
        yield from self.until(now_ms)
        if not name:
            return
        group = self.groups.setdefault(name, GroupWatch(OwnershipTimeline(name)))
        owners = list(_turned(record, group.timeline))
        self._step(group, record)
        for owner in owners:
            yield from self._counted("restless", group, now_ms, self.limits.turns, owner)
        if isinstance(record.event, RebalanceStarted | EpochRaised):
            yield from self._counted("storm", group, now_ms, self.limits.rebalances)
        if isinstance(record.event, GroupDeleted):
            del self.groups[name]

    def until(self, now_ms: int) -> Iterator[Alert]:
        """Yield the partitions that nobody has owned for too long before `now_ms`."""
        while self._due and self._due[0][0] < now_ms:
            at_ms, name, since_ms = heapq.heappop(self._due)
            group = self.groups.get(name)
            if group is None:
                continue
            held = {place for place, _ in group.timeline.ledger.held}
            looked_at = sorted(place for place, when in group.free.items() if when == since_ms)
            for place in looked_at:
                del group.free[place]
            places = [place for place in looked_at if place not in held]
            if places:
                named = tuple(f"{topic}/{number}" for topic, number in places[:NAMED_MAX])
                yield Alert(
                    *("ownerless", name, at_ms, since_ms), count=len(places), partitions=named
                )

    def _step(self, group: GroupWatch, record: Record) -> None:
        """Take a record into the timeline; note the partitions that lose their owner."""
        now_ms = record.log_time_ms
        ended = [each for each in group.timeline.step(record) if each.ended != "deleted"]
        group.free |= {TopicPartition(each.topic, each.partition): now_ms for each in ended}
        if ended:
            due = (now_ms + self.limits.ownerless_ms, group.timeline.group, now_ms)
            heapq.heappush(self._due, due)

    def _counted(
        self, kind: str, group: GroupWatch, now_ms: int, most: int, owner: str = ""
    ) -> Iterator[Alert]:
        times = group.count(owner, now_ms, most)
        if times is not None:
            name = group.timeline.group
            yield Alert(kind, name, now_ms, times[0], owner=owner, count=len(times))


def _turned(record: Record, timeline: OwnershipTimeline) -> Iterator[str]:
    """Yield whose process a record swaps, or whose session it ends; called before it is folded."""
    event, line = record.event, line_of(record.event)
    if line.kind == REPLACED:
        yield line.instance_id(event) or ""
        return
    gone = departures(event)
    owners = timeline.stepwise.owners if timeline.stepwise else timeline.owners
    if gone.how in _LOST:
        yield from (owners.get(member_id, member_id) for member_id in gone.member_ids)
