"""From what a member owns to what it is to own: the halves, the numbers, and who is told when."""

from __future__ import annotations

import pytest

from holdfast.client._session.consumer.states import State
from holdfast.client._session.session_io import Assigned, Grant, Lost, Revoke
from unit.client._session.consumer.driver import (
    FENCED_MEMBER_EPOCH,
    MEMBER,
    Driver,
    answer,
    make_settings,
    owned_in,
    partitions,
)


def reconciling(*numbers: int, to: tuple[int, ...]) -> Driver:
    """A member that owns some, and whose last heartbeat was answered with others."""
    driver = Driver()
    driver.joined(*numbers)
    driver.next_beat()
    driver.accept(2, *to)
    return driver


def test_t10_what_goes_is_let_go_of_first_and_then_told_at_once() -> None:
    """The partition is free once the group has heard an owned list without it."""
    driver = reconciling(0, 1, to=(0,))
    assert driver.told_last == Revoke(partitions(1))
    assert (driver.state, driver.quiet) == (State.REVOKING, True)
    assert driver.owns() == [0, 1], "the work in hand can be finished"
    assert [driver.session.lets_go_of(name) for name in partitions(0, 1)] == [False, True]
    driver.returns()
    assert (driver.state, driver.owns()) == (State.ACKNOWLEDGING, [0])
    assert owned_in(driver.beat) == [0]
    driver.accept(3, 0)
    assert driver.is_in(State.STABLE)
    assert driver.session.identity.generation == 3


def test_letting_go_comes_before_taking_up_and_others_hear_of_it_in_between() -> None:
    driver = Driver()
    driver.joined(0)
    driver.next_beat()
    driver.slow = True
    driver.accept(2, 1)
    assert driver.told_last == Revoke(partitions(0))
    driver.returns()
    assert (driver.state, driver.owns()) == (State.ASSIGNING, [1])
    assert 0 not in (owned_in(driver.beat) or [0]), "free for others while on_assigned runs"
    driver.unchanged(3)
    assert driver.is_in(State.ASSIGNING)
    driver.returns()
    assert driver.is_in(State.ACKNOWLEDGING)
    assert owned_in(driver.beat) == [1]


def test_heartbeats_go_on_while_a_callback_runs() -> None:
    """Else a slow on_revoked would cost the session."""
    driver = reconciling(0, 1, to=(0,))
    for _ in range(5):
        driver.next_beat()
        driver.unchanged(2)
    assert driver.is_in(State.REVOKING)
    assert driver.owns() == [0, 1]


def test_what_is_told_to_be_owned_while_on_revoked_runs_has_what_goes() -> None:
    """The code of the user may still work on it: nobody else must get it yet."""
    driver = reconciling(0, 1, to=(0,))
    driver.next_beat()
    driver.fail(retry_in_ms=0)
    driver.advance(0)
    assert owned_in(driver.beat) == [0, 1]


def test_acknowledging_ends_when_it_is_answered_and_not_when_it_is_sent() -> None:
    """Others wait for a lost acknowledgement, and `ready` must not hide that."""
    driver = reconciling(0, 1, to=(0,))
    driver.returns()
    driver.fail(retry_in_ms=0)
    driver.advance(0)
    assert driver.is_in(State.ACKNOWLEDGING)
    assert not driver.session.ready(driver.now)
    assert owned_in(driver.beat) == [0]
    driver.accept(3, 0)
    assert driver.is_in(State.STABLE)
    assert driver.session.ready(driver.now)


def test_the_answer_to_an_older_heartbeat_acknowledges_nothing() -> None:
    """One that went out before the user had let go says that it still owns all."""
    driver = reconciling(0, 1, to=(0,))
    driver.next_beat()
    driver.returns()
    driver.unchanged(2)
    assert driver.is_in(State.ACKNOWLEDGING)
    assert owned_in(driver.beat) == [0]


def test_what_is_kept_keeps_its_grant_and_is_not_told_again() -> None:
    """S13: nobody else can have had it."""
    driver = Driver()
    driver.joined(0)
    (before,) = driver.session.held.values()
    driver.next_beat()
    driver.answer(answer(3, {"t": {0: 7, 1: 9}}))
    new = Grant(MEMBER, 3, 9, 0)
    assert driver.told_last == Assigned(partitions(1), new)
    assert driver.session.held == dict(zip(partitions(0, 1), (before, new), strict=True))


def test_o7_what_goes_and_returns_is_a_new_grant() -> None:
    """K-O7: the group may give it back at once; the user's old object stays dead."""
    driver = reconciling(0, 1, to=(0,))
    old = driver.session.held[partitions(1)[0]]
    driver.returns()
    driver.answer(answer(4, {"t": {0: 7, 1: 7}}))
    assert driver.owns() == [0, 1]
    assert not driver.session.may_act(partitions(1)[0], old, driver.now)
    assert driver.told[-1] == Assigned(partitions(1), Grant(MEMBER, 4, 7, 0))


def test_s13_another_token_for_what_is_owned_means_that_it_was_away() -> None:
    """From A to B and back to A between two heartbeats."""
    driver = Driver()
    driver.joined(0, 1)
    driver.next_beat()
    driver.answer(answer(5, {"t": {0: 7, 1: 20}}))
    lost, given = driver.told[-2:]
    assert isinstance(lost, Lost)
    assert (lost.partitions, lost.reason.kind) == (partitions(1), "removed")
    assert given == Assigned(partitions(1), Grant(MEMBER, 5, 20, 0))
    assert driver.session.held[partitions(0)[0]].fencing_token == 7


def test_s12_with_takeover_wait_what_is_new_is_owned_when_the_old_holder_must_have_stopped() -> (
    None
):
    driver = Driver(make_settings(takeover="wait"))
    driver.start()
    driver.answer(answer(2, {"t": {0: 7}}, predecessor_ms=500))
    assert driver.owns() == []
    assert driver.told == []
    driver.unchanged(2)
    assert not driver.session.ready(driver.now)
    driver.advance(499)
    assert driver.owns() == []
    driver.advance(1)
    assert driver.owns() == [0]
    assert driver.told == [Assigned(partitions(0), Grant(MEMBER, 2, 7, 500))]
    assert driver.session.ready(driver.now)


# --- each reconciliation has a number ------------------------------------------------------------


def test_a_newer_target_ends_what_the_running_on_revoked_is_for() -> None:
    """Its partition fails `check`, on_lost runs after it, and its end changes nothing."""
    driver = reconciling(0, 1, 2, to=(0, 1))
    driver.next_beat()
    driver.slow = True
    driver.accept(2, 0)
    assert driver.owns() == [0, 1]
    lost, revoke = driver.told[-2:]
    assert isinstance(lost, Lost)
    assert (lost.partitions, lost.reason.kind) == (partitions(2), "superseded")
    assert revoke == Revoke(partitions(1))
    driver.returns()
    assert driver.is_in(State.REVOKING), "on_revoked of 2 changes nothing any more"
    assert driver.quiet
    driver.returns()
    driver.returns()
    assert driver.is_in(State.ACKNOWLEDGING)
    assert owned_in(driver.beat) == [0]


def test_a_newer_target_that_gives_back_what_goes_gives_it_anew() -> None:
    driver = reconciling(0, 1, to=(0,))
    old = driver.session.held[partitions(1)[0]]
    driver.next_beat()
    driver.slow = True
    driver.accept(4, 0, 1)
    assert not driver.session.may_act(partitions(1)[0], old, driver.now)
    assert isinstance(driver.told_last, Lost)
    driver.returns()
    driver.returns()
    assert driver.owns() == [0, 1]
    assert driver.session.held[partitions(1)[0]] is not old


def test_a_newer_target_while_on_assigned_runs_keeps_what_both_have() -> None:
    """The one that is given piece by piece must not lose each piece with the next (K-O10)."""
    driver = Driver()
    driver.slow = True
    driver.start()
    driver.accept(2, 0, 1)
    first = dict(driver.session.held)
    driver.next_beat()
    driver.accept(3, 1, 2)
    lost = driver.told_last
    assert isinstance(lost, Lost)
    assert (lost.partitions, lost.reason.kind) == (partitions(0), "superseded")
    assert driver.owns() == [1]
    driver.returns()
    assert driver.is_in(State.REVOKING), "on_assigned of the older target changes nothing"
    driver.returns()
    assert driver.told_last == Assigned(partitions(2), Grant(MEMBER, 3, 7, 0))
    assert driver.session.held[partitions(1)[0]] is first[partitions(1)[0]]
    assert driver.owns() == [1, 2]


def test_more_while_on_assigned_runs_is_taken_up_behind_it() -> None:
    driver = Driver()
    driver.slow = True
    driver.start()
    driver.accept(2, 0)
    driver.next_beat()
    driver.accept(3, 0, 1)
    assert driver.owns() == [0, 1]
    driver.returns()
    assert driver.is_in(State.ASSIGNING), "on_assigned of 0 acknowledges nothing any more"
    driver.returns()
    assert driver.is_in(State.ACKNOWLEDGING)
    assert owned_in(driver.beat) == [0, 1]


def test_the_same_target_again_disturbs_no_callback() -> None:
    """K-M14: a full heartbeat is answered with the assignment, changed or not."""
    driver = reconciling(0, 1, to=(0,))
    told = len(driver.told)
    driver.next_beat()
    driver.accept(2, 0)
    assert len(driver.told) == told
    driver.returns()
    assert driver.is_in(State.ACKNOWLEDGING)


def test_t13_a_fence_ends_all_and_a_callback_that_ends_later_changes_nothing() -> None:
    driver = reconciling(0, 1, to=(0,))
    driver.next_beat()
    driver.slow = True
    driver.refuse(FENCED_MEMBER_EPOCH)
    assert driver.owns() == []
    assert driver.lost[-1].partitions == partitions(0, 1)
    driver.returns()
    assert (driver.state, driver.quiet) == (State.FENCED, True)
    driver.returns()
    assert driver.is_in(State.JOINING)
    assert owned_in(driver.beat) == []


@pytest.mark.parametrize("how", ["leave", "restart", "unsubscribe"])
def test_a_leave_ends_what_the_running_callback_is_for(how: str) -> None:
    """Then the rest is let go of as usual; the group hears of it when all has returned (S12)."""
    driver = reconciling(0, 1, to=(0,))
    driver.slow = True
    driver.do(how)
    lost, revoke = driver.told[-2:]
    assert isinstance(lost, Lost)
    assert (lost.partitions, lost.reason.kind) == (partitions(1), "superseded")
    assert revoke == Revoke(partitions(0))
    driver.returns()
    driver.returns()
    assert (driver.state, driver.quiet) == (State.PREPARE_LEAVING, True)
    assert driver.owns() == [0]
    driver.returns()
    assert driver.beat.member_epoch == -1
