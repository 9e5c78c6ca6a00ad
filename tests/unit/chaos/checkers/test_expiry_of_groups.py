"""INV-12: sessions of the heartbeat protocol, which are the group's."""

from __future__ import annotations

import pytest

from holdfast.coordinator.model.events import InstanceReleased, MemberExpired
from unit.chaos.scribe import SESSION_MS, raised, settled, whats


def test_inv_12_a_session_of_the_group_that_ends_early_is_found() -> None:
    s, _ = settled()
    s.wait(SESSION_MS).beat("w1", "a", 2)
    s.wait(SESSION_MS / 2).entry(MemberExpired("a", "session"), raised(3, "expired"))

    assert "a of 'g' expired" in whats(s.judged("I12"))


def test_inv_12_the_word_that_a_process_stops_renews_nothing() -> None:
    """K-N3: the place is kept for what is left of the session."""
    s, _ = settled()
    s.beat("w1", "b.1", 2)
    s.wait(SESSION_MS / 2)
    s.call(
        "ConsumerGroupHeartbeat", "w1", member_id="b.1", generation=-2, release=True,
        result={"generation": -2},
    )  # fmt: skip
    s.entry(InstanceReleased("b", "b.1"))
    s.wait(SESSION_MS / 2).entry(MemberExpired("b.1", "session"), raised(3, "expired"))

    assert s.judged("I12").violations == []


@pytest.mark.parametrize(("later", "said"), [(1, ""), (0, "a of 'g' expired")])
def test_inv_12_a_join_behind_the_expiry_is_of_the_next_life(later: int, said: str) -> None:
    """It was sent before the expiry was seen, and accepted by an entry after it."""
    s, _ = settled()
    s.wait(SESSION_MS + 1)
    call = s.send("ConsumerGroupHeartbeat", "w1", member_id="a", generation=0)
    expired = s.entry(MemberExpired("a", "session"), raised(3, "expired"))
    s.hear(call, generation=4, session_timeout_ms=SESSION_MS, position=[expired + later, 0])

    assert whats(s.judged("I12"))[: len("a of 'g' expired")] == said


def test_inv_12_a_silent_member_that_stays_is_found() -> None:
    s, _ = settled()
    s.beat("w1", "a", 2)
    s.wait(SESSION_MS * 2).entry(raised(3, "asked"))

    assert "a of 'g' gave no sign of life" in whats(s.judged("I12"))
