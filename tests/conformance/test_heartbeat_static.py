"""Rules of the heartbeat protocol that no transcript shows: static members (K-N, K-H)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.talk import AWAY, Member, Shown, Told, refused

if TYPE_CHECKING:
    from conformance.conftest import Start
    from conformance.talk import Talk

FULL = {"group.consumer.max.size": "2"}


def alone(talk: Talk) -> None:
    """`a`, the instance `i1`, owns all of topic `t` and has gone away."""
    talk.join("a", instance_id="i1")
    talk.go_away("a", "i1")


def test_n7_the_same_member_id_comes_back(start: Start) -> None:
    talk = start()
    alone(talk)

    assert talk.join("a", instance_id="i1") == Told(2, "t0 t1 t2 t3")
    assert talk.group() == Shown("Stable", 2, 2)


def test_n8_an_instance_comes_back_with_other_topics(start: Start) -> None:
    talk = start({"t": 1, "u": 1})
    alone(talk)

    assert talk.join("b", "u", instance_id="i1") == Told(3, "u0")
    assert talk.members() == {"b": Member(3, "u0", "u0")}


def test_n9_other_topics_raise_the_epoch_though_the_target_stays(start: Start) -> None:
    talk = start({"t": 1})
    alone(talk)

    assert talk.join("b", "t none", instance_id="i1") == Told(3, "t0")
    assert talk.group() == Shown("Stable", 3, 3)


def test_n10_the_old_process_of_an_absent_instance_is_fenced(start: Start) -> None:
    talk = start()
    alone(talk)

    assert talk.beat("a", 2) == refused("FENCED_MEMBER_EPOCH")
    assert talk.beat("a", 2, instance_id="i1") == refused("FENCED_MEMBER_EPOCH")


def test_n14_n15_n16_an_instance_id_of_nobody_or_of_another_member(start: Start) -> None:
    talk = start()
    talk.join("a", instance_id="i1")
    talk.join("b", instance_id="i2")

    assert talk.beat("a", 2, instance_id="i3") == refused("UNKNOWN_MEMBER_ID")
    assert talk.beat("b", 2, instance_id="i1") == refused("FENCED_INSTANCE_ID")
    assert talk.leave("b", "i1") == refused("FENCED_INSTANCE_ID")
    assert talk.go_away("b", "i1") == refused("FENCED_INSTANCE_ID")
    assert set(talk.members()) == {"a", "b"}


def test_n18_the_epoch_before_is_judged_as_with_dynamic_members(start: Start) -> None:
    talk = start({"t": 2})
    talk.join("a", instance_id="i1")
    talk.join("b", instance_id="i2")
    talk.beat("a", 2, "t0 t1", instance_id="i1")
    assert talk.beat("a", 2, "t0", instance_id="i1") == Told(3)

    assert talk.beat("a", 2, "t0", instance_id="i1") == Told(3)  # the answer was lost
    assert talk.beat("a", 2, instance_id="i1") == refused("FENCED_MEMBER_EPOCH")
    assert talk.beat("a", 2, "t0 t1", instance_id="i1") == refused("FENCED_MEMBER_EPOCH")


def test_n19_the_session_of_a_replaced_id_ends_without_effect(start: Start) -> None:
    talk = start(config={"group.consumer.session.timeout.ms": "6000"})
    alone(talk)
    talk.wait(4_000)
    talk.join("b", instance_id="i1")
    talk.wait(4_000)

    assert set(talk.members()) == {"b"}
    assert talk.beat("b", 2) == Told(2)


def test_a_full_group_takes_an_instance_that_comes_back(start: Start) -> None:
    """K-N20 bettered: it is no new member. Kafka 4.3 still says GROUP_MAX_SIZE_REACHED."""
    talk = start(config=FULL)
    talk.join("a", instance_id="i1")
    talk.join("b", instance_id="i2")
    talk.go_away("a", "i1")

    assert talk.join("c", instance_id="i1") == Told(3, "t0 t1")
    assert set(talk.members()) == {"b", "c"}


def test_a_full_group_says_that_an_instance_is_in_use(start: Start) -> None:
    """K-N21 bettered: that it is full is not why. Kafka 4.3 still says GROUP_MAX_SIZE_REACHED."""
    talk = start(config=FULL)
    talk.join("a", instance_id="i1")
    talk.join("b", instance_id="i2")

    assert talk.join("c", instance_id="i1") == refused("UNRELEASED_INSTANCE_ID")


def test_n22_a_full_group_takes_no_new_instance(start: Start) -> None:
    talk = start(config=FULL)
    talk.join("a", instance_id="i1")
    talk.join("b", instance_id="i2")

    assert talk.join("c", instance_id="i3") == refused("GROUP_MAX_SIZE_REACHED")


def test_an_instance_that_goes_away_has_nothing_more_to_give_up(start: Start) -> None:
    """K-N23 bettered: it counts as settled. In Kafka the state says that it must give up."""
    talk = start({"t": 2})
    talk.join("a", instance_id="i1", rebalance_timeout_ms=3_000)
    talk.join("b", instance_id="i2")
    talk.beat("a", 2)  # is asked for t1
    talk.go_away("a", "i1")
    assert talk.members()["a"] == Member(AWAY, "t0", "t0")
    talk.wait(3_500)  # nobody waits for it to give up

    assert talk.join("c", instance_id="i1") == Told(3, "t0")
    assert talk.beat("b", 3) == Told(3, "t1")
    assert talk.group() == Shown("Stable", 3, 3)


def test_a_member_id_keeps_its_instance_id(start: Start) -> None:
    """K-H4 bettered: INVALID_REQUEST. In Kafka both instance ids lead to the member then."""
    talk = start()
    talk.join("a", instance_id="i1")

    assert talk.join("a", instance_id="i2") == refused("INVALID_REQUEST")
    assert talk.beat("a", 2, instance_id="i1") == Told(2)
    assert talk.join("b", instance_id="i2") == Told(3, "")
