"""What the golden files of schema version 1 hold, written by hand: one of each event.

State records are here too. Never change a value: the files were written from them once, and old
logs must be read for ever. A new schema version gets a module and files of its own.
"""

from __future__ import annotations

from typing import Final

from holdfast.coordinator.classic.state import ClassicBody, Member
from holdfast.coordinator.model.events import (
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
    LogEntry,
    MemberExpired,
    MemberJoined,
    MemberRefused,
    MembersLeft,
    MembersRemoved,
    MemberUpdated,
    OffsetCommitted,
    OffsetsCommitted,
    OffsetsDeleted,
    Part,
    PartitionsAdded,
    Proposed,
    RebalanceStarted,
    Record,
    Rejoin,
    RequestRecorded,
    SegmentSealed,
    SettingChange,
    SettingsChanged,
    StaticMemberReplaced,
    TopicsCreated,
    TopicsDeleted,
    TopicSize,
)
from holdfast.coordinator.model.ids import Position, TopicPartition
from holdfast.coordinator.model.member_profile import MemberProfile, Protocol
from holdfast.coordinator.model.state import Group, Offset, RequestRecord, State
from holdfast.coordinator.projections.history import Change, Move, Parted, Rebalance
from holdfast.coordinator.structures.pmap import PMap
from holdfast.storage.codec.event_codec import StateItem

REQUEST: Final = "01936f2e-7c00-7abc-8def-0123456789ab"
PROTOCOLS: Final = (
    Protocol("sticky", b"\x00\xffmeta", ("documents", "bücher")),
    Protocol("range", b"", ()),
    Protocol("opaque", b"bytes", None),
)

EVENTS: Final[tuple[Event, ...]] = (
    GroupCreated(),
    MemberJoined(
        member_id="indexer-0-a",
        instance_id="indexer-0",
        profile=MemberProfile("indexer", "192.0.2.7", 10_000, 15_000, PROTOCOLS),
        protocol_type="consumer",
        request_id=REQUEST,
    ),
    MemberUpdated(
        member_id="indexer-0-a",
        profile=MemberProfile("indexer", "192.0.2.8", 1_800_000, 2_147_483_647, PROTOCOLS[:1]),
        request_id="",
    ),
    StaticMemberReplaced(
        instance_id="indexer-0",
        old_member_id="indexer-0-a",
        new_member_id="indexer-0-b",
        profile=MemberProfile("indexer", "192.0.2.9", 10_000, 15_000, PROTOCOLS[1:]),
        request_id=REQUEST,
        predecessor_ms=10_000,
    ),
    InstanceReleased(instance_id="indexer-0", member_id="indexer-0-b"),
    RebalanceStarted(
        reason="member indexer-1-c joined",
        member_id="indexer-1-c",
        initial=True,
        timeout_ms=15_000,
    ),
    GenerationStarted(
        generation=7,
        protocol_name="sticky",
        leader="indexer-1-c",
        rejoined=(Rejoin("indexer-1-c", REQUEST), Rejoin("indexer-2-d", "")),
        absent=("indexer-0-b",),
        removed=("guest-e", "guest-f"),
    ),
    GroupEmptied(generation=8),
    AssignmentStored(
        generation=7,
        assignments=(Assigned("indexer-0-b", b"\x00\x01"), Assigned("indexer-1-c", b"")),
    ),
    MembersLeft(member_ids=("guest-e", "guest-f"), reason="closed"),
    MembersRemoved(member_ids=("indexer-0-b",), reason="node retired"),
    MemberExpired(member_id="indexer-1-c", deadline="session"),
    MemberRefused(member_id="guest-e"),
    GroupDeleted(),
    OffsetsCommitted(
        offsets=(
            OffsetCommitted("documents", 3, 9_223_372_036_854_775_807, -1, ""),
            OffsetCommitted("bücher", 0, -1, 5, "nächstes"),
        )
    ),
    OffsetsDeleted(partitions=(TopicPartition("documents", 3), TopicPartition("bücher", 0))),
    RequestRecorded(request_id=REQUEST, digest=bytes(range(32)), answer=b"answer"),
    ClusterFormed(
        cluster_id="c1",
        settings=(SettingChange("group.max_size", "10000"), SettingChange("offset.x", None)),
    ),
    SettingsChanged(group_id="indexers", changes=(SettingChange("group.max_size", ""),)),
    TopicsCreated(topics=(TopicSize("documents", 24),)),
    PartitionsAdded(topics=(TopicSize("documents", 48),)),
    TopicsDeleted(names=("documents", "bücher")),
    SegmentSealed(last=Position(1_048_576, 3)),
)


def entry(event: Event) -> LogEntry:
    """The entry that holds one event, beside a second part without events."""
    proposed = Proposed(event, Cause("B3", "JoinGroup"), "spiffe://example/indexer", REQUEST)
    return LogEntry(
        log_time_ms=1_700_000_000_000,
        wall_time_ms=1_700_000_000_123,
        parts=(
            Part(group_id="indexers", term=5, expected_version=41, events=(proposed,)),
            Part(group_id="", term=5, expected_version=0, events=()),
        ),
    )


def record(event: Event) -> Record:
    """The record that holds one event."""
    return Record(
        position=Position(42, 1),
        group_id="indexers",
        group_seq=9,
        log_time_ms=1_700_000_000_000,
        wall_time_ms=1_700_000_000_123,
        cause=Cause("B3", "JoinGroup"),
        principal="",
        request_id=REQUEST,
        event=event,
    )


STATE: Final[tuple[StateItem, ...]] = (
    StateItem(
        (),
        State(
            cluster_id="c1",
            log_time_ms=1_700_000_000_000,
            applied_index=42,
            cluster_version=40,
            cluster_seq=3,
            recovery_number=1,
            sealed=Position(30, 2),
            requests_next=12,
            requests_floor_ms=1_600_000_000_000,
        ),
    ),
    StateItem(
        ("indexers",),
        Group(
            group_id="indexers",
            group_type="classic",
            body=ClassicBody(
                protocol_type="consumer",
                protocol_name="sticky",
                leader="indexer-1-c",
                rejoined=("indexer-1-c", "indexer-2-d"),
                initial=True,
                round_timeout_ms=15_000,
            ),
            state="Stable",
            generation=7,
            version=42,
            seq=9,
            state_since_ms=1_700_000_000_001,
        ),
    ),
    StateItem(("new",), Group("new", "classic", ClassicBody())),
    StateItem(
        ("indexers", "indexer-0-b"),
        Member(
            member_id="indexer-0-b",
            instance_id="indexer-0",
            profile=MemberProfile("indexer", "192.0.2.9", 10_000, 15_000, PROTOCOLS),
            request_id=REQUEST,
            joined_seq=2,
            since_ms=1_700_000_000_000,
            assignment=b"\x00\x01",
            granted_index=41,
            predecessor_ms=10_000,
            released=True,
            abandoned=b"\x00\x02",
            replaced_requests=(REQUEST,),
        ),
    ),
    StateItem(
        ("indexers", "3"),
        Rebalance(
            number=3,
            reason="joined",
            member_id="indexer-1-c",
            at=Position(40, 0),
            log_time_ms=1_700_000_000_000,
            wall_time_ms=1_700_000_000_123,
            rule="B1",
            command="JoinGroup",
            principal="spiffe://example/indexer",
            instance_id="indexer-1",
            client_id="indexer",
            members=3,
            from_generation=6,
            generation=7,
            closed_ms=1_700_000_000_100,
            assigned_ms=1_700_000_000_200,
            came=1,
            went=2,
            changes=(Change("indexer-1", "joined"), Change("guest-e", "expired")),
            reassigned=2,
            reassigned_names=("indexer-0", "indexer-1"),
            moved=1,
            given=2,
            dropped=3,
            moves=(Move("bücher", 4, "", "indexer-1"), Move("documents", 3, "guest-e", "")),
            counted=True,
            parted=(Parted("guest-e", b"\x00\x03"),),
        ),
    ),
    StateItem(("indexers", "bücher", "0"), Offset(12, -1, "nächstes", 1_700_000_000_000)),
    StateItem(("documents",), TopicSize("documents", 48)),
    StateItem(("",), PMap({"group.max_size": "10000", "a": "", "offset.x": "1"})),
    StateItem(
        ("spiffe://example/indexer", "indexers", REQUEST),
        RequestRecord(bytes(range(32)), b"answer", 1_700_000_000_000, 11, Position(77, 3)),
    ),
)
