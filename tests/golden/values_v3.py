"""What the golden files of schema version 3 hold, written by hand: what level 2 adds.

Until a release has level 2, what is added to it is added here, and the files of version 3 are
written anew; from then on they never change, as those of `values_v1`.
"""

from __future__ import annotations

from typing import Final

from holdfast.coordinator.classic.state import Member
from holdfast.coordinator.consumer.state import Asked, ConsumerBody, Holding
from holdfast.coordinator.consumer.state import Member as ConsumerMember
from holdfast.coordinator.model.access import Acl, Revocation
from holdfast.coordinator.model.consumer_events import (
    AssignmentRequested,
    ConvertedMember,
    EpochRaised,
    GroupConverted,
    MemberAdvanced,
    MemberSubscribed,
    MemberTarget,
    RegexResolved,
    ResolvedRegex,
    TargetStored,
)
from holdfast.coordinator.model.events import (
    AccessModeChanged,
    AclsChanged,
    BackupVerified,
    Event,
    GroupCreated,
    HistoryCut,
    InstanceReleased,
    LevelRaised,
    RecoveryNumberRaised,
    RevocationsChanged,
    TopicSize,
)
from holdfast.coordinator.model.ids import Position, TopicPartitions
from holdfast.coordinator.model.member_profile import (
    ClassicProfile,
    ClientAssignor,
    ConsumerProfile,
    MemberProfile,
    Protocol,
)
from holdfast.coordinator.model.state import Group, State
from holdfast.coordinator.projections.history import Rebalance
from holdfast.storage.codec.event_codec import StateItem

READER = Acl("svc-a", "reader", "group", "orders*")
RULER = Acl("admin-1", "admin", "cluster", "")
STOLEN = Revocation("a1" * 32, "svc-a", 1_800_000_000_000, "stolen", 1_700_000_000_000)

CUT = HistoryCut(last=Position(20, 1), log_time_ms=1_650_000_000_000, digest=bytes(range(40)))

SUBSCRIBED = ConsumerProfile(
    client_id="client",
    client_host="/127.0.0.1",
    rack_id="rack-1",
    rebalance_timeout_ms=60_000,
    topics=("a", "b"),
    regex="foo-.*",
    server_assignor="range",
    client_assignors=(ClientAssignor("own", 1, 300, 7, 2, b"\x00\xff"),),
)
SPOKEN = ClassicProfile(
    session_timeout_ms=45_000,
    protocols=(Protocol("range", b"\x01\xff", ("a", "b")), Protocol("sticky", b"", None)),
    request_id="r-1",
)
LIFE = "01900000-0000-7000-8000-000000000001"
OF_A, OF_B = TopicPartitions("a", (0, 300)), TopicPartitions("b", (1,))

EVENTS: Final[tuple[Event, ...]] = (
    LevelRaised(level=2),
    AclsChanged(granted=(RULER, READER), revoked=(Acl("*", "member", "topic", "*"),)),
    AccessModeChanged(mode="dry-run"),
    RevocationsChanged(revoked=(STOLEN,), lifted=("00" * 32, "ff" * 32)),
    RecoveryNumberRaised(number=3, kept=1_048_576),
    CUT,
    BackupVerified(index=30),
    GroupCreated(group_type="consumer"),
    MemberSubscribed(
        "m-1",
        "i-1",
        SUBSCRIBED,
        joined=True,
        classic=SPOKEN,
        life=LIFE,
        beat=300,
        session_timeout_ms=45_000,
    ),
    InstanceReleased("i-1", "m-1", beat=301, absence_ms=600_000),
    EpochRaised(epoch=7, cause="removed", digest=bytes(range(16)), predecessor_ms=45_000),
    RegexResolved(regex="foo-.*", topics=("foo-1", "foo-2"), newest_index=17),
    AssignmentRequested(
        member_id="m-1", epoch=7, assignor="own", late="m-2", problem="out of memory"
    ),
    TargetStored(
        epoch=7,
        assignor="own",
        targets=(
            MemberTarget("m-1", (OF_A, OF_B), version=300, metadata=b"\xff"),
            MemberTarget("m-2", ()),
        ),
        installed_by="m-1",
        passed_over="other",
    ),
    MemberAdvanced(
        member_id="m-1",
        epoch=7,
        asked_back=(TopicPartitions("c", (0,)),),
        freed=(OF_B,),
        granted=(OF_A,),
        waiting=True,
        beat=302,
    ),
    GroupConverted(
        group_type="classic",
        generation=9,
        members=(ConvertedMember("m-1", ("a", "b"), (OF_A, OF_B)), ConvertedMember("m-2", (), ())),
        protocol_name="range",
        leader="m-1",
    ),
)

STATE: Final = (
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
            raised_to=2,
            recovered_at=41,
            access_mode="deny",
            history_cut=CUT,
            backed_up=30,
        ),
    ),
    StateItem(("svc-a", "reader", "group", "orders*"), READER),
    StateItem(("admin-1", "admin", "cluster", ""), RULER),
    StateItem(("a1" * 32,), STOLEN),
    StateItem(
        ("g", "m-1"),
        Member(
            member_id="m-1",
            instance_id="i-1",
            profile=MemberProfile("client", "/127.0.0.1", 30_000, 60_000, ()),
            request_id="",
            joined_seq=2,
            since_ms=1_700_000_000_000,
            principal="svc-a",
            replaced_life=LIFE,
        ),
    ),
    StateItem(("a",), TopicSize("a", 301, created_index=17)),
    StateItem(
        ("h",),
        Group(
            "h",
            "consumer",
            ConsumerBody(
                assignment_epoch=6,
                target_ms=1_700_000_000_000,
                digest=bytes(range(16)),
                predecessors_until_ms=1_700_000_045_000,
                regexes_ms=1_700_000_000_000,
                regexes_index=17,
                client_assignor="own",
                asked=Asked("m-1", 7, "own", overtaken=True),
                late=("m-2", "m-1"),
            ),
            state="",  # never stored: it follows from the members
            generation=7,
            version=41,
            seq=12,
            state_since_ms=1_700_000_000_000,
        ),
    ),
    StateItem(
        ("h", "m-1"),
        ConsumerMember(
            member_id="m-1",
            instance_id="i-1",
            profile=SUBSCRIBED,
            joined_seq=2,
            since_ms=1_700_000_000_000,
            epoch=-2,
            previous_epoch=6,
            owned=(Holding("a", (0, 300), (2, 6), (17, 1_048_576)),),
            revoking=(Holding("b", (1,), (2,), (17,)),),
            waiting=True,
            predecessor_ms=45_000,
            principal="svc-a",
            life=LIFE,
            beat=302,
            session_timeout_ms=45_000,
            unhurried_until_ms=1_700_000_300_000,
            absence_ms=600_000,
        ),
    ),
    StateItem(
        ("h", "m-2"),
        ConsumerMember(
            member_id="m-2",
            instance_id=None,
            profile=SUBSCRIBED,
            joined_seq=3,
            since_ms=1_700_000_000_000,
            epoch=7,
            classic=SPOKEN,
            replaced_requests=("r-0", "r-2"),
            replaced_life=LIFE,
        ),
    ),
    StateItem(("h", "m-1"), MemberTarget("m-1", (OF_A, OF_B))),
    StateItem(("h", "m-2"), MemberTarget("m-2", (), version=300, metadata=b"\xff")),
    StateItem(("h", "foo-.*"), ResolvedRegex("foo-.*", ("foo-1", "foo-2"))),
    StateItem(
        ("h", "6"),
        Rebalance(
            6,
            "joined",
            "m-2",
            Position(40, 0),
            1_700_000_000_000,
            on_the_way=300,
            relieved=2,
            problem="m-1: no",
        ),
    ),
)
