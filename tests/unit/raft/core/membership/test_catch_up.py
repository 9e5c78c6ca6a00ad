"""Rounds of a learner (S25 c; Raft thesis 4.2.1): each ends with what the log had at its begin."""

from __future__ import annotations

from holdfast.raft.core.membership.catch_up import CatchUp

ELECTION = 0.4


def test_who_has_never_answered_has_not_caught_up() -> None:
    assert not CatchUp().is_done(0.0, ELECTION)


def test_a_learner_that_is_far_behind_has_a_long_round_and_then_short_ones() -> None:
    rounds = CatchUp()
    rounds.note(0, 1000, 10.0)
    rounds.note(999, 1500, 12.9)
    assert not rounds.is_done(12.9, ELECTION)

    rounds.note(1000, 1500, 13.0)
    assert not rounds.is_done(13.0, ELECTION), "the first round took 3 s"

    rounds.note(1500, 1510, 13.3)
    assert rounds.is_done(13.3, ELECTION)


def test_a_learner_that_falls_behind_again_is_not_caught_up() -> None:
    rounds = CatchUp()
    rounds.note(0, 5, 10.0)
    rounds.note(5, 5000, 10.1)
    assert rounds.is_done(10.4, ELECTION)

    rounds.note(800, 5000, 10.6)

    assert not rounds.is_done(10.6, ELECTION)
    assert not rounds.is_done(99.0, ELECTION), "nor one that is silent"


def test_an_idle_log_makes_rounds_of_no_length() -> None:
    rounds = CatchUp()
    for second in range(5):
        rounds.note(7, 7, 1.0 * second / 10)
    assert rounds.is_done(0.4, ELECTION)
