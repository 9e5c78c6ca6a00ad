"""S11 in the heartbeat protocol: when ownership ends by the own clock, and how it comes back.

Both halves count from when a heartbeat was sent. The session half runs on with every one that was
answered NONE. The rebalance half runs on only with one by whose answer the group wants nothing of
all that it took for owned when it heard it: the group waits for a rebalance timeout from when it
first wanted something back, which a lost answer may have said.
"""

from __future__ import annotations

import pytest

from holdfast.client._session.consumer.states import State
from holdfast.client._session.session_io import Assigned, Grant, Lost
from unit.client._session.consumer.driver import (
    INTERVAL_MS,
    MEMBER,
    SESSION_MS,
    START_MS,
    Driver,
    answer,
    fields_in,
    make_settings,
    owned_in,
    partitions,
)

REBALANCE_MS = 4_000
"""Shorter than the session, so that this half shows."""
SESSION_END_MS, REBALANCE_END_MS = SESSION_MS * 8 // 10, REBALANCE_MS * 8 // 10


def hasty(*numbers: int) -> Driver:
    """Stable, with a short rebalance timeout; all at START_MS."""
    driver = Driver(make_settings(rebalance_timeout_ms=REBALANCE_MS))
    driver.start()
    given = {"t": dict.fromkeys(numbers, 7)}
    driver.answer(answer(2, given, rebalance_ms=REBALANCE_MS))
    if numbers:
        driver.answer(answer(2, None, rebalance_ms=REBALANCE_MS))
    return driver


def nod(driver: Driver, *numbers: int, epoch: int = 2) -> None:
    """NONE, with these to own; with none named, as before."""
    given = {"t": dict.fromkeys(numbers, 7)} if numbers else None
    driver.answer(answer(epoch, given, rebalance_ms=REBALANCE_MS))


def test_s11_the_session_half_counts_from_when_the_last_accepted_heartbeat_was_sent() -> None:
    driver = Driver()
    driver.joined(0)
    driver.next_beat()
    driver.now += 700
    driver.unchanged(2)
    driver.next_beat()
    assert driver.session.lease_ends_at_ms == START_MS + INTERVAL_MS + SESSION_END_MS
    driver.fail(retry_in_ms=60_000)
    driver.advance(START_MS + INTERVAL_MS + SESSION_END_MS - 1 - driver.now)
    assert driver.owns() == [0]
    driver.advance(1)
    assert driver.owns() == []
    lost = driver.told_last
    assert isinstance(lost, Lost)
    assert (lost.partitions, lost.reason.kind) == (partitions(0), "clock")


def test_s11_the_timeouts_in_force_count_and_not_those_asked_for() -> None:
    driver = Driver(make_settings(session_timeout_ms=45_000))
    driver.joined(0)
    assert driver.session.lease_ends_at_ms == START_MS + SESSION_END_MS


def test_s11_the_rebalance_half_stops_with_the_heartbeat_before_the_one_that_wants_back() -> None:
    driver = hasty(0, 1)
    driver.next_beat()
    nod(driver, 0)
    assert driver.is_in(State.REVOKING)
    assert driver.session.lease_ends_at_ms == START_MS + REBALANCE_END_MS
    driver.next_beat()
    nod(driver)
    assert driver.session.lease_ends_at_ms == START_MS + REBALANCE_END_MS


def test_s11_a_lost_answer_that_wanted_something_back_buys_no_time() -> None:
    """The group's clock runs since it gave that answer, whether the member has heard it or not."""
    driver = hasty(0, 1)
    driver.next_beat()
    driver.fail(retry_in_ms=500)  # its answer was: not 1
    driver.advance(500)
    nod(driver, 0)
    assert driver.session.lease_ends_at_ms == START_MS + REBALANCE_END_MS


def test_s11_a_heartbeat_from_before_the_letting_go_does_not_run_the_rebalance_half_on() -> None:
    """It told the group that all is owned still, so the group waits on."""
    driver = hasty(0, 1)
    driver.next_beat()
    nod(driver, 0)
    driver.next_beat()
    driver.returns()
    nod(driver)
    assert driver.session.lease_ends_at_ms == START_MS + REBALANCE_END_MS
    assert driver.is_in(State.ACKNOWLEDGING)
    nod(driver, 0, epoch=3)  # the acknowledgement
    assert driver.session.lease_ends_at_ms == START_MS + 2 * INTERVAL_MS + REBALANCE_END_MS


def test_s11_on_revoked_that_takes_too_long_loses_everything_before_the_group_fences() -> None:
    """K-M25: the group ends the member one rebalance timeout after it wanted something back."""
    driver = hasty(0, 1)
    driver.next_beat()
    nod(driver, 0)
    driver.slow = True
    while driver.owns():
        driver.advance(100)
        if not driver.quiet:
            nod(driver)
    assert driver.now == START_MS + REBALANCE_END_MS
    (lost,) = driver.lost
    assert lost.partitions == partitions(0, 1)
    assert "letting go has taken" in lost.reason.words
    driver.returns()
    assert driver.is_in(State.REVOKING), "on_revoked changes nothing any more"
    driver.returns()
    assert driver.is_in(State.ACKNOWLEDGING)


def test_s11_ownership_comes_back_by_an_accepted_heartbeat_and_as_a_new_grant() -> None:
    driver = Driver()
    driver.joined(0, 1)
    old = driver.session.held[partitions(0)[0]]
    driver.now += SESSION_END_MS  # frozen
    driver.tick()
    assert driver.owns() == []
    assert driver.is_in(State.ACKNOWLEDGING)
    driver.accept(2, 0, 1)
    assert driver.owns() == [0, 1]
    assert not driver.session.may_act(partitions(0)[0], old, driver.now)
    assert driver.told_last == Assigned(partitions(0, 1), Grant(MEMBER, 2, 7, 0))


def test_s11_after_a_loss_the_next_heartbeat_says_everything() -> None:
    """So the group tells the assignment again, which it would else take for known (K-M14)."""
    driver = Driver()
    driver.joined(0)
    driver.now += SESSION_END_MS
    driver.tick()
    assert fields_in(driver.beat) == {
        *("rebalance_timeout_ms", "subscribed_topic_names"),
        *("subscribed_topic_regex", "topic_partitions"),
    }


def test_s11_what_was_lost_is_told_to_be_owned_until_the_user_has_heard_it() -> None:
    """The code of the user may be in the midst of it until on_lost has returned."""
    driver = Driver()
    driver.joined(0)
    driver.slow = True
    driver.now += SESSION_END_MS
    driver.tick()
    assert driver.is_in(State.REVOKING)
    assert owned_in(driver.beat) == [0]
    driver.accept(2, 0)
    assert driver.owns() == [], "it comes back behind on_lost"
    driver.returns()
    assert driver.owns() == [0]


def test_s11_nothing_is_taken_up_while_the_lease_has_ended() -> None:
    """An assignment that the group gave long ago says nothing of now."""
    driver = Driver()
    driver.start()
    driver.now += SESSION_END_MS
    driver.accept(2, 0)
    assert (driver.owns(), driver.told) == ([], [])
    driver.unchanged(2)  # the next one, which went out at once
    assert driver.owns() == [0]


def test_s11_what_was_given_too_late_and_is_taken_back_is_said_not_to_be_owned() -> None:
    """The group believes that the member may have it, and its clock runs until it hears no."""
    driver = hasty()
    driver.next_beat()
    driver.now += SESSION_END_MS
    nod(driver, 0, 1)  # too late: nothing is taken up
    assert driver.owns() == []
    began = driver.now
    driver.now += 100
    nod(driver, 0)  # to a heartbeat that did not say what is owned
    assert driver.owns() == [], "the group waits for 1, nobody knows since when"
    assert owned_in(driver.beat) == []
    nod(driver, 0)
    assert driver.owns() == [0]
    assert driver.session.lease_ends_at_ms == began + 100 + REBALANCE_END_MS


@pytest.mark.parametrize("stall_ms", [SESSION_END_MS, 10 * SESSION_MS])
def test_s11_owned_is_false_before_anything_runs_after_a_stall(stall_ms: int) -> None:
    """A thread of the user asks the clock, and not what the loop has seen of it."""
    driver = Driver()
    driver.joined(0)
    driver.now += stall_ms
    assert driver.owns() == []
    assert not driver.session.owns(driver.now)
    driver.tick()
    assert "did not run" in driver.lost[0].reason.words
