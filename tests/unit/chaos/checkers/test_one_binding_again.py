"""INV-4: member ids that come back."""

from __future__ import annotations

from holdfast.coordinator.model.events import MembersLeft
from unit.chaos.scribe import raised, settled, subscribed, whats


def test_inv_4_a_member_id_may_come_back_in_the_heartbeat_protocol() -> None:
    s, _ = settled()
    s.entry(MembersLeft(("a",), ""), raised(3, "left"))
    s.entry(subscribed("a"), raised(4))

    assert s.judged("I4").violations == []


def test_inv_4_two_members_under_one_id_are_found() -> None:
    s, _ = settled()
    s.entry(subscribed("a"))

    assert "member id a of 'g' is used a second time" in whats(s.judged("I4"))
