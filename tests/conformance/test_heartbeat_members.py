"""Rules of the heartbeat protocol that no transcript shows: members join, beat and leave (K-M)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.talk import AWAY, JOIN, Member, Shown, Told, refused

if TYPE_CHECKING:
    from conformance.conftest import Start
    from conformance.talk import Talk

Json = Any


def two(talk: Talk) -> None:
    """Members `a` and `b` of a Stable group at epoch 3; each owns half of topic `t`."""
    talk.join("a")
    talk.join("b")
    talk.beat("a", 2, "t0 t1 t2 t3")
    talk.beat("a", 2, "t0 t1")
    talk.beat("b", 3, "")
    talk.beat("b", 3, "t2 t3")
    assert talk.group() == Shown("Stable", 3, 3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"group_id": ""},
        {"member_id": ""},
        {"instance_id": ""},
        {"rack_id": ""},
        {"member_epoch": -3},
        {"member_epoch": AWAY},
        {"rebalance_timeout_ms": None},
        {"rebalance_timeout_ms": -1},
        {"subscribed_topic_names": None},
        {"topic_partitions": [{"topic": "t", "partitions": [0]}]},
        {"topic_partitions": None},
    ],
    ids=str,
)
def test_m1_m2_a_heartbeat_that_lacks_something_is_an_invalid_request(
    start: Start, wrong: Json
) -> None:
    talk = start()

    assert talk.join("a", **wrong) == refused("INVALID_REQUEST")
    assert talk.described()["error_code"] == "GROUP_ID_NOT_FOUND"


def test_m3_an_assignor_that_the_service_does_not_have(start: Start) -> None:
    talk = start()

    assert talk.join("a", server_assignor="sticky") == refused("UNSUPPORTED_ASSIGNOR")
    assert talk.described()["error_code"] == "GROUP_ID_NOT_FOUND"


def test_m6_m7_an_epoch_of_nobody(start: Start) -> None:
    talk = start()
    assert talk.beat("a", 2) == refused("GROUP_ID_NOT_FOUND")

    talk.join("a")

    assert talk.beat("b", 2) == refused("UNKNOWN_MEMBER_ID")


def test_m8_a_full_group_takes_no_new_member(start: Start) -> None:
    """K-M7: an epoch of nobody is that, also here. Kafka looks at the size first."""
    talk = start(config={"group.consumer.max.size": "1"})
    talk.join("a")

    assert talk.join("b") == refused("GROUP_MAX_SIZE_REACHED")
    assert talk.beat("b", 2) == refused("UNKNOWN_MEMBER_ID")
    assert talk.join("a").error == "NONE"


def test_m9_a_join_of_a_member_is_answered_in_every_state(start: Start) -> None:
    """In place, with all that it is to own, and the epoch rises only if something changed."""
    talk = start()
    talk.join("a")
    assert talk.join("a") == Told(2, "t0 t1 t2 t3")
    talk.join("b")
    assert talk.join("b") == Told(3, "")  # waits for what others hold
    talk.beat("a", 2)  # is asked for half of it

    assert talk.join("a") == Told(3, "t0 t1")  # a join owns nothing, so it has given that up
    assert talk.group() == Shown("Reconciling", 3, 3)
    assert talk.join("b") == Told(3, "t2 t3")


def test_m15_an_assignment_is_told_once(start: Start) -> None:
    talk = start()
    talk.join("a")
    talk.join("b")

    assert talk.beat("a", 2) == Told(2, "t0 t1")
    assert talk.beat("a", 2) == Told(2)


def test_m16_m17_other_topics_raise_the_epoch_and_their_order_does_not(start: Start) -> None:
    talk = start({"t": 2, "u": 1})
    talk.join("a", "t u")

    assert talk.beat("a", 2, subscribed_topic_names=["u", "t"]) == Told(2)
    assert talk.beat("a", 2, "t0 t1 u0", subscribed_topic_names=["u"]) == Told(2, "u0")
    assert talk.beat("a", 2, "u0") == Told(3)
    assert talk.group() == Shown("Stable", 3, 3)


def test_m19_an_assignor_raises_the_epoch_if_another_one_wins(start: Start) -> None:
    """K-P11: the one that most prefer is in force; the first in the settings if nobody does."""
    talk = start()
    for name in ("a", "b", "c"):
        talk.join(name, server_assignor=None)
    assert talk.group().assignor == "uniform"

    talk.beat("b", 3, server_assignor="uniform")
    assert talk.group().epoch == 4
    talk.beat("a", 2, server_assignor="range")
    talk.beat("c", 4, server_assignor="range")

    assert (talk.group().epoch, talk.group().assignor) == (5, "range")


def test_m21_a_leave_raises_the_epoch_and_computes_nothing(start: Start) -> None:
    talk = start()
    two(talk)

    assert talk.leave("a") == Told(-1)
    assert talk.group() == Shown("Assigning", 4, 3)
    assert talk.beat("b", 3, "t2 t3") == Told(4, "t0 t1 t2 t3")


def test_m22_m23_who_is_unknown_cannot_leave(start: Start) -> None:
    talk = start()
    assert talk.leave("a") == refused("GROUP_ID_NOT_FOUND")
    assert talk.go_away("a", "i1") == refused("GROUP_ID_NOT_FOUND")
    talk.join("a")

    assert talk.leave("b") == refused("UNKNOWN_MEMBER_ID")
    assert talk.go_away("b", "i1") == refused("UNKNOWN_MEMBER_ID")
    assert talk.go_away("a", "i1") == refused("UNKNOWN_MEMBER_ID")
    assert talk.group().epoch == 2


def test_m24_who_is_silent_for_the_groups_session_timeout_is_removed(start: Start) -> None:
    talk = start(config={"group.consumer.session.timeout.ms": "6000"})
    two(talk)
    talk.wait(3_000)
    talk.beat("b", 3)
    talk.wait(3_000)

    assert set(talk.members()) == {"b"}
    assert talk.group() == Shown("Assigning", 4, 3)
    assert talk.beat("a", 3) == refused("UNKNOWN_MEMBER_ID")


def test_m25_who_does_not_give_up_in_its_own_rebalance_timeout_is_removed(start: Start) -> None:
    """Its heartbeats do not save it: they do not say that it let go."""
    talk = start()
    talk.join("a", rebalance_timeout_ms=5_000)
    talk.join("b")
    talk.beat("a", 2)
    talk.wait(4_000)
    assert talk.beat("a", 2) == Told(2)
    talk.wait(1_500)

    assert set(talk.members()) == {"b"}
    assert talk.beat("b", 3) == Told(4, "t0 t1 t2 t3")


def test_m26_who_gave_up_in_time_stays(start: Start) -> None:
    talk = start()
    talk.join("a", rebalance_timeout_ms=5_000)
    talk.join("b")
    talk.beat("a", 2)
    talk.wait(4_000)
    assert talk.beat("a", 2, "t0 t1") == Told(3)
    talk.wait(5_500)

    assert set(talk.members()) == {"a", "b"}


def test_m31_a_setting_of_the_group_is_in_the_next_answer(start: Start) -> None:
    """The interval that the service would have; a cluster's setting is in every answer."""
    talk = start(config={"group.consumer.heartbeat.interval.ms": "700"})

    answer = talk.call("a", "ConsumerGroupHeartbeat", beat_of("a"))

    assert answer["heartbeat_interval_ms"] == 700


def beat_of(name: str) -> Json:
    return {
        "group_id": "g",
        "member_id": name,
        "member_epoch": JOIN,
        "rebalance_timeout_ms": 300_000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }


def test_m32_a_late_leave_of_the_same_id_removes_the_one_that_lives(start: Start) -> None:
    """As Kafka: nothing in a bare leave says which life of the member it is from."""
    talk = start()
    talk.join("a")
    talk.join("a")

    assert talk.leave("a") == Told(-1)
    assert talk.members() == {}


def test_n5_o9_nothing_changes_for_who_only_waits(start: Start) -> None:
    """A member that waits for partitions of others hears nothing new until they are free."""
    talk = start({"t": 2})
    talk.join("a", instance_id="i1")
    talk.join("b", instance_id="i2")
    talk.beat("a", 2)
    talk.go_away("a", "i1")

    assert talk.beat("b", 3) == Told(3, "t1")  # what was asked back is free: the process stopped
    assert talk.group() == Shown("Reconciling", 3, 3)
    assert talk.beat("b", 3) == Told(3)
    assert talk.members()["a"] == Member(AWAY, "t0", "t0")
