"""Events that cannot be true are refused (S6), and the table of events tells what the fold does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.members import contradictions
from holdfast.coordinator.kernel.evolve import evolve
from holdfast.coordinator.model.consumer_events import (
    EpochRaised,
    MemberAdvanced,
    MemberSubscribed,
    MemberTarget,
    RegexResolved,
    TargetStored,
)
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    Cause,
    Event,
    GroupCreated,
    GroupDeleted,
    InstanceReleased,
    LevelRaised,
    MembersLeft,
    Record,
    StaticMemberReplaced,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.member_profile import ConsumerProfile, MemberProfile
from holdfast.coordinator.model.membership import TABLE, Line
from holdfast.coordinator.model.state import State
from unit.coordinator.consumer.talk import parts
from unit.coordinator.desk import Desk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.coordinator.consumer.state import Member

WANTS = ConsumerProfile("c", "h", None, 60_000, ("t",), "fo+", "range")
NEXT = MemberProfile("c2", "h2", 0, 5_000, ())


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A group at epoch 3: `a` owns t0 and t1, `b` is instance `i` and waits for t1."""
    made = Desk()
    made.happened("", LevelRaised(2))
    made.topics(t=2)
    made.happened(
        "g",
        GroupCreated("consumer"),
        MemberSubscribed("a", None, WANTS, joined=True),
        EpochRaised(2, "joined", b"d"),
        TargetStored(2, "range", (MemberTarget("a", parts("t0", "t1")),)),
        MemberAdvanced("a", 2, (), (), parts("t0", "t1"), waiting=False),
        MemberSubscribed("b", "i", WANTS, joined=True),
        EpochRaised(3, "joined", b"d"),
        TargetStored(3, "range", (MemberTarget("a", parts("t0")), MemberTarget("b", parts("t1")))),
        MemberAdvanced("b", 3, (), (), (), waiting=True),
    )
    yield made
    made.prove()


def member(desk: Desk, member_id: str) -> Member:
    found: Member = desk.state.groups["g"].body.members[member_id]
    return found


GIVEN_UP = MemberAdvanced("a", 3, (), parts("t1"), (), waiting=False)
TAKEN = MemberAdvanced("b", 3, (), (), parts("t1"), waiting=False)


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        (TAKEN, "O8"),  # it still belongs to a
        (MemberAdvanced("b", 3, (), parts("t1"), (), waiting=True), "O8"),
        (MemberAdvanced("b", 3, parts("t1"), (), (), waiting=True), "O15"),
        (MemberAdvanced("x", 3, (), (), (), waiting=False), "S6"),
        (MemberSubscribed("a", None, WANTS, joined=True), "S6"),
        (MemberSubscribed("x", None, WANTS, joined=False), "S6"),
        (MemberSubscribed("x", "i", WANTS, joined=True), "C15"),
        (MemberSubscribed("b", "j", WANTS, joined=False), "H4"),
        (EpochRaised(3, "left", b""), "A25"),
        (EpochRaised(5, "left", b""), "A25"),
        (TargetStored(3, "range", ()), "M5"),
        (TargetStored(4, "range", ()), "M5"),
        (RegexResolved("other", (), 0), "P3"),
        (StaticMemberReplaced("i", "b", "a", NEXT, "", 0), "C14"),
        (StaticMemberReplaced("j", "b", "b2", NEXT, "", 0), "C14"),
        (MembersLeft(("x",), ""), "S6"),
        (GroupDeleted(), "transitions"),
        (GroupCreated("consumer"), "transitions"),
    ],
)
def test_s6_an_event_that_cannot_be_true_is_refused(event: Event, rule: str, desk: Desk) -> None:
    seq = desk.state.groups["g"].seq + 1
    record = Record(Position(99, 0), "g", seq, 0, 0, Cause("t", "t"), "", "", event)
    with pytest.raises(InvariantBroken) as broken:
        evolve(desk.state, record)

    assert broken.value.rule == rule


def test_s13_what_is_kept_keeps_its_token_and_its_epoch(desk: Desk) -> None:
    (held,) = member(desk, "a").owned
    desk.happened("g", GIVEN_UP)

    (kept,) = member(desk, "a").owned
    assert (kept.partitions, kept.epochs, kept.granted) == ((0,), (2,), (held.granted[0],))


def test_s13_a_return_after_a_release_keeps_the_token(desk: Desk) -> None:
    """K-N6: the old process has said itself that it stopped."""
    desk.happened("g", GIVEN_UP, TAKEN)
    before = member(desk, "b").owned[0].granted
    desk.happened("g", InstanceReleased("i", "b"))
    desk.happened("g", StaticMemberReplaced("i", "b", "b2", NEXT, "", 0))

    assert member(desk, "b2").owned[0].granted == before
    assert member(desk, "b2").profile.rebalance_timeout_ms == 5_000


def test_s13_a_swap_without_a_release_gives_new_tokens(desk: Desk) -> None:
    """The old process may still run, and only the token excludes it (S12)."""
    desk.happened("g", GIVEN_UP, TAKEN)
    desk.happened("g", StaticMemberReplaced("i", "b", "b2", NEXT, "", 45_000))

    assert member(desk, "b2").owned[0].granted == (desk.index,)
    assert member(desk, "b2").predecessor_ms == 45_000


def test_what_a_member_owned_is_free_when_it_goes(desk: Desk) -> None:
    """K-M21: also what it was asked to give up."""
    desk.happened("g", MemberAdvanced("a", 2, parts("t1"), (), (), waiting=False))
    desk.happened("g", MembersLeft(("a",), ""), EpochRaised(4, "left", b"d"))

    assert dict(desk.state.groups["g"].body.owners) == {}
    desk.happened("g", TargetStored(4, "range", (MemberTarget("b", parts("t0", "t1")),)))
    desk.happened("g", MemberAdvanced("b", 4, (), (), parts("t0", "t1"), waiting=False))


def test_p7_an_expression_is_forgotten_with_its_last_user(desk: Desk) -> None:
    desk.happened("g", RegexResolved("fo+", ("foo",), 1))
    desk.happened("g", MembersLeft(("a",), ""))
    assert "fo+" in desk.state.groups["g"].body.regexes
    desk.happened("g", MembersLeft(("b",), ""))

    assert dict(desk.state.groups["g"].body.regexes) == {}


STORY = (
    GIVEN_UP,
    TAKEN,
    MemberSubscribed("a", None, WANTS._replace(rack_id="r"), joined=False),
    InstanceReleased("i", "b"),
    StaticMemberReplaced("i", "b", "b2", NEXT, "", 0),
    MemberSubscribed("c", None, WANTS, joined=True),
    MembersLeft(("a",), ""),
)


def test_the_table_of_events_tells_what_the_fold_does(desk: Desk) -> None:
    for event in STORY:
        desk.happened("g", event)

    assert contradictions(State(), desk.records) == []


@pytest.mark.parametrize("event", sorted({*map(type, STORY)}, key=str))
def test_a_line_that_tells_nothing_contradicts_the_fold(
    event: type, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in STORY:
        desk.happened("g", each)
    monkeypatch.setitem(TABLE, event, Line())

    assert contradictions(State(), desk.records) != []
