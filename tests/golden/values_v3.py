"""What the golden files of schema version 3 hold, written by hand: what level 2 adds.

Until a release has level 2, what is added to it is added here, and the files of version 3 are
written anew; from then on they never change, as those of `values_v1`.
"""

from __future__ import annotations

from typing import Final

from holdfast.coordinator.classic.state import Member
from holdfast.coordinator.model.access import Acl, Revocation
from holdfast.coordinator.model.events import (
    AccessModeChanged,
    AclsChanged,
    BackupVerified,
    Event,
    HistoryCut,
    LevelRaised,
    RecoveryNumberRaised,
    RevocationsChanged,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.member_profile import MemberProfile
from holdfast.coordinator.model.state import State
from holdfast.storage.codec.event_codec import StateItem

READER = Acl("svc-a", "reader", "group", "orders*")
RULER = Acl("admin-1", "admin", "cluster", "")
STOLEN = Revocation("a1" * 32, "svc-a", 1_800_000_000_000, "stolen", 1_700_000_000_000)

CUT = HistoryCut(last=Position(20, 1), log_time_ms=1_650_000_000_000, digest=bytes(range(40)))

EVENTS: Final[tuple[Event, ...]] = (
    LevelRaised(level=2),
    AclsChanged(granted=(RULER, READER), revoked=(Acl("*", "member", "topic", "*"),)),
    AccessModeChanged(mode="dry-run"),
    RevocationsChanged(revoked=(STOLEN,), lifted=("00" * 32, "ff" * 32)),
    RecoveryNumberRaised(number=3, kept=1_048_576),
    CUT,
    BackupVerified(index=30),
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
        ),
    ),
)
