"""INV-8: targets and steps of the heartbeat protocol."""

from __future__ import annotations

from dataclasses import replace

from holdfast.coordinator.model.consumer_events import RegexResolved, TargetStored
from holdfast.coordinator.model.events import MembersLeft, PartitionsAdded, TopicSize
from unit.chaos.scribe import advanced, raised, settled, subscribed, target, whats


def test_inv_8_a_target_that_forgets_a_partition_is_found() -> None:
    s, _ = settled()
    s.entry(raised(3, "asked"), target(3, {"a": [0]}))

    assert "t/1 is nobody's in the target" in whats(s.judged("I8"))


def test_inv_8_a_target_that_gives_a_partition_twice_is_found() -> None:
    s, _ = settled()
    s.entry(raised(3, "asked"), target(3, {"a": [0, 1, 2]}))

    assert "t/2 is given 2 times" in whats(s.judged("I8"))


def test_inv_8_a_partition_that_is_granted_before_it_is_released_is_found() -> None:
    s, _ = settled()
    s.entry(raised(3, "asked"), target(3, {"a": [0], "b.1": [1, 2, 3]}))
    s.entry(advanced("a", 2, asked_back=(1,)), advanced("b.1", 3, (1,)))

    assert "t/1 belongs to a and b.1" in whats(s.judged("I8"))


def test_inv_8_a_target_may_lack_what_came_while_it_was_decided() -> None:
    """A topic grows in an entry between two of the group: the next epoch has to have that."""
    s, _ = settled()
    s.entry(PartitionsAdded((TopicSize("t", 5),)), group="")
    s.entry(raised(3, "asked"), target(3, {}))
    assert s.judged("I8").violations == []

    s.entry(raised(4, "topics", b"other"), target(4, {}))

    assert "t/4 is nobody's in the target" in whats(s.judged("I8"))


def test_inv_8_a_stable_group_without_an_owner_of_a_partition_is_found() -> None:
    """A member goes, and no epoch is raised for it."""
    s, _ = settled()
    s.entry(MembersLeft(("a",), ""))
    s.entry(raised(3, "asked"))

    assert "it is Stable, and t/0 is nobody's" in whats(s.judged("I8"))


def test_inv_8_an_expression_that_nobody_had_is_looked_up_again() -> None:
    """K-P7: with its last member it is forgotten, so the next one wants nothing until it is found.

    Found by the simulator: seed 31 was called broken for an empty target.
    """
    s, _ = settled()
    s.entry(MembersLeft(("a", "b.1"), ""), raised(3, "left"))
    s.entry(subscribed("c", (), regex="t"), RegexResolved("t", ("t",), 1), raised(4, "regex"))
    s.entry(MembersLeft(("c",), ""), raised(5, "left"))
    s.entry(subscribed("d", (), regex="t"), target(5, {}))
    assert s.judged("I8").violations == []

    s.entry(RegexResolved("t", ("t",), 1), raised(6, "regex"), target(6, {}))

    assert "t/0 is nobody's in the target" in whats(s.judged("I8"))


def test_inv_8_what_a_members_assignor_gives_to_nobody_is_nobodys() -> None:
    """It promises nothing; but it, too, gives nothing twice."""

    def by_a_member(epoch: int, shares: dict[str, list[int]]) -> TargetStored:
        return replace(target(epoch, shares), installed_by="a")

    s, _ = settled()
    s.entry(raised(3, "asked"), by_a_member(3, {"a": [0], "b.1": [2, 3]}))
    s.entry(advanced("a", 3, freed=(1,)), advanced("b.1", 3))
    assert s.judged("I8").violations == []

    s.entry(raised(4, "asked"), by_a_member(4, {"a": [0, 2], "b.1": [2, 3]}))

    assert "t/2 is given 2 times" in whats(s.judged("I8"))
