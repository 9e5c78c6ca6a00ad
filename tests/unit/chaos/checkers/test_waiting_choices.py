"""INV-17: a member that computes a target hands it in, or another one is chosen (KIP-848)."""

from __future__ import annotations

from holdfast.coordinator.model.consumer_events import AssignmentRequested
from unit.chaos.scribe import (
    REBALANCE_MS,
    SESSION_MS,
    Scribe,
    raised,
    settled,
    whats,
)


def asked(who: str, epoch: int = 3, late: str = "") -> AssignmentRequested:
    """A member is chosen."""
    return AssignmentRequested(who, epoch, "own", late)


def heard(s: Scribe, milliseconds: float) -> None:
    """Let time pass while a and b.1 are heard."""
    for _ in range(round(milliseconds / SESSION_MS * 2)):
        s.beat("w1", "a", 2)
        s.beat("w2", "b.1", 2)
        s.wait(SESSION_MS / 2)


def test_inv_17_a_chosen_member_that_nobody_relieves_is_found() -> None:
    s, _ = settled()
    heard(s, SESSION_MS)
    s.entry(raised(3, "asked"), asked("a"))
    heard(s, REBALANCE_MS)
    assert s.judged("I17").violations == []

    heard(s, REBALANCE_MS)

    assert "for a target, or another choice, after that of a" in whats(s.judged("I17"))


def test_inv_17_another_choice_begins_anew_and_a_repeated_one_does_not() -> None:
    """A chosen member that stays so for a newer epoch has no more time."""
    s, _ = settled()
    heard(s, SESSION_MS)
    s.entry(raised(3, "asked"), asked("a"))
    heard(s, REBALANCE_MS)
    s.entry(asked("b.1", late="a"))
    heard(s, REBALANCE_MS)
    s.entry(asked("b.1", late="b.1"))
    heard(s, REBALANCE_MS)
    assert s.judged("I17").violations == []

    s.entry(raised(4, "asked"), asked("b.1", 4))
    heard(s, REBALANCE_MS)

    assert "another choice, after that of b.1" in whats(s.judged("I17"))
