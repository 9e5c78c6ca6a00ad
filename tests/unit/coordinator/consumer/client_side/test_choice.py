"""Who computes the target: the choice is on the log, and another follows who is late (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model.commands import JoinGroup, LeaveGroup, LeavingMember
from holdfast.coordinator.model.consumer_events import (
    AssignmentRequested,
    MemberTarget,
    TargetStored,
)
from holdfast.coordinator.model.effects import InstallTarget
from holdfast.coordinator.model.events import MemberExpired
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.rejections import NotChosen
from holdfast.coordinator.model.volatile import COMPUTE
from unit.coordinator.consumer.client_side.computing_members import Computing, assignor
from unit.coordinator.consumer.talk import GROUP, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.coordinator.model.events import Event


@pytest.fixture
def talk() -> Iterator[Computing]:
    """A topic of four partitions; whatever happens replays."""
    made = Computing(t=4)
    yield made
    made.core.check_replays()


def requested(talk: Computing) -> list[AssignmentRequested]:
    """Every choice so far."""
    every = (record.event for applied in talk.core.log for record in applied.records)
    return [event for event in every if isinstance(event, AssignmentRequested)]


def two(talk: Computing) -> None:
    """Members `a` and `b`, of which `a` has computed, at rest."""
    talk.send(talk.comes("a"))
    talk.installs("a", a="t0 t1 t2 t3")
    talk.beats("a")
    talk.send(talk.comes("b"))
    talk.installs("b", a="t0 t1", b="t2 t3")
    talk.beats("a", owned=parts("t0", "t1"))
    talk.beats("b")


def test_one_member_is_told_and_no_other(talk: Computing) -> None:
    """KIP-848: should_compute goes to one member, in each answer until there is a target."""
    two(talk)
    assert talk.told(talk.comes("c")).should_compute

    assert [talk.beats(name) for name in "abcc"] == [False, False, True, True]
    assert talk.installs("c", a="t0", b="t2", c="t1 t3") is None
    assert [talk.beats(name) for name in "abc"] == [False, False, False]


def test_a_batch_chooses_once(talk: Computing) -> None:
    """Joins that share an entry share one target, and one choice."""
    decision = talk.decide(*(talk.comes(name) for name in "abc"))

    chosen = [each.event for each in decision.events if isinstance(each.event, AssignmentRequested)]
    assert [(each.member_id, each.epoch) for each in chosen] == [("a", 4)]


def test_the_chosen_one_stays_chosen_while_the_group_changes(talk: Computing) -> None:
    """Its time runs on: a group that changes all the time does not keep a dead member chosen."""
    two(talk)
    talk.beats("a", client_assignors=(assignor(reason=1),))
    talk.core.advance(40_000)
    talk.beats("a")
    talk.beats("b", client_assignors=(assignor(reason=1),))
    assert talk.chosen == "a"
    talk.core.advance(20_000)

    assert talk.chosen == "b"
    assert requested(talk)[-1].late == "a"


def test_who_is_late_is_not_fenced_and_m25_still_fences(talk: Computing) -> None:
    """KIP-848, K-M25: computing is no duty; giving up what was asked back is one."""
    two(talk)
    talk.beats("a", client_assignors=(assignor(reason=1),))
    for _ in range(3):
        talk.core.advance(20_000)
        talk.beats("a")
        talk.beats("b")
    assert talk.chosen == "b"
    assert set(talk.group.body.members) == {"a", "b"}
    talk.installs("b", b="t0 t1 t2 t3")
    talk.beats("a")
    expired: list[Event] = []
    for _ in range(3):
        expired += talk.core.advance(20_000)
        if "a" in talk.group.body.members:
            talk.beats("a")

    assert MemberExpired("a", "rebalance") in expired


def test_lateness_is_forgotten_when_the_late_one_installs(talk: Computing) -> None:
    """It is asked last until then."""
    two(talk)
    talk.beats("a", client_assignors=(assignor(reason=1),))
    for _ in range(3):
        talk.core.advance(20_000)
        talk.beats("a")
        talk.beats("b")
    assert list(talk.group.body.late) == ["a"]
    talk.installs("b", a="t0 t1", b="t2 t3")
    talk.beats("a", client_assignors=(assignor(reason=2),))
    assert (talk.chosen, list(talk.group.body.late)) == ("b", ["a"])
    talk.send(LeaveGroup(talk.caller(), GROUP, (LeavingMember("b", None),)))
    talk.beats("a")
    assert talk.installs("a", a="t0 t1 t2 t3") is None
    assert not talk.group.body.late


@pytest.mark.parametrize("how", ["leaves", "is removed", "expires"])
def test_a_chosen_member_that_is_gone_is_replaced_at_the_next_beat(
    talk: Computing, how: str
) -> None:
    """K-M21: a departure computes nothing; the next heartbeat of anybody chooses."""
    two(talk)
    talk.beats("a", client_assignors=(assignor(reason=1),))
    assert talk.chosen == "a"
    if how == "leaves":
        talk.send(talk.says("a", -1))
    elif how == "is removed":
        entry = (LeavingMember("a", None),)
        talk.send(LeaveGroup(talk.caller(), GROUP, entry, operator=True))
    else:
        talk.core.advance(30_000)
        talk.beats("b")
        talk.core.advance(20_000)
    assert "a" not in talk.group.body.members
    assert talk.chosen == ""

    assert talk.beats("b")
    assert talk.chosen == "b"


def test_the_next_process_of_a_chosen_static_member_is_chosen_by_its_join(talk: Computing) -> None:
    """S12: a newer life takes the place, and speaks; what was asked of the old id is over."""
    lives = [{"life": f"life-{number}", "beat": 1} for number in (1, 2)]
    talk.send(talk.comes("a", instance_id="i1", **lives[0]))
    assert talk.chosen == "a"
    answer = talk.told(talk.comes("a2", instance_id="i1", **lives[1]))

    assert (answer.error, answer.should_compute, talk.chosen) == (None, True, "a2")


def test_a_new_leader_gives_the_chosen_member_its_whole_time(talk: Computing) -> None:
    """S16: the choice is on the log, and its deadline is armed in full."""
    two(talk)
    talk.beats("a", client_assignors=(assignor(reason=1),))
    talk.core.advance(40_000)
    talk.core.fail_over()
    talk.core.advance(40_000)
    assert talk.beats("a")
    talk.beats("b")
    assert talk.chosen == "a"
    talk.core.advance(20_000)
    assert talk.chosen == "b"


def test_members_that_come_to_share_one_take_over_from_the_child(talk: Computing) -> None:
    """K-M20: what the node computes meanwhile is passed over, for a member is to compute."""
    talk.set(consumer_inline_work="0")
    talk.send(talk.joins("a", "t"))
    _, _, effect = talk.core.uncomputed.popleft()
    talk.beats("a", client_assignors=(assignor(),))
    assert talk.chosen == ""
    late = (MemberTarget("a", parts("t0")),)
    talk.send(InstallTarget(GROUP, effect.epoch, effect.assignor, late))

    assert talk.chosen == "a"
    assert talk.installs("a", a="t0 t1 t2 t3") is None
    assert talk.group.body.client_assignor == "own"


def test_members_that_share_none_any_more_get_a_target_of_the_child(talk: Computing) -> None:
    """A member joins without it: the service computes, beside the group's work if that is long."""
    talk.set(consumer_inline_work="0")
    talk.send(talk.comes("a"))
    assert talk.chosen == "a"
    talk.send(talk.joins("b", "t"))
    assert not talk.beats("a")
    stored = talk.core.advance(7)

    assert [type(each) for each in stored] == [TargetStored]
    assert (talk.chosen, talk.group.body.client_assignor) == ("", "")


def test_a_rebalance_timeout_of_nothing_does_not_choose_without_end(talk: Computing) -> None:
    """INV-16: a chosen member has at least the time to its next heartbeat."""
    talk.send(talk.comes("a", rebalance_timeout_ms=0))
    talk.send(talk.comes("b", rebalance_timeout_ms=0))
    before = len(requested(talk))
    talk.core.advance(12_000)

    assert len(requested(talk)) - before == 2, "one for each heartbeat interval of 5 s"


def comes_with_the_classic_protocol(talk: Computing, member_id: str) -> None:
    """A member of the other protocol joins: first it is given its id (KIP-394)."""
    subscription = (Protocol("range", b"subscription", ("t",)),)
    for known in ("", member_id):
        timeouts = (30_000, 60_000)
        talk.send(
            JoinGroup(
                *(talk.caller(), GROUP, known, None, *timeouts),
                *("consumer", subscription, member_id),
            )
        )
    assert member_id in talk.group.body.members


def test_a_member_of_the_classic_protocol_has_the_service_compute(talk: Computing) -> None:
    """K-Q5: it can run no assignor of this protocol, so members share none any more."""
    two(talk)
    talk.beats("a", client_assignors=(assignor(reason=1),))
    assert talk.chosen == "a"
    comes_with_the_classic_protocol(talk, "k")

    assert (talk.chosen, talk.group.body.client_assignor) == ("", "")
    assert talk.installs("a", a="t0 t1 t2 t3") == NotChosen("a", "")
    assert not talk.beats("a")


def test_k_q12_a_group_that_goes_back_to_the_classic_protocol_asks_nobody(talk: Computing) -> None:
    """K-Q12: with its last member of this protocol; no deadline of a choice is left."""
    talk.send(talk.comes("a"))
    comes_with_the_classic_protocol(talk, "k")
    talk.send(talk.says("a", -1))

    assert talk.core.state.groups[GROUP].group_type == "classic"
    armed = talk.core.volatile[GROUP].armed
    assert not [key for key in armed if key.kind == COMPUTE]


def test_a_static_member_that_dies_of_computing_is_asked_last_when_it_is_back(
    talk: Computing,
) -> None:
    """INV-16: its new process joins before anybody else speaks, and would be chosen each time."""
    talk.send(talk.comes("h"))
    talk.installs("h", h="t0 t1 t2 t3")
    talk.beats("h")
    talk.send(talk.comes("s1", instance_id="i1", life="life-1", beat=1))
    assert talk.chosen == "s1", "it speaks, so it is asked first"

    talk.send(talk.comes("s2", instance_id="i1", life="life-2", beat=1))
    assert talk.chosen == "h"
    assert talk.installs("h", h="t0 t1", s2="t2 t3") is None
    talk.beats("h", owned=parts("t0", "t1"))
    talk.grow(t=6)
    talk.beats("s2")
    assert talk.chosen == "h", "and so on, until it has installed a target"
