"""What the chosen member is given, and which targets are taken from it (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.coordinator.kernel.queries import prepare_assignment
from holdfast.coordinator.model.commands import Caller, JoinGroup
from holdfast.coordinator.model.consumer_events import AssignmentRequested, MemberTarget
from holdfast.coordinator.model.described import PreparedAssignment, PreparedMember
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.rejections import (
    GroupIdNotFound,
    InvalidRequest,
    NotChosen,
    StaleAssignment,
    StaleMemberEpoch,
    UnknownMemberId,
)
from holdfast.coordinator.model.replies import AssignedMetadata
from unit.coordinator.cluster.test_requests import uuid7
from unit.coordinator.consumer.client_side.computing_members import Computing, assignor
from unit.coordinator.consumer.talk import GROUP, parts

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def talk() -> Iterator[Computing]:
    """Two members, of which `a` is the chosen one, at group epoch 3; whatever happens replays."""
    made = Computing(t=4, u=2)
    made.send(made.comes("a", topics=("t", "u")))
    made.send(made.comes("b"))
    assert (made.chosen, made.group.generation) == ("a", 3)
    yield made
    made.core.check_replays()


def test_the_chosen_member_is_given_members_targets_and_topics(talk: Computing) -> None:
    """KIP-848: all that the assignor needs; it looks at nothing else."""
    assert talk.prepares("a") == PreparedAssignment(
        3,
        "own",
        0,
        (
            PreparedMember("a", 1, None, None, ("t", "u"), assignor(), ()),
            PreparedMember("b", 1, None, None, ("t",), assignor(), ()),
        ),
        (("t", 4), ("u", 2)),
        frozenset("tu"),
    )


def test_topics_are_listed_once_for_all_that_want_the_same(talk: Computing) -> None:
    """A thousand members of one expression may want a thousand topics each."""
    talk.send(talk.comes("c", topics=("t", "u")))
    found = talk.prepares("a")

    assert isinstance(found, PreparedAssignment)
    one, other, third = found.members
    assert one.topics is third.topics
    assert other.topics == ("t",)


def test_a_classic_group_is_no_group_for_either_call() -> None:
    """KIP-848: the group is looked at first; of another type, it is not there (K-M30)."""
    made = Computing(t=4)
    fields = (GROUP, "", "i1", 10_000, 10_000, "test", (Protocol("range", b""),), "m1")
    made.send(JoinGroup(made.caller(), *fields))
    assert made.group.group_type == "classic"
    found = prepare_assignment(made.core.state, GROUP, "m1", 1, "")

    assert found == made.hands_in("m1", (), epoch=1) == GroupIdNotFound(GROUP)


def test_both_calls_are_checked_in_the_order_of_kip_848(talk: Computing) -> None:
    """Group, member, epoch, choice; of a group that there is not, the story tells."""
    assert talk.prepares("x", 1) == talk.installs("x", epoch=1) == UnknownMemberId("x")
    assert talk.prepares("b", 9) == talk.installs("b", epoch=9) == StaleMemberEpoch(9, 1)
    assert talk.prepares("b") == talk.installs("b") == NotChosen("b", "a")


@pytest.mark.parametrize(
    ("owned", "problem"),
    [
        ({"a": "t0", "x": "t1"}, "'x' is no member"),
        ({"a": "t0", "b": "t0"}, "named twice"),
        ({"a": "t0 t0"}, "named twice"),
        ({"b": "u0"}, "does not subscribe to 'u'"),
        ({"a": "v0"}, "does not subscribe to 'v'"),
        ({"a": "t4"}, "0 to 3"),
        ({"a": "t-1"}, "0 to 3"),
    ],
)
def test_a_target_that_is_not_true_changes_nothing(
    talk: Computing, owned: dict[str, str], problem: str
) -> None:
    """KIP-848: strangers, doubled and unsubscribed partitions; the member may try again."""
    before = talk.group
    targets = tuple(MemberTarget(who, tuple(_written(some.split()))) for who, some in owned.items())
    error = talk.hands_in("a", targets)

    assert isinstance(error, InvalidRequest)
    assert error.field == "members"
    assert problem in error.problem
    assert talk.group == before
    assert talk.installs("a", a="t0 u0", b="t1") is None


def _written(places: list[str]) -> Iterator[TopicPartitions]:
    found: dict[str, list[int]] = {}
    for place in places:
        found.setdefault(place[0], []).append(int(place[1:]))
    for topic, numbers in found.items():
        yield TopicPartitions(topic, tuple(sorted(numbers)))


def test_a_member_that_is_named_twice_is_refused(talk: Computing) -> None:
    """Which of the two would count is not said."""
    twice = (MemberTarget("a", parts("t0")), MemberTarget("a", parts("t1")))

    error = talk.hands_in("a", twice)

    assert isinstance(error, InvalidRequest)
    assert "named twice" in error.problem


def test_a_target_of_an_older_epoch_is_refused_whatever_it_says(talk: Computing) -> None:
    """KIP-848: the group has changed since it was prepared."""
    assert talk.installs("a", at=2, a="t0", x="t1") == StaleAssignment(2, 3)
    assert isinstance(talk.installs("a", at=4, a="t0"), InvalidRequest)


def test_topics_that_changed_unseen_make_a_target_stale(talk: Computing) -> None:
    """K-M27: nobody may have looked at them; the epoch rises, and the next beat asks anew."""
    talk.grow(t=5)
    assert talk.installs("a", a="t0 t1 t2 t3") == StaleAssignment(3, 4)
    assert talk.beats("a")
    assert talk.installs("a", a="t0 t1 t2 t3 t4") is None


def test_a_lost_answer_is_answered_alike_by_its_request_id(talk: Computing) -> None:
    """S15: also when somebody else was chosen since, and when another target is in force."""
    request = uuid7(1, 7)

    def once_more() -> object:
        caller = Caller(talk.caller().call, request_id=request, digest=b"body")
        return talk.installs("a", epoch=1, at=3, caller=caller, a="t0 t1", b="t2 t3")

    assert once_more() is None
    epoch, log = talk.group.body.assignment_epoch, len(talk.core.log)
    assert once_more() is None
    talk.beats("b", client_assignors=(assignor(reason=1),))
    talk.core.fail_over()
    assert once_more() is None
    assert (epoch, talk.group.body.assignment_epoch) == (3, 3)
    assert len(talk.core.log) > log, "the heartbeat alone has left something"


def test_without_a_request_id_a_repetition_is_of_one_who_is_not_chosen_any_more(
    talk: Computing,
) -> None:
    """KIP-848: with the target the choice is over."""
    assert talk.installs("a", a="t0") is None
    assert talk.installs("a", a="t0") == NotChosen("a", "")


def test_metadata_reaches_each_member_at_the_targets_epoch_and_after_a_lost_answer(
    talk: Computing,
) -> None:
    """KIP-848: Assignment.Metadata; and it is on the log."""
    said = (MemberTarget("a", parts("t0"), 0, b"for a"), MemberTarget("b", parts("t1"), 0, b"b's"))
    assert talk.hands_in("a", said) is None
    talk.core.fail_over()
    answer = talk.told(talk.says("a", 1))
    assert answer.assigned == AssignedMetadata("own", 0, b"for a")
    again = {"topics": ("t", "u"), "rebalance_timeout_ms": 60_000, "owned": ()}
    assert talk.told(talk.says("a", 1, **again)).assigned == answer.assigned
    assert talk.told(talk.says("a", 3)).assigned is None
    assert talk.told(talk.says("b", 1)).assigned == AssignedMetadata("own", 0, b"b's")


def test_a_target_of_the_service_takes_metadata_away(talk: Computing) -> None:
    """A member joins without the assignor: nothing is said to anybody any more."""
    talk.hands_in("a", (MemberTarget("a", parts("t0"), 0, b"for a"),))
    talk.beats("a")
    talk.send(talk.joins("c", "t"))

    assert all(not each.metadata for each in talk.group.body.targets.values())
    owned = parts("t0") if talk.group.body.targets["a"].partitions == parts("t0") else ()
    answer = talk.told(talk.says("a", 3, owned=owned))
    assert answer.member_epoch == 4
    assert answer.assigned == AssignedMetadata("")


def test_metadata_in_a_version_that_its_member_does_not_understand_is_refused(
    talk: Computing,
) -> None:
    """KIP-848: versions are negotiated so that all can read what is said to them."""
    error = talk.hands_in("a", (MemberTarget("b", parts("t0"), 1, b"new"),))

    assert isinstance(error, InvalidRequest)
    assert "does not understand version 1" in error.problem


def test_s7_a_target_that_no_entry_could_hold_is_refused(talk: Computing) -> None:
    """S7: metadata counts like partitions, over all members."""
    talk.set(max_size="3", assignment_bytes_max="100")
    most = 3 * (100 + 360)
    error = talk.hands_in("a", (MemberTarget("a", parts("t0"), 0, b"x" * most),))

    assert isinstance(error, InvalidRequest)
    assert f"allowed are {most}" in error.problem
    assert talk.hands_in("a", (MemberTarget("a", parts("t0"), 0, b"x" * (most // 2)),)) is None


def test_a_static_member_that_swapped_its_process_makes_a_target_stale_and_not_wrong() -> None:
    """S12: a swap raises no epoch; the chosen member could not know, and prepares again."""
    talk = Computing(t=4)
    lives: list[dict[str, Any]] = [{"life": f"life-{number}", "beat": 1} for number in (1, 2)]
    talk.send(talk.comes("b"))
    talk.send(talk.comes("s", instance_id="i1", **lives[0]))
    assert talk.chosen == "b"
    talk.send(talk.comes("s2", instance_id="i1", **lives[1]))
    assert talk.group.generation == 3

    assert talk.installs("b", b="t0", s="t1") == StaleAssignment(3, 3)
    assert isinstance(talk.installs("b", b="t0", s2="t9"), StaleAssignment)
    assert talk.installs("b", b="t0", s2="t1") is None
    talk.core.check_replays()


def test_the_choice_is_one_event_an_epoch(talk: Computing) -> None:
    """Heartbeats while a member computes leave nothing on the log."""
    log = len(talk.core.log)
    for _ in range(3):
        talk.beats("a")
        talk.beats("b")

    assert len(talk.core.log) == log
    every = (record.event for applied in talk.core.log for record in applied.records)
    assert len([each for each in every if isinstance(each, AssignmentRequested)]) == 2


def test_s7_members_that_a_target_does_not_name_are_written_and_count_too() -> None:
    """S7: their targets are emptied by the same event; 5 members with 249 bytes of id each."""
    talk = Computing(t=5)
    names = [f"{number}".rjust(249, "m") for number in range(5)]
    for name in names:
        talk.send(talk.comes(name))
    owned = tuple(MemberTarget(name, parts(f"t{at}")) for at, name in enumerate(names))
    assert talk.hands_in(names[0], owned) is None
    talk.beats(names[0])
    talk.set(max_size="5", assignment_bytes_max="16")
    talk.send(
        talk.says(names[0], talk.member(names[0]).epoch, client_assignors=(assignor(reason=1),))
    )

    most = 5 * (16 + 360)
    large = (MemberTarget(names[0], (), 0, bytes(most - 300)),)
    assert isinstance(talk.hands_in(names[0], large), InvalidRequest)
    assert talk.hands_in(names[0], (MemberTarget(names[0], (), 0, bytes(300)),)) is None
