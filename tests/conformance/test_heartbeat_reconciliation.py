"""Rules of the heartbeat protocol that no transcript shows: from the target to the work (K-O)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.talk import Member, Shown, Told

if TYPE_CHECKING:
    from conformance.conftest import Start


def test_o1_a_settled_member_stays_as_it_is(start: Start) -> None:
    talk = start()
    talk.join("a")

    assert talk.beat("a", 2, "t0 t1 t2 t3") == Told(2)
    assert talk.beat("a", 2, "") == Told(2)  # what it owns less is no news: it still has it all
    assert talk.members()["a"] == Member(2, "t0 t1 t2 t3", "t0 t1 t2 t3")


def test_o2_what_is_free_is_given_at_once(start: Start) -> None:
    talk = start({"t": 1})
    talk.join("a")
    talk.admin(add_partitions="t", partitions=3)

    assert talk.beat("a", 2, "t0") == Told(3, "t0 t1 t2")


def test_o4_who_does_not_own_what_it_is_to_give_up_goes_on(start: Start) -> None:
    talk = start()
    talk.join("a")
    talk.join("b")

    assert talk.beat("a", 2, "t0") == Told(3, "t0 t1")
    assert talk.beat("b", 3) == Told(3, "t2 t3")


def test_o11_who_waits_may_be_asked_for_what_it_has(start: Start) -> None:
    """A member that waits for a partition gives up another one, as a newer target says."""
    talk = start({"t": 4, "u": 2})
    talk.join("a", "t")
    talk.join("b", "t u")
    assert talk.beat("b", 3) == Told(3)  # owns u, waits for t2 and t3
    talk.join("c", "u")

    assert talk.beat("b", 3, "u0 u1") == Told(3, "u0")
    assert talk.members()["b"] == Member(3, "u0 u1", "t2 t3 u0")


def test_o13_topics_that_are_not_wanted_any_more_go_before_there_is_a_target(
    start: Start,
) -> None:
    """The next target is not due yet, so the member keeps its epoch."""
    talk = start({"t": 1, "u": 1}, {"group.consumer.assignment.interval.ms": "5000"})
    talk.join("a", "t u")

    assert talk.beat("a", 2, "t0 u0", subscribed_topic_names=["u"]) == Told(2, "u0")
    assert talk.group() == Shown("Assigning", 3, 2)
    assert talk.beat("a", 2, "u0") == Told(2)
    assert talk.members()["a"] == Member(2, "u0", "t0 u0")


def test_o15_a_partition_has_its_holder_until_that_lets_go(start: Start) -> None:
    """Of three members each waits until the one before it has confirmed, and no longer."""
    talk = start({"t": 3})
    talk.join("a")
    talk.join("b")
    talk.join("c")
    assert talk.beat("b", 3) == Told(4)
    assert talk.beat("a", 2) == Told(2, "t0")
    assert [talk.beat("b", 4), talk.beat("c", 4)] == [Told(4), Told(4)]

    talk.beat("a", 2, "t0")

    assert [talk.beat("b", 4), talk.beat("c", 4)] == [Told(4, "t1"), Told(4, "t2")]


def test_o16_a_partition_keeps_the_epoch_at_which_it_was_given(start: Start) -> None:
    """K-J39: a commit at an older epoch is good for what the member has had since then."""
    talk = start({"t": 2, "u": 1})
    talk.join("a", "t")
    talk.beat("a", 2, subscribed_topic_names=["t", "u"])

    assert talk.members()["a"].epoch == 3
    assert talk.commit("a", 2, "t0 t1") == ["NONE", "NONE"]
    assert talk.commit("a", 2, "u0") == ["STALE_MEMBER_EPOCH"]
    assert talk.commit("a", 3, "u0") == ["NONE"]


def test_o17_a_third_member_joins_two(start: Start) -> None:
    """The whole way: it gets one partition after the other, as they are let go."""
    talk = start({"t": 6})
    talk.join("a")
    talk.join("b")
    talk.beat("a", 2)
    talk.beat("a", 2, "t0 t1 t2")
    talk.beat("b", 3)
    assert talk.group() == Shown("Stable", 3, 3)

    assert talk.join("c") == Told(4, "")
    assert talk.beat("a", 3) == Told(3, "t0 t1")
    assert talk.beat("a", 3, "t0 t1") == Told(4)
    assert talk.beat("c", 4) == Told(4)  # t2 is for b, which has t3 to t5
    assert talk.beat("b", 3) == Told(3, "t3")
    assert talk.beat("b", 3, "t3") == Told(4, "t2 t3")
    assert talk.beat("c", 4) == Told(4, "t4 t5")
    assert talk.group() == Shown("Stable", 4, 4)
