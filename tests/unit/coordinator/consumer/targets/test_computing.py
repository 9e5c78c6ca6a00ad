"""Targets that are computed beside the group's work: when, and what is made of the result (K-M20).

The core's harness computes them 7 ms after they were asked for, as time passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from holdfast.coordinator.consumer.targets.computing import TRIES_MAX
from holdfast.coordinator.model.commands import (
    AlterSettings,
    CreatePartitions,
    CreateTopics,
    DeleteGroup,
    DeleteTopics,
    LeaveGroup,
    LeavingMember,
)
from holdfast.coordinator.model.consumer_events import (
    EpochRaised,
    MemberAdvanced,
    MemberTarget,
    TargetStored,
)
from holdfast.coordinator.model.effects import ComputeTarget, InstallTarget
from holdfast.coordinator.model.events import SettingChange, TopicSize
from holdfast.storage.codec.event_codec import encode_part
from unit.coordinator.consumer.talk import Talk, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.coordinator.model.commands import Command
    from holdfast.coordinator.model.events import Event

SMALL_ENTRY: Final = (
    SettingChange("log.entry_bytes_max", str(64 * 1024)),
    SettingChange("group.max_size", "10"),
    SettingChange("group.metadata_bytes_max", "600"),
    SettingChange("group.assignment_bytes_max", "5900"),
)


@pytest.fixture
def talk() -> Iterator[Talk]:
    """A topic of four partitions, and groups whose targets are all computed beside their work."""
    made = Talk(t=4)
    made.set(consumer_inline_work="0")
    yield made
    made.core.check_replays()


def asked(talk: Talk, *commands: Command) -> list[int]:
    """The epochs for which a batch has a target computed."""
    effects = talk.decide(*commands).effects
    return [each.epoch for each in effects if isinstance(each, ComputeTarget)]


def installs(talk: Talk, **owned: tuple[str, ...]) -> tuple[Event, ...]:
    """What comes of a result for the epoch that was asked for."""
    _, group_id, effect = talk.core.uncomputed.popleft()
    targets = tuple(MemberTarget(name, parts(*some)) for name, some in owned.items())
    return talk.send(InstallTarget(group_id, effect.epoch, effect.assignor, targets))


def kinds(events: tuple[Event, ...]) -> list[type]:
    return [type(each) for each in events]


def beat(talk: Talk, member_id: str) -> int:
    """A plain beat; how many partitions its answer assigns."""
    reply = talk.told(talk.says(member_id, talk.member(member_id).epoch))
    return len(reply.assignment or ())


def owned(talk: Talk, member_id: str) -> int:
    return sum(len(each.partitions) for each in talk.member(member_id).owned)


# --- when ---


def test_a_small_group_has_its_target_at_once() -> None:
    """K-M20: as in Kafka; by the default a group of 12,000 members and partitions is small."""
    talk = Talk(t=4)
    assert len(talk.told(talk.joins("a", "t")).assignment or ()) == 4


@pytest.mark.parametrize(("work", "late"), [(5, False), (4, True)])
def test_members_and_partitions_count_together(*, work: int, late: bool) -> None:
    """One member and four partitions are a work of 5."""
    talk = Talk(t=4, other=9)
    talk.set(consumer_inline_work=str(work))
    assert bool(asked(talk, talk.joins("a", "t"))) == late


def test_members_are_answered_meanwhile_and_get_partitions_when_the_target_is_there(
    talk: Talk,
) -> None:
    """K-M20: the group is Assigning, and a beat is answered by the target in force."""
    joined = talk.told(talk.joins("a", "t"))
    waiting = talk.group.state
    nothing = beat(talk, "a")
    stored = talk.core.advance(7)

    assert (joined.error, joined.assignment, waiting, nothing) == (None, (), "Assigning", 0)
    assert kinds(stored) == [TargetStored]
    assert beat(talk, "a") == 4
    assert talk.group.state == "Stable"


def test_one_target_is_asked_for_by_a_batch_and_none_while_one_is_under_way(talk: Talk) -> None:
    """K-M20: for the epoch that the whole batch has raised."""
    assert asked(talk, *(talk.joins(name, "t") for name in "abc")) == [4]
    talk.send(talk.joins("a", "t"))

    assert asked(talk, talk.joins("b", "t"), talk.says("a", 1), talk.joins("c", "t")) == []


def test_joins_meanwhile_share_one_further_target(talk: Talk) -> None:
    """K-M20: the first is overtaken and dropped, and one follows for all of them."""
    for name in "abcde":
        talk.send(talk.joins(name, "t"))
    assert len(talk.core.uncomputed) == 1
    events = talk.core.advance(7)
    again = [each.epoch for _, _, each in talk.core.uncomputed]
    stored = talk.core.advance(7)

    assert events == ()
    assert again == [6]
    assert kinds(stored) == [TargetStored]
    assert sum(beat(talk, name) for name in "abcde") == 4


def test_p15_a_result_that_is_overtaken_within_the_pause_waits_for_its_end(talk: Talk) -> None:
    """K-P15: two targets are not closer to each other than the group's setting says."""
    talk.set(consumer_max_assignment_interval_ms="1000", consumer_assignment_interval_ms="1000")
    talk.send(talk.joins("a", "t"))
    talk.core.advance(7)
    talk.send(talk.joins("b", "t"))
    early = len(talk.core.uncomputed)
    talk.core.advance(1_000)
    talk.told(talk.says("b", talk.member("b").epoch))

    assert early == 0
    assert len(talk.core.uncomputed) == 1


# --- nothing waits for ever ---


def test_inv_16_a_target_that_never_comes_is_asked_for_again(talk: Talk) -> None:
    """INV-16: the node that was asked may have dropped it."""
    talk.send(talk.joins("a", "t"))
    talk.core.uncomputed.clear()
    talk.core.now_ms += 60_000
    assert asked(talk, talk.says("a", 1)) == []
    talk.core.now_ms += 1
    assert asked(talk, talk.says("a", 1)) == [2]


def test_inv_16_a_group_that_overtakes_each_target_gets_one_at_once_in_the_end(talk: Talk) -> None:
    """INV-16: somebody joins before each is there, for ever."""
    talk.send(talk.joins("m", "t"))
    for number in range(TRIES_MAX):
        assert talk.group.body.assignment_epoch == 1
        talk.send(talk.joins(f"m{number}", "t"))
        talk.core.advance(7)

    assert talk.group.body.assignment_epoch == talk.group.generation
    talk.send(talk.joins("later", "t"))
    assert talk.group.state == "Assigning", "the next one is computed beside the work again"


def test_s16_a_new_leader_asks_anew(talk: Talk) -> None:
    """S16: what the old one had asked for is gone with it."""
    talk.send(talk.joins("a", "t"))
    talk.core.fail_over()
    assert asked(talk, talk.says("a", 1)) == [2]


def test_a_group_that_became_empty_asks_for_none(talk: Talk) -> None:
    """K-P17: who joins next does."""
    talk.send(talk.joins("a", "t"))
    talk.send(talk.says("a", -1))

    assert talk.core.advance(7) == ()
    assert talk.core.uncomputed == type(talk.core.uncomputed)()
    assert asked(talk, talk.joins("b", "t")) == [4]


# --- what is made of the result ---


def test_a_result_that_nobody_asked_for_is_passed_over(talk: Talk) -> None:
    """S1: as one of another leadership."""
    talk.send(talk.joins("a", "t"))
    (_, _, effect) = talk.core.uncomputed[0]
    late = InstallTarget("g", effect.epoch, "uniform", (MemberTarget("a", parts("t0")),))
    talk.core.fail_over()

    assert talk.send(late) == ()
    assert talk.send(InstallTarget("nowhere", 2, "uniform", ())) == ()


def test_s2_a_result_for_a_group_of_the_same_name_before_is_passed_over(talk: Talk) -> None:
    """S2: it has the same epoch and the same member, and a member more."""
    talk.send(talk.joins("a", "t"))
    (_, _, effect) = talk.core.uncomputed.popleft()
    old = InstallTarget("g", effect.epoch, "uniform", (MemberTarget("a", parts("t0")),))
    leaves = LeaveGroup(talk.caller(), "g", (LeavingMember("a", None),))
    for command in (leaves, DeleteGroup(talk.caller(), "g")):
        talk.send(command)
    assert "g" not in talk.core.state.groups
    talk.set(consumer_inline_work="100")
    talk.send(talk.joins("a", "t"))

    assert talk.send(old) == ()


def test_a_result_is_stored_with_what_is_new_in_it(talk: Talk) -> None:
    """K-M20: who is not named is to own nothing."""
    talk.send(talk.joins("a", "t"))
    talk.core.advance(7)
    talk.send(talk.joins("b", "t"))
    (stored,) = installs(talk, b=("t0", "t1", "t2", "t3"))

    assert stored == TargetStored(
        3,
        "uniform",
        (MemberTarget("a", ()), MemberTarget("b", parts("t0", "t1", "t2", "t3"))),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"a": ("t0",), "stranger": ("t1",)},
        {"a": ("t0", "t1"), "b": ("t1", "t2")},
        {"a": ("t0", "t0")},
        {"a": ("t4",)},
        {"a": ("other0",)},
        {"a": ("none0",)},
    ],
    ids=["stranger", "two owners", "twice", "no such partition", "not wanted", "no such topic"],
)
def test_o15_a_target_that_is_not_true_of_the_group_is_computed_again(
    talk: Talk, wrong: dict[str, tuple[str, ...]]
) -> None:
    """K-O15, S6: a partition has one owner, who wants it."""
    talk.send(talk.joins("a", "t"))
    talk.core.uncomputed.clear()
    talk.core.fail_over()
    talk.send(talk.joins("b", "t"))

    assert installs(talk, **wrong) == ()
    assert len(talk.core.uncomputed) == 1


def test_n6_a_result_that_names_the_process_before_is_computed_again(talk: Talk) -> None:
    """K-N6: a swap raises no epoch."""
    talk.send(talk.joins("a", "t", instance_id="i"))
    talk.core.advance(7)
    talk.grow(t=5)
    talk.send(talk.says("a", talk.member("a").epoch))
    talk.send(talk.says("a", -2, instance_id="i"))
    talk.send(talk.joins("b", "t", instance_id="i"))

    assert talk.core.advance(7) == ()
    assert kinds(talk.core.advance(7)) == [TargetStored]
    assert {*talk.group.body.targets} == {"b"}


def test_p1_a_result_for_topics_that_a_member_wants_no_more_is_computed_again(talk: Talk) -> None:
    """K-P1: another expression raises no epoch until its topics are known."""
    talk.send(talk.joins("a", regex="t.*"))
    talk.core.advance(0)
    talk.send(talk.says("a", 1))
    assert len(talk.core.uncomputed) == 1
    talk.send(talk.says("a", 1, regex="o.*"))
    talk.core.unresolved.clear()

    assert talk.core.advance(7) == ()
    assert len(talk.core.uncomputed) == 1


def test_m27_topics_that_have_grown_meanwhile_raise_the_epoch(talk: Talk) -> None:
    """K-M27: though no beat has looked at them yet."""
    talk.send(talk.joins("a", "t"))
    talk.grow(t=5)
    events = talk.core.advance(7)
    (_, _, effect) = talk.core.uncomputed[0]

    assert kinds(events) == [EpochRaised]
    assert effect.sizes == {"t": 5}
    talk.core.advance(7)
    assert beat(talk, "a") == 5


# --- sizes ---


def long_names(first: str) -> tuple[str, ...]:
    """Topics whose names are more than half of a small entry together."""
    return tuple(f"{first}{number:0248}" for number in range(150))


def creates(talk: Talk, names: tuple[str, ...]) -> None:
    for some in (names[:75], names[75:]):
        talk.send(CreateTopics(talk.caller(), tuple(TopicSize(name, 1) for name in some)))


@pytest.fixture
def owner() -> Iterator[Talk]:
    """A member that owns a partition of each topic with a long name, in small entries."""
    talk = Talk()
    talk.send(AlterSettings(talk.caller(), "", SMALL_ENTRY))
    creates(talk, long_names("x"))
    talk.send(talk.joins("a", regex="[xy].*"))
    talk.core.advance(0)
    talk.send(talk.says("a", 1))
    talk.core.advance(7)
    talk.send(talk.says("a", 1))
    yield talk
    talk.core.check_replays()


def test_s7_a_target_that_fills_an_entry_gets_one_of_its_own(owner: Talk) -> None:
    """S7: with the steps of members it would exceed it, so that it would be refused for ever."""
    (entry,) = [
        kinds(tuple(each.event for each in applied.entry.parts[0].events))
        for applied in owner.core.log
        if TargetStored in kinds(tuple(each.event for each in applied.entry.parts[0].events))
    ]

    assert entry == [TargetStored]
    assert owned(owner, "a") == len(long_names("x"))


def test_s7_a_step_that_exceeds_an_entry_is_taken_in_two(owner: Talk) -> None:
    """S7: what is freed first, then what is granted; each is as long as a target may be."""
    creates(owner, long_names("y"))
    for some in (long_names("x")[:75], long_names("x")[75:]):
        owner.send(DeleteTopics(owner.caller(), some))
    owner.core.advance(11_000)
    owner.send(owner.says("a", owner.member("a").epoch))
    owner.core.advance(7)
    owner.send(owner.says("a", owner.member("a").epoch))
    owner.core.advance(7)
    steps = [owner.send(owner.says("a", owner.member("a").epoch, owned=())) for _ in range(2)]

    assert [kinds(each) for each in steps] == [[MemberAdvanced], [MemberAdvanced]]
    assert {each.topic for each in owner.member("a").owned} == set(long_names("y"))
    sizes = [len(encode_part(each.entry.parts[0])) for each in owner.core.log]
    assert max(sizes) <= 64 * 1024


def test_s7_a_step_has_the_room_that_a_new_target_leaves(owner: Talk) -> None:
    """S7: the target is short enough to be computed at once, but not beside the whole step."""
    topics = long_names("y")[:75]
    owner.send(CreateTopics(owner.caller(), tuple(TopicSize(name, 1) for name in topics)))
    for some in (long_names("x")[:75], long_names("x")[75:]):
        owner.send(DeleteTopics(owner.caller(), some))
    owner.core.advance(11_000)
    owner.send(owner.says("a", owner.member("a").epoch))
    owner.core.advance(7)
    steps = [owner.send(owner.says("a", owner.member("a").epoch, owned=())) for _ in range(2)]

    assert [kinds(each) for each in steps] == [[TargetStored, MemberAdvanced], [MemberAdvanced]]
    assert {each.topic for each in owner.member("a").owned} == set(topics)
    assert max(len(encode_part(each.entry.parts[0])) for each in owner.core.log) <= 64 * 1024


def test_s7_a_result_that_fits_no_more_is_passed_over(talk: Talk) -> None:
    """S7: topics have grown, so that no target can be written; members keep what they have."""
    talk.send(talk.joins("a", "t"))
    talk.send(AlterSettings(talk.caller(), "", SMALL_ENTRY))
    talk.send(CreatePartitions(talk.caller(), (TopicSize("t", 25_000),)))

    assert kinds(talk.core.advance(7)) == [EpochRaised]
    assert not talk.core.uncomputed
    assert talk.group.state == "Assigning"
