"""Rules of the heartbeat protocol that no transcript shows: topics, assignors, pace (K-P)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.talk import Member, Shown, Told, refused

if TYPE_CHECKING:
    from conformance.conftest import Start

PAUSE = {"group.consumer.assignment.interval.ms": "5000"}


def test_p1_a_bad_regular_expression(start: Start) -> None:
    talk = start()
    bad = {"subscribed_topic_regex": "foo-("}

    assert talk.join("a", None, **bad) == refused("INVALID_REGULAR_EXPRESSION")
    assert talk.described()["error_code"] == "GROUP_ID_NOT_FOUND"
    talk.join("b")
    assert talk.beat("b", 2, **bad) == refused("INVALID_REGULAR_EXPRESSION")
    assert talk.beat("b", 2) == Told(2)


def test_p2_a_regular_expression_that_is_known_is_used_at_once(start: Start) -> None:
    talk = start({"foo": 2})
    talk.join("a", None, subscribed_topic_regex="fo+")
    assert talk.beat("a", 1) == Told(2, "foo0 foo1")

    assert talk.join("b", None, subscribed_topic_regex="fo+") == Told(3, "")
    assert talk.members()["b"].target == "foo1"


def test_p3_a_regular_expression_that_nobody_has_any_more_changes_nothing(start: Start) -> None:
    """It is looked up once time passes, and by then the member has gone."""
    talk = start({"foo": 1})
    talk.join("a", "foo")
    talk.beat("a", 2, subscribed_topic_regex="fo+")
    epoch = talk.group().epoch
    talk.leave("a")

    assert talk.group().epoch == epoch + 1


def test_p4_p8_new_topics_are_looked_for_and_none_is_a_result_too(start: Start) -> None:
    talk = start({"bar": 1})
    talk.join("a", None, subscribed_topic_regex="fo+")
    assert talk.beat("a", 1) == Told(1)
    talk.wait(10_000)
    talk.admin(create_topic="foo", partitions=1)

    assert talk.beat("a", 1) == Told(1)  # it is looked up after this answer
    assert talk.beat("a", 1) == Told(2, "foo0")
    talk.admin(delete_topic="foo")
    talk.wait(10_000)
    talk.admin(create_topic="other", partitions=1)
    assert talk.beat("a", 2, "foo0") == Told(2, "")
    assert talk.beat("a", 2, "") == Told(4)  # the topic went: 3; the expression found that: 4


def test_p5_regular_expressions_are_not_looked_up_all_the_time(start: Start) -> None:
    talk = start({"foo": 1, "bar": 1})
    talk.join("a", None, subscribed_topic_regex="fo+")
    talk.beat("a", 1)
    assert talk.join("b", None, subscribed_topic_regex="ba.") == Told(2, "")
    assert talk.beat("b", 2) == Told(2)
    talk.wait(10_000)

    assert talk.beat("a", 2) == Told(2)  # now it is looked up, whoever beats
    assert talk.beat("b", 2) == Told(3, "bar0")


def test_p6_p7_a_regular_expression_is_forgotten_with_its_last_user(start: Start) -> None:
    """Who brings it again waits for it to be looked up again."""
    talk = start({"foo": 1, "t": 1})
    talk.join("a", "t", subscribed_topic_regex="fo+")
    assert talk.beat("a", 2) == Told(3, "foo0 t0")
    assert talk.beat("a", 3, "foo0 t0", subscribed_topic_regex="") == Told(3, "t0")
    assert talk.beat("a", 3, "t0") == Told(4)

    assert talk.join("b", None, subscribed_topic_regex="fo+") == Told(4, "")
    assert talk.beat("b", 4) == Told(5, "foo0")
    talk.leave("b")
    assert talk.join("c", None, subscribed_topic_regex="fo+").owned == ""


def test_p10_an_instance_comes_back_with_another_regular_expression(start: Start) -> None:
    """It has its old place until the new expression is looked up."""
    talk = start({"t": 1, "foo": 1})
    talk.join("a", "t", instance_id="i1")
    talk.go_away("a", "i1")

    assert talk.join("b", "t", instance_id="i1", subscribed_topic_regex="fo+") == Told(2, "t0")
    assert talk.beat("b", 2) == Told(3, "foo0 t0")


def test_p12_static_members_keep_their_place_in_the_range(start: Start) -> None:
    talk = start({"t": 3})
    talk.join("a")
    talk.join("z", instance_id="i2")
    talk.join("y", instance_id="i1")

    targets = {name: member.target for name, member in talk.members().items()}

    assert targets == {"y": "t0", "z": "t1", "a": "t2"}


def test_p14_the_uniform_assignor_with_different_subscriptions(start: Start) -> None:
    """Nobody could take a partition of somebody who has two more."""
    talk = start({"t": 4, "u": 4})
    talk.join("a", "t", server_assignor="uniform")
    talk.join("b", "t u", server_assignor="uniform")

    members = talk.members().values()

    assert sorted(len(each.target.split()) for each in members) == [4, 4]


def test_p16_without_an_interval_each_change_has_a_target_at_once(start: Start) -> None:
    talk = start()
    talk.join("a")
    talk.join("b")
    talk.join("c")

    assert talk.group() == Shown("Reconciling", 4, 4)


def test_a_join_after_the_group_was_empty_does_not_wait(start: Start) -> None:
    """K-P17 bettered: there is nothing to spare. Kafka 4.3 still waits for the interval."""
    talk = start(config=PAUSE)
    talk.join("a")
    talk.leave("a")

    assert talk.join("b") == Told(4, "t0 t1 t2 t3")


def test_m19_p15_a_change_within_the_interval_waits_for_the_next_target(start: Start) -> None:
    talk = start({"t": 2}, PAUSE)
    talk.join("a")
    talk.join("b", instance_id="i2")
    assert talk.group() == Shown("Assigning", 3, 2)
    assert talk.members()["b"] == Member(2, "", "")
    talk.wait(5_000)

    assert talk.beat("a", 2, "t0 t1") == Told(2, "t1")  # static members come first
    assert talk.group() == Shown("Reconciling", 3, 3)
