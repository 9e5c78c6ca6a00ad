"""INV-9: epochs that nothing asked for, and moves of the heartbeat protocol."""

from __future__ import annotations

from dataclasses import replace

from holdfast.coordinator.model.consumer_events import ConvertedMember, GroupConverted
from holdfast.coordinator.model.events import (
    InstanceReleased,
    MembersLeft,
    PartitionsAdded,
    TopicSize,
)
from unit.chaos.scribe import (
    Scribe,
    advanced,
    of_t,
    raised,
    returned,
    settled,
    subscribed,
    target,
    whats,
)


def test_inv_9_a_bounce_raises_no_epoch() -> None:
    s, _ = settled()
    s.entry(InstanceReleased("b", "b.1"))
    s.entry(returned("b.1", "b.2"), advanced("b.2", 2))
    assert s.judged("I9").violations == []

    s.entry(InstanceReleased("b", "b.2"))
    s.entry(returned("b.2", "b.3"), raised(3, "joined"))

    assert "raised its epoch to 3 at index 7 for 'joined'" in whats(s.judged("I9"))


def test_inv_9_an_epoch_for_topics_that_are_as_before_is_found() -> None:
    s, _ = settled()
    s.entry(PartitionsAdded((TopicSize("t", 5),)), group="")
    s.entry(raised(3, "topics", b"other"))
    assert s.judged("I9").violations == []

    s.entry(raised(4, "topics", b"other"))

    assert "for 'topics', and nothing of the kind had happened" in whats(s.judged("I9"))


def test_inv_9_a_target_of_the_same_members_that_moves_is_found() -> None:
    """Whatever the assignor: nothing has changed that it is computed from."""
    s, _ = settled()
    s.call("TriggerRebalance", "operator")
    s.entry(raised(3, "asked"), target(3, {"a": [0, 2], "b.1": [1, 3]}))

    assert "2 partitions moved between members that stayed, 0 had to" in whats(s.judged("I9"))


def test_inv_9_a_conversion_that_takes_something_is_found() -> None:
    s = Scribe()
    s.create()
    s.stable({"a": [0, 1]})
    s.entry(GroupConverted("consumer", 1, (ConvertedMember("a", ("t",), of_t([0])),)))

    assert "a of 'g' lost t/1" in whats(s.judged("I9"))


def test_inv_9_a_converted_group_has_not_looked_at_topics_yet() -> None:
    """It has been of this type before, and the same topics: its first heartbeat finds them anew."""
    s, _ = settled()
    s.entry(MembersLeft(("a", "b.1"), ""), raised(3, "left"))
    s.entry(GroupConverted("classic", 0, ()))
    s.entry(GroupConverted("consumer", 1, ()))
    s.entry(subscribed("c"), raised(2, "topics", b"d"))

    assert s.judged("I9").violations == []


def test_inv_9_what_a_converted_group_brings_along_is_no_target() -> None:
    """`uniform` may then give one more to others (K-P13). Found by the simulator: seed 159."""
    s, _ = settled()
    owns = tuple(
        ConvertedMember(who, ("t",), of_t(own)) for who, own in (("a", [0]), ("b.1", [1, 2, 3]))
    )
    s.entry(GroupConverted("classic", 0, owns, "range", "a"))
    s.entry(GroupConverted("consumer", 3, owns))
    s.call("TriggerRebalance", "operator")
    s.entry(raised(4, "asked"), target(4, {"a": [0, 1], "b.1": [2, 3]}))

    assert "partitions moved" not in whats(s.judged("I9"))


def test_inv_9_a_target_may_not_know_of_topics_that_changed_behind_its_group() -> None:
    """A batch waits for its group's last one and for nothing else (S2). The simulator: 196."""
    s, _ = settled()
    s.entry(PartitionsAdded((TopicSize("t", 6),)), group="")
    s.entry(raised(3, "asked"), target(3, {"a": [0, 1], "b.1": [2, 3]}, "range"))
    s.entry(raised(4, "topics"), target(4, {"a": [0, 1, 2], "b.1": [3, 4, 5]}, "range"))

    assert "partitions moved" not in whats(s.judged("I9"))


def test_inv_9_a_target_knows_of_topics_what_its_group_could_know() -> None:
    """Once an entry of the group lies between, it is asked as before."""
    s, _ = settled()
    s.entry(PartitionsAdded((TopicSize("t", 6), TopicSize("u", 2))), group="")
    s.entry(advanced("a", 2))
    s.entry(raised(3, "topics"), target(3, {"a": [0, 1, 2], "b.1": [3, 4, 5]}, "range"))
    s.entry(PartitionsAdded((TopicSize("u", 3),)), group="")  # which nobody of the group wants
    s.entry(raised(4, "asked"), target(4, {"a": [0, 1, 3], "b.1": [2, 4, 5]}, "range"))

    assert "2 partitions moved between members that stayed, 0 had to" in whats(s.judged("I9"))


def test_inv_9_a_members_assignor_may_move_what_it_likes() -> None:
    """Also one that is called like an assignor of the service."""
    s, _ = settled()
    moved = target(3, {"a": [2, 3], "b.1": [0, 1]})
    s.entry(raised(3, "assignor"), replace(moved, installed_by="a"))

    assert s.judged("I9").violations == []
