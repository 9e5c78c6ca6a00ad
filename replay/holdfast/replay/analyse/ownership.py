"""Fold one group's records into intervals: who owned which partition from when to when.

An interval is what the log grants: it begins with a grant (`AssignmentStored`, or the swap of a
static member in a stable group) and ends with the next generation, a release (S12), or the member's
end. The log does not tell when a client stopped acting. Only assignments of groups of protocol type
`consumer` can be read. Groups of the heartbeat protocol are followed by `stepwise`. Times are log
time in milliseconds (S8). Plain Python: no Spark, no files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from holdfast.coordinator.classic.state import Member
from holdfast.coordinator.model.consumer_events import GroupConverted
from holdfast.coordinator.model.events import (
    AssignmentStored,
    GenerationStarted,
    GroupCreated,
    GroupDeleted,
    GroupEmptied,
    InstanceReleased,
    MemberJoined,
    RebalanceStarted,
    Record,
    StaticMemberReplaced,
)
from holdfast.coordinator.model.ids import MemberId, TopicPartition
from holdfast.replay.analyse.departures import Departures, departures
from holdfast.replay.analyse.intervals import OPEN, Held, Interval, Ledger
from holdfast.replay.analyse.stepwise import StepwiseTimeline
from holdfast.storage.codec.event_codec import CodecError, decode_assignment

CONSUMER: Final = "consumer"
"""The protocol type whose assignments can be read, and the type of groups that `stepwise` knows."""


@dataclass(slots=True)
class OwnershipTimeline:
    """Folds one group's records. `unreadable` counts assignments that cannot be read."""

    group: str
    owners: dict[MemberId, str] = field(default_factory=dict)
    granted: dict[MemberId, tuple[TopicPartition, ...]] = field(default_factory=dict)
    consumer: bool = False
    stable: bool = False
    now_ms: int = 0
    unreadable: int = 0
    stepwise: StepwiseTimeline | None = None
    """Of a group of the heartbeat protocol."""
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        """Share the ledger with the timeline of the other protocol."""
        self.ledger = self.stepwise.ledger if self.stepwise else Ledger(self.group)

    def step(self, record: Record) -> Iterator[Interval]:
        """Take in a record; yield the intervals that it ends."""
        self.now_ms = record.log_time_ms
        if isinstance(record.event, GroupCreated | GroupConverted):
            self._go_on_as(record.event.group_type)
        yield from self.stepwise.step(record) if self.stepwise else self._step(record)

    def _go_on_as(self, group_type: str) -> None:
        """Follow the group as one of this type: its members keep what they own (K-Q2, K-Q12)."""
        if self.stepwise:
            self.owners, self.consumer, self.stable = self.stepwise.owners, True, False
        other = group_type == CONSUMER
        made = StepwiseTimeline(self.ledger, self.owners, classic=set(self.owners))
        self.stepwise = made if other else None

    def _step(self, record: Record) -> Iterator[Interval]:
        match record.event:
            case MemberJoined() as event:
                self.consumer = event.protocol_type == CONSUMER
                self.owners[event.member_id] = event.instance_id or event.member_id
            case StaticMemberReplaced() as event:
                yield from self._replaced(event, record)
            case AssignmentStored() as event:
                yield from self._assigned(event, record)
            case InstanceReleased(member_id=member_id):
                yield from self._end([member_id], "released")
            case RebalanceStarted():
                self.stable = False
            case GenerationStarted() as event:
                yield from self._end_all("generation")
                yield from self._gone(departures(event))
            case GroupDeleted() | GroupEmptied():
                yield from self._end_all("deleted")
                self.owners.clear()
                self.granted.clear()
            case event:  # or offsets and answers, which move no partition
                yield from self._gone(departures(event))

    def hold(self, member: Member, since_ms: int, *, in_force: bool) -> None:
        """Note what a member was granted before the first record, and holds if it is in force."""
        partitions = self._partitions(member.assignment)
        self.granted[member.member_id] = partitions
        owner = self.owners[member.member_id]
        grant = Held(owner, member.granted_index, since_ms, member.predecessor_ms)
        if in_force:
            for place in partitions:
                self.ledger.held[place, member.member_id] = grant

    def close(self, end_ms: int) -> Iterator[Interval]:
        """Yield the intervals that are still open, ended at `end_ms`, the end of the log."""
        self.now_ms = max(self.now_ms, end_ms)
        yield from self._end_all(OPEN)

    def _assigned(self, event: AssignmentStored, record: Record) -> Iterator[Interval]:
        yield from self._end_all("generation")
        self.stable = True
        self.granted = {}
        for member_id, content in event.assignments:
            self._grant(member_id, self._partitions(content), record, 0)

    def _replaced(self, event: StaticMemberReplaced, record: Record) -> Iterator[Interval]:
        """Move what the instance holds to the new member id, with a new token: a swap (K-B3)."""
        yield from self._end([event.old_member_id], "replaced")
        self.owners.pop(event.old_member_id, None)
        self.owners[event.new_member_id] = event.instance_id
        partitions = self.granted.pop(event.old_member_id, ())
        if self.stable:
            self._grant(event.new_member_id, partitions, record, event.predecessor_ms)
        else:
            self.granted[event.new_member_id] = partitions

    def _grant(
        self,
        member_id: MemberId,
        partitions: tuple[TopicPartition, ...],
        record: Record,
        predecessor_ms: int,
    ) -> None:
        self.granted[member_id] = partitions
        owner = self.owners.get(member_id, member_id)
        grant = Held(owner, record.position.index, record.log_time_ms, predecessor_ms)
        for place in partitions:
            self.ledger.held[place, member_id] = grant

    def _partitions(self, content: bytes) -> tuple[TopicPartition, ...]:
        if not self.consumer or not content:
            return ()
        try:
            return decode_assignment(content)
        except CodecError:
            self.unreadable += 1
            return ()

    def _gone(self, gone: Departures) -> Iterator[Interval]:
        yield from self._end(gone.member_ids, gone.how)
        for member_id in gone.member_ids:
            self.owners.pop(member_id, None)
            self.granted.pop(member_id, None)

    def _end(self, member_ids: Collection[MemberId], ended: str) -> Iterator[Interval]:
        return self.ledger.end(member_ids, ended, self.now_ms)

    def _end_all(self, ended: str) -> Iterator[Interval]:
        return self.ledger.end_all(ended, self.now_ms)
