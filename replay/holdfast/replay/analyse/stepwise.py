"""Fold a group of the heartbeat protocol into intervals of ownership, for `ownership`.

Each partition is owned from the step of its owner that granted it until that owner has freed it, or
is gone: what it is asked to give up it still owns. A release ends all; the swap after it goes on
with the same tokens, and one that nobody announced has a new token (S12, S13). Times are log time
in milliseconds (S8). Plain Python: no Spark, no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.coordinator.model.consumer_events import (
    EpochRaised,
    MemberAdvanced,
    MemberSubscribed,
)
from holdfast.coordinator.model.events import (
    GroupDeleted,
    InstanceReleased,
    Record,
    StaticMemberReplaced,
)
from holdfast.coordinator.model.ids import MemberId, TopicPartition, TopicPartitions
from holdfast.replay.analyse.departures import Departures, departures
from holdfast.replay.analyse.intervals import Held, Interval, Ledger


@dataclass(slots=True)
class StepwiseTimeline:
    """Folds one group's records, from its creation or a checkpoint on."""

    ledger: Ledger
    owners: dict[MemberId, str] = field(default_factory=dict)
    asked: dict[MemberId, set[TopicPartition]] = field(default_factory=dict)
    """What members were asked to give up, and still own."""
    kept: dict[MemberId, dict[TopicPartition, int]] = field(default_factory=dict)
    """What members had when they released their instance, with its tokens."""
    classic: set[MemberId] = field(default_factory=set)
    """Members that speak the classic protocol: each has one token for all that it owns (S13)."""
    predecessors_until_ms: int = 0
    """Until when a member that an operator removed may still act (S12)."""

    def step(self, record: Record) -> Iterator[Interval]:
        """Take in a record; yield the intervals that it ends."""
        now_ms = record.log_time_ms
        match record.event:
            case MemberSubscribed() as event:
                self.owners[event.member_id] = event.instance_id or event.member_id
                self._speaks(event, record.position.index)
            case EpochRaised(predecessor_ms=length_ms) if length_ms:
                self.predecessors_until_ms = max(self.predecessors_until_ms, now_ms + length_ms)
            case MemberAdvanced() as event:
                yield from self._advanced(event, record)
            case InstanceReleased(member_id=member_id):
                self.kept[member_id] = self._staying(member_id)
                self.asked.pop(member_id, None)
                yield from self.ledger.end([member_id], "released", now_ms)
            case StaticMemberReplaced() as event:
                yield from self._replaced(event, record)
            case GroupDeleted():
                yield from self.ledger.end_all("deleted", now_ms)
            case event:
                yield from self._gone(departures(event), now_ms)

    def _speaks(self, event: MemberSubscribed, index: int) -> None:
        """Note which protocol a member speaks; one that goes over has all granted anew."""
        if event.classic is None:
            self.classic.discard(event.member_id)
        elif event.member_id not in self.classic:
            self.classic.add(event.member_id)
            self._grant_anew(event.member_id, index)

    def _grant_anew(self, member_id: MemberId, index: int) -> None:
        """Give one token to all that a member owns and was not asked for; since when, stays."""
        for place in self._staying(member_id):
            key = place, member_id
            self.ledger.held[key] = self.ledger.held[key]._replace(token=index)
        if member_id in self.kept:
            self.kept[member_id] = dict.fromkeys(self.kept[member_id], index)

    def _advanced(self, event: MemberAdvanced, record: Record) -> Iterator[Interval]:
        member_id, now_ms = event.member_id, record.log_time_ms
        self._hold(member_id, self.kept.pop(member_id, {}), now_ms, 0)  # K-N7: it is back itself
        freed = _places(event.freed)
        yield from self.ledger.end_some(member_id, freed, "freed", now_ms)
        asked = self.asked.get(member_id, set()) - freed
        self.asked[member_id] = asked | _places(event.asked_back)
        tokens = dict.fromkeys(_places(event.granted), record.position.index)
        self._hold(member_id, tokens, now_ms, max(0, self.predecessors_until_ms - now_ms))
        if event.granted and member_id in self.classic:
            self._grant_anew(member_id, record.position.index)

    def _replaced(self, event: StaticMemberReplaced, record: Record) -> Iterator[Interval]:
        old, new = event.old_member_id, event.new_member_id
        tokens = self.kept.pop(old, None)
        if tokens is None:
            tokens = dict.fromkeys(self._staying(old), record.position.index)
        yield from self.ledger.end([old], "replaced", record.log_time_ms)
        self._forget(old)
        self.owners[new] = event.instance_id
        self._hold(new, tokens, record.log_time_ms, event.predecessor_ms)
        if event.profile.protocols:  # K-Q7
            self.classic.add(new)
            self._grant_anew(new, record.position.index)

    def _gone(self, gone: Departures, now_ms: int) -> Iterator[Interval]:
        yield from self.ledger.end(gone.member_ids, gone.how, now_ms)
        for member_id in gone.member_ids:
            self._forget(member_id)

    def _forget(self, member_id: MemberId) -> None:
        self.owners.pop(member_id, None)
        self.classic.discard(member_id)
        self.asked.pop(member_id, None)
        self.kept.pop(member_id, None)

    def _staying(self, member_id: MemberId) -> dict[TopicPartition, int]:
        """Return what a member passes on, with its tokens: nothing that it was asked to give up."""
        asked = self.asked.get(member_id, set())
        held = self.ledger.of(member_id)
        return {place: grant.token for place, grant in held.items() if place not in asked}

    def _hold(
        self,
        member_id: MemberId,
        tokens: dict[TopicPartition, int],
        now_ms: int,
        predecessor_ms: int,
    ) -> None:
        owner = self.owners.get(member_id, member_id)
        for place, token in tokens.items():
            self.ledger.held[place, member_id] = Held(owner, token, now_ms, predecessor_ms)


def _places(several: Iterable[TopicPartitions]) -> set[TopicPartition]:
    return {TopicPartition(each.topic, number) for each in several for number in each.partitions}
