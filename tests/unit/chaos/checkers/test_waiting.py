"""INV-17: what is waited for too long, and what only takes its time."""

from __future__ import annotations

from holdfast.chaos.checkers.waiting import CHILDREN_US
from unit.chaos.scribe import (
    REBALANCE_MS,
    SESSION_MS,
    Scribe,
    advanced,
    raised,
    setting,
    settled,
    target,
    topic,
    whats,
)


def heard(s: Scribe, milliseconds: float) -> None:
    """Let time pass while a and b.1 are heard."""
    for _ in range(round(milliseconds / SESSION_MS * 2)):
        s.beat("w1", "a", 2)
        s.beat("w2", "b.1", 2)
        s.wait(SESSION_MS / 2)


def test_inv_17_what_is_asked_back_for_ever_is_found() -> None:
    s, _ = settled()
    heard(s, SESSION_MS)
    s.entry(raised(3, "asked"), target(3, {"a": [0], "b.1": [1, 2, 3]}))
    s.entry(advanced("a", 2, asked_back=(1,)))
    heard(s, REBALANCE_MS * 0.9)
    assert s.judged("I17").violations == []

    heard(s, REBALANCE_MS * 0.5)

    assert "for what is asked back of a t/1" in whats(s.judged("I17"))


def test_inv_17_an_epoch_without_a_target_is_found() -> None:
    s, _ = settled()
    heard(s, SESSION_MS)
    s.entry(raised(3, "asked"))
    heard(s, SESSION_MS * 2)

    assert "for a target of its epoch" in whats(s.judged("I17"))


def test_inv_17_child_processes_have_their_time_if_small_groups_are_computed_there_too() -> None:
    """ADR 51: two may hang, one after the other, before the node computes by itself."""
    s, _ = settled()
    s.entry(setting("group.consumer_inline_work", "0"), group="")
    heard(s, SESSION_MS)
    s.entry(raised(3, "asked"))
    heard(s, SESSION_MS * 2)
    assert s.judged("I17").violations == []

    heard(s, CHILDREN_US / 1_000 + SESSION_MS)

    assert "for a target of its epoch" in whats(s.judged("I17"))


def test_inv_17_a_target_may_be_put_off_by_the_setting_and_no_longer() -> None:
    """K-P15: two targets of a group are not closer to each other than that."""
    s, _ = settled()
    pause_ms = SESSION_MS * 4
    s.entry(setting("group.consumer_assignment_interval_ms", str(pause_ms)), group="")
    heard(s, SESSION_MS)
    s.entry(raised(3, "asked"))
    heard(s, pause_ms)
    assert s.judged("I17").violations == []

    heard(s, SESSION_MS * 3)

    assert "for a target of its epoch" in whats(s.judged("I17"))


def test_inv_17_a_pause_that_is_taken_back_counts_for_what_began_to_wait_with_it() -> None:
    """K-P15: the heartbeat that finds the target due may have come just before."""
    s, _ = settled()
    pause_ms = SESSION_MS * 4
    s.entry(setting("group.consumer_assignment_interval_ms", str(pause_ms)), group="")
    heard(s, SESSION_MS)
    s.entry(raised(3, "asked"))
    s.entry(setting("group.consumer_assignment_interval_ms", None), group="")
    heard(s, pause_ms)
    assert s.judged("I17").violations == []

    s.entry(target(3, {"a": [0, 1], "b.1": [2, 3]}))
    s.entry(advanced("a", 3), advanced("b.1", 3))
    s.entry(raised(4, "asked"))
    heard(s, SESSION_MS * 2)

    assert "for a target of its epoch" in whats(s.judged("I17"))


def test_inv_17_a_free_partition_that_nobody_takes_is_found() -> None:
    s, _ = settled()
    heard(s, SESSION_MS)
    s.entry(topic(5), group="")
    s.entry(raised(3, "topics", b"other"), target(3, {"a": [0, 1, 4]}))
    s.entry(advanced("a", 3, waiting=True), advanced("b.1", 3))
    heard(s, SESSION_MS * 3)

    assert "for what is to be owned by a t/4" in whats(s.judged("I17"))


def test_inv_17_who_has_to_give_something_up_takes_only_then() -> None:
    """K-O5. Found by the simulator: seed 107 was called broken for a slow `on_revoked`."""
    s, _ = settled()
    heard(s, SESSION_MS)
    s.entry(topic(5), group="")
    s.entry(raised(3, "topics", b"other"), target(3, {"a": [0, 4], "b.1": [1, 2, 3]}))
    s.entry(advanced("a", 2, asked_back=(1,)))
    heard(s, REBALANCE_MS * 0.9)
    assert s.judged("I17").violations == []

    s.entry(advanced("a", 3, freed=(1,), waiting=True), advanced("b.1", 3, (1,)))
    heard(s, SESSION_MS * 2 + REBALANCE_MS)
    assert "for what is to be owned by a t/4" in whats(s.judged("I17"))


def test_inv_17_a_new_leader_begins_in_full() -> None:
    s, _ = settled()
    heard(s, SESSION_MS)
    s.entry(raised(3, "asked"))
    heard(s, SESSION_MS)
    s.lead("n2")
    heard(s, SESSION_MS)

    assert s.judged("I17").violations == []
