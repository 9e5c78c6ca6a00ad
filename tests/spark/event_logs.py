"""Makes event logs without a server: parts go through the coordinator's own `apply_entry`.

What comes out is what a node's event log holds: positions, counts, hash chains. A log can then be
damaged in one place, and written as the sealed segments of several nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from holdfast.coordinator.kernel.apply import apply_entry
from holdfast.coordinator.model.access import Acl, Revocation
from holdfast.coordinator.model.consumer_events import MemberSubscribed
from holdfast.coordinator.model.events import (
    AccessModeChanged,
    AclsChanged,
    Assigned,
    AssignmentStored,
    Cause,
    ClusterFormed,
    Event,
    GenerationStarted,
    GroupCreated,
    GroupDeleted,
    GroupEmptied,
    InstanceReleased,
    LevelRaised,
    LogEntry,
    MemberExpired,
    MemberJoined,
    MembersLeft,
    MembersRemoved,
    OffsetCommitted,
    OffsetsCommitted,
    OffsetsDeleted,
    Part,
    Proposed,
    RebalanceStarted,
    Record,
    Rejoin,
    RequestRecorded,
    RevocationsChanged,
    SegmentSealed,
    SettingChange,
    SettingsChanged,
    StaticMemberReplaced,
    TopicsCreated,
    TopicSize,
)
from holdfast.coordinator.model.ids import Position, TopicPartition
from holdfast.coordinator.model.member_profile import MemberProfile, Protocol
from holdfast.coordinator.model.state import State
from holdfast.storage.codec.event_codec import CHAIN_START, append_chain, chain_hash, encode_record
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import Row
from holdfast.v1.group_pb2 import ConsumerProtocolAssignment

START_MS = 1_700_000_000_000


def _cause(event: Event) -> Cause:
    """A cause that it may have: a process that speaks the classic protocol comes by a join."""
    sent = isinstance(event, MemberSubscribed) and event.classic is None
    bare = isinstance(event, StaticMemberReplaced) and not event.profile.protocols
    return Cause("A1", "ConsumerGroupHeartbeat" if sent or bare else "JoinGroup")


@dataclass
class EventLog:
    """A log that grows by one entry a call, each some milliseconds after the one before."""

    state: State = field(default_factory=State)
    records: list[Record] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    heads: dict[str, bytes] = field(default_factory=dict)
    now_ms: int = START_MS
    index: int = 0

    def entry(self, group: str, *events: Event, request: str = "", after_ms: int = 100) -> int:
        """Apply one entry with one group's part; returns its index."""
        self.now_ms += after_ms
        self.index += 1
        proposed = tuple(Proposed(e, _cause(e), "p", request) for e in events)
        part = Part(group, 1, self.state.version_of(group), proposed)
        applied = apply_entry(
            self.state, self.index, 1, LogEntry(self.now_ms, self.now_ms, (part,))
        )
        assert not applied.skipped
        self.state = applied.state
        for record in applied.records:
            self._keep(record)
        return self.index

    def silent_entry(self) -> None:
        """An entry that leaves no record, as a new leader's no-op does."""
        self.index += 1
        self.state = self.state._replace(applied_index=self.index)

    def _keep(self, record: Record) -> None:
        content = encode_record(record)
        for chain in {"", record.group_id}:
            self.heads[chain] = chain_hash(self.heads.get(chain, CHAIN_START), content)
        self.records.append(record)
        row = Row(record.position, append_chain(content, self.heads[record.group_id]))
        self.rows.append(row)


def formed() -> EventLog:
    """A log with the record that opens every log."""
    log = EventLog()
    log.entry("", ClusterFormed("c", ()))
    return log


def joined(member: str, instance: str | None = None) -> MemberJoined:
    profile = MemberProfile("client", "host", 10_000, 15_000, (Protocol("range", b"", ("t",)),))
    return MemberJoined(member, instance, profile, "consumer", f"req-{member}")


def swapped(instance: str, old: str, new: str, predecessor_ms: int = 0) -> StaticMemberReplaced:
    profile = MemberProfile("client", "host", 10_000, 15_000, ())
    return StaticMemberReplaced(instance, old, new, profile, f"req-{new}", predecessor_ms)


def rebalance_started(reason: str, member: str = "") -> RebalanceStarted:
    return RebalanceStarted(reason, member, initial=False, timeout_ms=15_000)


def generation(number: int, *members: str, removed: tuple[str, ...] = ()) -> GenerationStarted:
    rejoined = tuple(Rejoin(member, f"join-{member}-{number}") for member in members)
    return GenerationStarted(number, "range", members[0], rejoined, (), removed)


def assigned(number: int, **partitions: Iterable[int]) -> AssignmentStored:
    """An assignment of topic `t`; members by name."""
    given = (Assigned(member, holding(numbers)) for member, numbers in partitions.items())
    return AssignmentStored(number, tuple(given))


def holding(partitions: Iterable[int]) -> bytes:
    message = ConsumerProtocolAssignment()
    message.assigned_partitions.add(topic="t", partitions=partitions)
    return message.SerializeToString()


def committed(partition: int, offset: int) -> OffsetsCommitted:
    return OffsetsCommitted((OffsetCommitted("t", partition, offset, -1, ""),))


def released(instance: str, member: str) -> InstanceReleased:
    return InstanceReleased(instance, member)


def two_static_members(log: EventLog, group: str = "g") -> None:
    """A group of two static members with two partitions each, stable in generation 1."""
    log.entry(
        group, GroupCreated(), rebalance_started("first join"), joined("a1", "a"), request="r1"
    )
    log.entry(group, joined("b1", "b"), request="r2")
    log.entry(group, generation(1, "a1", "b1"))
    log.entry(group, assigned(1, a1=(0, 1), b1=(2, 3)), request="r3")


def busy_log(groups: int = 3, commits: int = 40) -> EventLog:
    """Several groups that are formed, commit, swap a member and rebalance; with silent entries."""
    log = formed()
    names = [f"g{number}" for number in range(groups)]
    for name in names:
        two_static_members(log, name)
        log.silent_entry()
    for nth in range(commits):
        log.entry(
            names[nth % groups], committed(nth % 4, nth), committed(3, nth), request=f"c{nth}"
        )
    for name in names:
        log.entry(name, released("a", "a1"))
        log.entry(name, swapped("a", "a1", "a2"), request=f"swap-{name}")
    log.entry(names[0], rebalance_started("new member"), joined("d1"), request="r9")
    log.entry(names[0], generation(2, "a2", "b1", "d1"))
    log.entry(names[0], assigned(2, a2=(0,), b1=(1, 2), d1=(3,)), request="r10")
    return log


def eventful_log() -> EventLog:
    """Every way for a member, an instance, an assignment or an offset to come and go."""
    log = EventLog()
    log.entry("", ClusterFormed("c", (SettingChange("group.max_size", "10"),)))
    log.entry("", TopicsCreated((TopicSize("t", 4), TopicSize("u", 1))))
    log.entry("", SettingsChanged("g", (SettingChange("group.max_size", "5"),)))
    _generations_that_lose_members(log)
    _assignments_that_are_wiped(log)
    _two_lives(log)
    log.entry("offsets only", GroupCreated(), committed(0, 5), committed(1, 6), request="c1")
    log.entry("offsets only", OffsetsDeleted((TopicPartition("t", 0), TopicPartition("t", 9))))
    log.entry("offsets only", RequestRecorded("c1", b"digest", b"answer"), request="c1")
    log.entry("", SegmentSealed(Position(3, 0)))
    _members_that_belong_to_somebody(log)
    log.silent_entry()
    return log


def _generations_that_lose_members(log: EventLog) -> None:
    two_static_members(log, "g")
    log.entry("g", rebalance_started("more"), joined("x"), joined("y"), joined("z", "i z"))
    log.entry("g", generation(2, "a1", "b1", "x", "z", removed=("y",)))
    log.entry("g", assigned(2, a1=(0,), b1=(1,), x=(2,)))
    log.entry("g", swapped("i z", "z", "z2", 500), swapped("i z", "z2", "z3"))
    log.entry("g", InstanceReleased("b", "b1"))
    log.entry(
        "g", rebalance_started("gone"), MembersLeft(("x",), "bye"), MemberExpired("b1", "session")
    )
    log.entry("g", joined("b2", "b"))


def _assignments_that_are_wiped(log: EventLog) -> None:
    """K-D10: a join phase opens before the assignment is in; then a swap, which still grants."""
    two_static_members(log, "h")
    log.entry("h", rebalance_started("once more"))
    log.entry("h", generation(2, "a1", "b1"))
    log.entry("h", rebalance_started("and again"))
    log.entry("h", swapped("a", "a1", "a2"))


def _two_lives(log: EventLog) -> None:
    """A group that is deleted, and made anew with the same names."""
    two_static_members(log, "twice")
    log.entry("twice", committed(0, 1), committed(1, 2))
    log.entry("twice", rebalance_started("all go"), MembersRemoved(("a1", "b1"), "operator"))
    log.entry("twice", GroupEmptied(2))
    log.entry("twice", GroupDeleted())
    two_static_members(log, "twice")
    log.entry("twice", committed(1, 7))
    two_static_members(log, "gone")
    log.entry("gone", rebalance_started("all go"), MembersLeft(("a1", "b1"), "bye"))
    log.entry("gone", GroupEmptied(2), GroupDeleted())


def _members_that_belong_to_somebody(log: EventLog) -> None:
    """From level 2 on a member keeps its principal; those that were there before keep none."""
    log.entry("", LevelRaised(2))
    log.entry("", AclsChanged((Acl("p", "admin", "cluster", ""),), ()), AccessModeChanged("deny"))
    log.entry("", RevocationsChanged((Revocation("a1" * 32), Revocation("b2" * 32)), ()))
    log.entry("", RevocationsChanged((), ("b2" * 32,)))
    two_static_members(log, "owned")
    log.entry("h", swapped("a", "a2", "a3"))


Damage = Callable[[list[Row]], list[Row]]


def write_nodes(
    parent: Path, log: EventLog, *, nodes: int = 1, cut_at: tuple[int, ...] = ()
) -> list[Path]:
    """Write the log as sealed segments of nodes `n1`, `n2`, …, cut before the given rows."""
    return [write_node(parent / f"n{n}", f"n{n}", log.rows, cut_at) for n in range(1, nodes + 1)]


def write_node(folder: Path, node: str, rows: list[Row], cut_at: tuple[int, ...] = ()) -> Path:
    edges = [0, *cut_at, len(rows)]
    for start, end in pairwise(edges):
        write_segment(folder / "segments", rows[start:end], "c", node)
    return folder


def position_of(row: Row) -> Position:
    return row.position
