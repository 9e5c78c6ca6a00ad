"""INV-1: a member that comes back under its id has a right of its own again."""

from __future__ import annotations

from holdfast.coordinator.model.events import MembersRemoved
from unit.chaos.scribe import advanced, raised, settled, subscribed, target, whats


def test_inv_1_a_member_that_comes_back_under_its_id_may_own_again() -> None:
    """S12: its removal ended what it had, not what it is granted after it has joined again."""
    s, token = settled()
    s.grant("w1", "a", [0, 1], token)
    s.entry(MembersRemoved(("a",), ""), raised(3, "removed"))
    s.grant("w2", "b.1", [0, 1, 2, 3], s.entry(target(3, {"b.1": [0, 1, 2, 3]})))
    s.surrender("w1", "a")
    again = s.entry(subscribed("a"), raised(4), target(4, {"a": [0]}), advanced("a", 4, (0,)))
    s.wait(1).grant("w1", "a", [0], again)

    assert "0/1" not in whats(s.judged("I1"))
    assert "t/0 of 'g' is owned twice" in whats(s.judged("I1")), "w2 has not given it up"
