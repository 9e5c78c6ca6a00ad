"""The one token that a member of the classic protocol is told never falls (S13, K-Q)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from holdfast.coordinator.consumer.mixed.told import newest_grant
from holdfast.coordinator.model.consumer_events import (
    EpochRaised,
    MemberAdvanced,
    MemberSubscribed,
    MemberTarget,
    TargetStored,
)
from holdfast.coordinator.model.events import (
    GroupCreated,
    InstanceReleased,
    LevelRaised,
    StaticMemberReplaced,
)
from holdfast.coordinator.model.member_profile import (
    ClassicProfile,
    ConsumerProfile,
    MemberProfile,
    Protocol,
)
from unit.coordinator.consumer.talk import parts
from unit.coordinator.desk import Desk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.coordinator.consumer.state import Member

WANTS: Final = ConsumerProfile("c", "h", None, 60_000, ("a", "z"))
RANGE: Final = (Protocol("range", b"", ("a", "z")),)
CLASSIC: Final = ClassicProfile(30_000, RANGE)
HEARTBEATS: Final = MemberProfile("c", "h", 0, 60_000, ())
JOINS: Final = MemberProfile("c", "h", 30_000, 60_000, RANGE)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    made.happened("", LevelRaised(2))
    made.topics(a=1, z=1)
    yield made
    made.prove()


def owns_both(desk: Desk, classic: ClassicProfile | None) -> None:
    """A group of instance `i`, which is granted a0 by one entry and z0 by a later one."""
    desk.happened(
        "g",
        GroupCreated("consumer"),
        MemberSubscribed("m", "i", WANTS, joined=True, classic=classic),
    )
    for epoch, owned, new in ((2, parts("a0"), "a0"), (3, parts("a0", "z0"), "z0")):
        target = TargetStored(epoch, "range", (MemberTarget("m", owned),))
        desk.happened("g", EpochRaised(epoch, "topics", b"d"), target)
        desk.happened("g", MemberAdvanced("m", epoch, (), (), parts(new), waiting=False))


def takes_back(desk: Desk, member_id: str) -> None:
    """The group takes z0, which was granted last, from its member."""
    target = TargetStored(4, "range", (MemberTarget(member_id, parts("a0")),))
    desk.happened("g", EpochRaised(4, "topics", b"d"), target)
    desk.happened("g", MemberAdvanced(member_id, 3, parts("z0"), (), (), waiting=False))
    desk.happened("g", MemberAdvanced(member_id, 4, (), parts("z0"), (), waiting=False))


def member(desk: Desk, member_id: str) -> Member:
    found: Member = desk.state.groups["g"].body.members[member_id]
    return found


def test_s13_what_is_kept_keeps_the_token_that_was_told_as_the_newest_grant_goes(
    desk: Desk,
) -> None:
    owns_both(desk, CLASSIC)
    told = newest_grant(member(desk, "m"))
    takes_back(desk, "m")

    assert newest_grant(member(desk, "m")) == told


def test_s13_who_returns_with_the_heartbeat_protocol_is_told_no_older_token(desk: Desk) -> None:
    """Its process, which was told one token for both, has released the instance."""
    owns_both(desk, CLASSIC)
    told = newest_grant(member(desk, "m"))
    desk.happened("g", InstanceReleased("i", "m"))
    desk.happened("g", StaticMemberReplaced("i", "m", "n", HEARTBEATS, "", 0))

    assert [each.granted for each in member(desk, "n").owned] == [(told,), (told,)]


@pytest.mark.parametrize("released", [True, False])
def test_s13_an_instance_that_returns_with_the_classic_protocol_is_told_one_token(
    desk: Desk, *, released: bool
) -> None:
    owns_both(desk, None)
    if released:
        desk.happened("g", InstanceReleased("i", "m"))
    desk.happened("g", StaticMemberReplaced("i", "m", "n", JOINS, "", 0))
    told = newest_grant(member(desk, "n"))
    desk.happened("g", MemberAdvanced("n", 3, (), (), (), waiting=False))
    takes_back(desk, "n")

    assert newest_grant(member(desk, "n")) == told


def test_s13_a_member_that_begins_to_speak_the_classic_protocol_is_told_one_token(
    desk: Desk,
) -> None:
    owns_both(desk, None)
    desk.happened("g", MemberSubscribed("m", "i", WANTS, joined=False, classic=CLASSIC))
    told = newest_grant(member(desk, "m"))
    takes_back(desk, "m")

    assert newest_grant(member(desk, "m")) == told


def test_s13_a_member_of_the_heartbeat_protocol_keeps_a_token_for_each_partition(
    desk: Desk,
) -> None:
    owns_both(desk, None)
    (a, z) = member(desk, "m").owned

    assert a.granted < z.granted
