"""INV-5: epochs of the past, and lives of the past."""

from __future__ import annotations

import pytest

from holdfast.coordinator.model.events import InstanceReleased, MemberExpired, MembersRemoved
from unit.chaos.scribe import (
    Scribe,
    advanced,
    raised,
    replaced,
    returned,
    settled,
    subscribed,
    target,
    whats,
)


def test_inv_5_the_epoch_before_is_heard_once_more() -> None:
    """K-M11: the answer that told the new one may have been lost."""
    s, _ = settled()
    s.entry(raised(3, "asked"), target(3, {}), advanced("a", 3))
    s.beat("w1", "a", 2, told=3)

    assert s.judged("I5").violations == []


def test_inv_5_an_epoch_of_the_past_that_is_accepted_is_found() -> None:
    s, _ = settled()
    for epoch in (3, 4):
        s.entry(raised(epoch, "asked"), target(epoch, {}), advanced("a", epoch))
    s.wait(1).beat("w1", "a", 2, told=4)

    assert "its epoch was 4 then" in whats(s.judged("I5"))


def test_inv_5_an_older_commit_is_taken_for_what_was_kept() -> None:
    """K-J39: each partition's assignment epoch judges it."""
    s, _ = settled()
    s.entry(raised(3, "asked"), target(3, {"a": [0, 1, 4]}), advanced("a", 3, (4,)))
    s.call("OffsetCommit", "w1", member_id="a", generation=2, offsets=[["t", 0, 7]])

    assert s.judged("I5").violations == []


def test_inv_5_an_older_commit_for_what_came_later_is_found() -> None:
    s, _ = settled()
    s.entry(raised(3, "asked"), target(3, {"a": [0, 1, 4]}), advanced("a", 3, (4,)))
    s.wait(1).call("OffsetCommit", "w1", member_id="a", generation=2, offsets=[["t", 4, 7]])

    assert "it had not had t/4 since" in whats(s.judged("I5"))


def test_inv_5_a_heartbeat_after_the_end_that_is_accepted_is_found() -> None:
    s, _ = settled()
    s.entry(MemberExpired("a", "session"), raised(3, "expired"))
    s.wait(1).beat("w1", "a", 2)

    assert "was accepted for member a of 'g', which MemberExpired had ended" in whats(
        s.judged("I5")
    )


def test_inv_5_the_next_life_of_an_id_may_speak() -> None:
    s, _ = settled()
    s.entry(MemberExpired("a", "session"), raised(3, "expired"))
    s.wait(1).entry(subscribed("a"), raised(4), target(4, {"a": [0]}), advanced("a", 4, (0,)))
    s.beat("w1", "a", 4)

    assert s.judged("I5").violations == []


@pytest.mark.parametrize(("removed", "said"), [(True, False), (False, True)])
def test_inv_5_a_fence_goes_with_the_place_that_it_was_of(*, removed: bool, said: bool) -> None:
    """S12: a place remembers who had it, until it is left or taken away; then any process may come.

    Here the replaced b.1 takes the place of b.3, which came after b.2 was removed, or of b.2.
    """
    s, _ = settled()
    s.entry(returned("b.1", "b.2"))
    holder = "b.2"
    if removed:
        s.entry(MembersRemoved(("b.2",), "scaled down"), raised(3, "removed"))
        s.entry(subscribed("b.3"), raised(4), target(4, {"b.3": [2, 3]}), advanced("b.3", 4))
        holder = "b.3"
    s.wait(1).entry(returned(holder, "b.1"), advanced("b.1", 4 if removed else 2))
    s.beat("w1", "b.1", 4 if removed else 2)

    assert ("StaticMemberReplaced had ended" in whats(s.judged("I5"))) is said


def test_inv_5_who_was_removed_takes_its_place_from_the_next_in_it() -> None:
    """S12: with the removal it was forgotten whose the place was; so b.2 comes as any other."""
    s, _ = settled()
    s.entry(returned("b.1", "b.2"), advanced("b.2", 2))
    s.entry(MembersRemoved(("b.2",), "an operator's whim"), raised(3, "removed"))
    s.entry(subscribed("b.1"), raised(4), target(4, {"b.1": [2, 3]}), advanced("b.1", 4))
    s.wait(1).entry(returned("b.1", "b.2"), advanced("b.2", 4))
    s.beat("w1", "b.2", 4)

    assert "MembersRemoved had ended" not in whats(s.judged("I5"))


def test_inv_5_who_has_said_that_it_stops_writes_no_more() -> None:
    s, token = settled()
    s.grant("w1", "b.1", [2, 3], token)
    s.write("w1", token, accepted=True, number=2)
    s.surrender("w1", "b.1")
    s.entry(InstanceReleased("b", "b.1"))
    s.entry(returned("b.1", "b.2"), advanced("b.2", 2))
    s.grant("w2", "b.2", [2, 3], token)
    s.write("w2", token, accepted=True, number=2)
    assert s.judged("I5").violations == []

    s.write("w1", token, accepted=True, number=2)

    assert f"w1 wrote with token {token}, which is also w2's" in whats(s.judged("I5"))


def test_classic_members_that_come_back_are_judged_as_before() -> None:
    """A swap in a classic group still ends the old id for good."""
    s = Scribe()
    s.create()
    s.stable({"a.1": [0]})
    s.entry(replaced("a.1", "a.2"))
    s.wait(1).call("Heartbeat", "w1", member_id="a.1", generation=1)

    assert "which StaticMemberReplaced had ended" in whats(s.judged("I5"))
